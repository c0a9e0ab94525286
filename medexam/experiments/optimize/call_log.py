"""Every call of an optimization, on disk as soon as it is answered; asked again, it is answered from there.

DSPy's optimizers are deterministic in what the model says, so an interrupted one is not stored but repeated: what it
asked before costs nothing, and it continues from there.
"""

import json
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from medexam.errors import RunFolderError
from medexam.experiments.store.log_lines import cut_torn_line, parse_lines
from medexam.model_calls import Generation

_GENERATIONS = TypeAdapter(list[Generation])


@dataclass(frozen=True)
class CallUsage:
    """What some calls have cost."""

    calls: int = 0
    tokens: int = 0

    def __add__(self, other: "CallUsage") -> "CallUsage":
        return CallUsage(self.calls + other.calls, self.tokens + other.tokens)


class LoggedCall(BaseModel):
    """One line of the log."""

    model_config = ConfigDict(validate_by_name=True)

    group: str = Field(alias="for")
    """What the call was made for: a trial's digest, or what is done beside the trials, such as `bootstrapping`."""
    key: str
    """Digest of the request."""
    answered_by: str
    """Print of the model."""
    tokens: int
    reply: dict[str, Any] | None
    """What `write_reply` wrote; None if the call failed."""


def write_reply(generations: list[Generation]) -> dict[str, Any]:
    """Write the replies to one call as JSON holds them."""
    own = [replace(generation, source=None) for generation in generations]
    return {"generations": _GENERATIONS.dump_python(own, mode="json", exclude_defaults=True)}


def read_reply(reply: dict[str, Any]) -> list[Generation]:
    """Read the replies to one call."""
    return _GENERATIONS.validate_python(reply["generations"])


class CallLog:
    """The calls of one optimization, in `calls.jsonl`; a reply answers requests to the model that wrote it alone."""

    def __init__(self, path: Path) -> None:
        """Read what is there; a torn last line counts as not written.

        Raises `RunFolderError` if it cannot be read.
        """
        self._path = path
        self._replies: defaultdict[tuple[str, str], deque[dict[str, Any]]] = defaultdict(deque)
        self._usage: defaultdict[str, CallUsage] = defaultdict(CallUsage)
        self.times_asked: Counter[tuple[str, str]] = Counter()
        """Print of a model and key -> how often it was asked before this session."""
        self.answered = 0
        """Calls that were answered, by whichever model."""
        cut_torn_line(path)
        for _, _, call in parse_lines(path, LoggedCall.model_validate_json):
            self.times_asked[call.answered_by, call.key] += 1
            self._count(call, replayed=True)

    @property
    def total(self) -> CallUsage:
        """What all calls have cost."""
        return sum(self._usage.values(), CallUsage())

    def usage(self, group: str) -> CallUsage:
        """Return what the calls of one group have cost, in all sessions together."""
        return self._usage[group]

    def recall(self, model: str, key: str, *, repeatable: bool) -> dict[str, Any] | None:
        """Return the logged reply of the model of this print to a request of this key; None if there is none left.

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
                line = json.dumps(call.model_dump(by_alias=True), ensure_ascii=False)
                stream.write(line.encode("utf-8") + b"\n")
        except OSError as error:
            raise RunFolderError(f"cannot write {self._path}: {error.strerror}") from None
        # A sampled reply of this session was given out already and must not answer the next request as well.
        self._count(call, replayed=repeatable)

    def _count(self, call: LoggedCall, *, replayed: bool) -> None:
        self._usage[call.group] += CallUsage(1, call.tokens)
        if call.reply is not None:
            self.answered += 1
            if replayed:
                self._replies[call.answered_by, call.key].append(call.reply)
