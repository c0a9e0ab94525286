"""The folder of one translation: what was asked for, every reply, and what came out.

`translation.json` says what was asked for, `environment.json` what really ran and `models.json` which model translates;
what continues plain text has `base_environment.json` and `base_models.json` beside them.
`replies/SETUP-DIGEST.jsonl` holds each reply as soon as it is there, and `selection.json`, `quality.json` and the data
set are made from them. Asked again, it continues where it stopped.
"""

import os
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from medexam import Prediction
from medexam.toolkit.asking import is_cut
from medexam.toolkit.data import Failure, Status
from medexam.toolkit.files import FrozenModel, WorkFolder
from medexam.toolkit.runs import MODELS, KnownModel, PredictionLog, open_log, parse_lines, read_models

RECORD = "translation.json"
ENVIRONMENT = "environment.json"
REPLIES = "replies"
SELECTION = "selection.json"
QUALITY = "quality.json"
Role = Literal["model", "base"]
"""Which of a translation's models answers a set-up: the one that takes dialogues, or one that continues plain text."""
ENVIRONMENTS: Mapping[Role, str] = MappingProxyType({"model": ENVIRONMENT, "base": f"base_{ENVIRONMENT}"})
MODEL_FILES: Mapping[Role, str] = MappingProxyType({"model": MODELS, "base": f"base_{MODELS}"})


class StoredReply(FrozenModel):
    """One line of a file of replies."""

    question: str
    """The question's key."""
    source: str
    """Digest of the text that was to be translated."""
    reply: str | None
    """What the model wrote, unchanged; None when the prompt did not fit its context, or the call failed."""
    cut_off: bool = False
    """Whether the reply ended at its budget of tokens."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency_s: float | None = None
    """From asking to reply, with the time spent waiting for a place in a batch."""
    model: str | None = None
    """The model as the server named it."""
    answered_by: str | None = None
    """Print of the model, a key of `models.json`; None when the call failed, and in folders of earlier versions."""
    failure: Failure | None = None
    """Only when the call failed: it is pending again."""


class ReplyLog(PredictionLog):
    """Appends replies as lines, instead of predictions, and flushes them to the disk."""

    def __init__(self, path: Path, descriptor: int, digests: Mapping[str, str]) -> None:
        """Append to the file at `path`, whose open end is `descriptor`; `digests` are those of the sources by key."""
        super().__init__(path, descriptor)
        self._digests = digests

    def append(self, prediction: Prediction) -> None:
        """Queue the reply that a prediction carries; `flush` puts it on the disk."""
        line = StoredReply(
            question=prediction.question,
            source=self._digests[prediction.question],
            reply=prediction.reply if prediction.status is not Status.FAILED else None,
            cut_off=is_cut(prediction.finish_reason),
            prompt_tokens=prediction.prompt_tokens,
            completion_tokens=prediction.completion_tokens,
            latency_s=prediction.latency_s,
            model=prediction.model,
            answered_by=prediction.answered_by,
            failure=prediction.failure,
        )
        self._waiting.append(line.model_dump_json().encode("utf-8") + b"\n")


@dataclass(frozen=True)
class TranslationFolder(WorkFolder):
    """The files of one translation under `path`."""

    kind = "translation"
    record = RECORD

    @property
    def replies(self) -> Path:
        """Where every reply is, in one file a set-up."""
        return self.path / REPLIES

    def create(self) -> None:
        """Make the folder and that of the replies; raises `RunFolderError` where that is not possible."""
        super().create()
        self.replies.mkdir(parents=True, exist_ok=True)

    def read_replies(self, name: str) -> dict[str, StoredReply]:
        """Return the last reply to each question, by key; none without a file.

        A torn last line counts as not written. Raises `RunFolderError` where another line is damaged.
        """
        return _read_replies(self._replies(name))

    def count_replies(self, role: Role) -> int:
        """Count the replies of a role's model that the folder holds, to whichever texts and set-ups."""
        reply_files = [_read_replies(path) for path in self.replies.glob("*.jsonl")]
        prints = Counter(
            reply.answered_by for replies in reply_files for reply in replies.values() if reply.failure is None
        )
        base_models, role_models = (self.read_models(name) for name in ("base", role))
        # A reply without a known print is of a time when there was one model.
        return sum(
            n
            for fingerprint, n in prints.items()
            if fingerprint in role_models or (role == "model" and fingerprint not in base_models)
        )

    def read_models(self, role: Role) -> dict[str, KnownModel]:
        """Return the models that answered in a role, by print."""
        return read_models(self, MODEL_FILES[role])

    def appending(self, name: str, digests: Mapping[str, str]) -> AbstractContextManager[ReplyLog]:
        """Open a log that appends replies to the file `name`; what a dead process left torn is cut off first."""
        return open_log(self._replies(name), partial(ReplyLog, digests=digests))

    def _replies(self, name: str) -> Path:
        return self.replies / f"{name.replace(os.sep, '_')}.jsonl"


def _read_replies(path: Path) -> dict[str, StoredReply]:
    replies = (reply for _, _, reply in parse_lines(path, StoredReply.model_validate_json))
    return {reply.question: reply for reply in replies}
