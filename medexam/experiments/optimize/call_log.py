"""Every call of an optimization, on disk as soon as it is answered; asked again, it is answered from there.

DSPy's optimizers are deterministic in what the model says, so an interrupted one is not stored but repeated: what it
asked before costs nothing, and it continues from there.
"""

import hashlib
import json
from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from pathlib import Path

from medexam.errors import RunFolderError
from medexam.experiments.store.logs import cut_torn_line, parse_lines
from medexam.frozen_model import FrozenModel
from medexam.model_calls import Dialogue, Generation
from medexam.predictions import ModelCall


@dataclass(frozen=True)
class CallUsage:
    """What some calls have cost."""

    calls: int = 0
    tokens: int = 0

    def __add__(self, other: "CallUsage") -> "CallUsage":
        return CallUsage(self.calls + other.calls, self.tokens + other.tokens)


class LoggedCall(FrozenModel):
    """One line of the log: a request and its replies."""

    group: str
    """What the call was made for: a trial's digest, or what is done beside the trials, such as `bootstrapping`."""
    key: str
    """Hash of all that was sent."""
    answered_by: str
    """Print of the model."""
    tokens: int
    calls: tuple[ModelCall, ...]
    """The request with each of its replies; one without where the call failed."""

    @property
    def replies(self) -> list[Generation] | None:
        """The replies; None where the call failed."""
        return [call.generation() for call in self.calls] if all(call.has_reply for call in self.calls) else None


def hash_request(dialogue: Dialogue) -> str:
    """Hash all that a dialogue sends, so that equal requests are told."""
    call = ModelCall.of(dialogue)
    text = json.dumps([call.words_sent, call.sampling, dialogue.sampling.samples], sort_keys=True)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


class CallLog:
    """The calls of one optimization, in `calls.jsonl`; a reply answers requests to the model that wrote it alone."""

    def __init__(self, path: Path) -> None:
        """Read what is there; a torn last line counts as not written.

        Raises `RunFolderError` if it cannot be read.
        """
        self._path = path
        self._replies: defaultdict[tuple[str, str], deque[list[Generation]]] = defaultdict(deque)
        self._usage: defaultdict[str, CallUsage] = defaultdict(CallUsage)
        self.times_asked: Counter[tuple[str, str]] = Counter()
        """Print of a model and key -> how often it was asked before this session."""
        self.answered = 0
        """Calls that were answered, by whichever model."""
        cut_torn_line(path)
        for _, _, call in parse_lines(path, LoggedCall.model_validate_json):
            self.times_asked[call.answered_by, call.key] += 1
            self._count(call, recalled=True)

    @property
    def total(self) -> CallUsage:
        """What all calls have cost."""
        return sum(self._usage.values(), CallUsage())

    def usage(self, group: str) -> CallUsage:
        """Return what the calls of one group have cost, in all sessions together."""
        return self._usage[group]

    def recall(self, model: str, key: str, *, repeatable: bool) -> list[Generation] | None:
        """Return the logged replies of the model of this print to a request of this key; None if there is none left.

        `repeatable` says that the same request gets the same reply, so that one line answers it any number of times.
        """
        replies = self._replies.get((model, key))
        if not replies:
            return None
        # Sampled replies differ: the first request takes the first of an earlier session, the second the next one.
        return replies[0] if repeatable else replies.popleft()

    def add(self, call: LoggedCall, *, repeatable: bool) -> None:
        """Put one call on the disk; raises `RunFolderError` if it does not fit."""
        try:
            with self._path.open("ab") as stream:
                stream.write(call.model_dump_json(exclude_none=True).encode("utf-8") + b"\n")
        except OSError as error:
            raise RunFolderError(f"cannot write {self._path}: {error.strerror}") from None
        # A sampled reply of this session was given out already and must not answer the next request as well.
        self._count(call, recalled=repeatable)

    def _count(self, call: LoggedCall, *, recalled: bool) -> None:
        self._usage[call.group] += CallUsage(1, call.tokens)
        if (replies := call.replies) is not None:
            self.answered += 1
            if recalled:
                self._replies[call.answered_by, call.key].append(replies)
