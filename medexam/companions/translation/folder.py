"""The folder of one translation: what was asked for, the runs that ask, and what came out.

`translation.json` says what was asked for and `models.json` which model translates; what continues plain text has
`base_models.json` beside it. `texts.jsonl` holds the texts, `replies/` a run folder for each set-up, and
`selection.json`, `quality.json` and the data set are made from them. Asked again, it continues where it stopped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from medexam import Prediction
from medexam.companions.translation.layout import source_key, text_digest, text_of_task
from medexam.companions.translation.program import SetupWords
from medexam.companions.translation.validity import clean_reply
from medexam.toolkit.data import Failure, Reason, Status
from medexam.toolkit.files import FrozenModel, WorkFolder
from medexam.toolkit.runs import MODELS, AnyCell, Plan, parse_lines, read_models

RECORD = "translation.json"
REPLIES = "replies"
SELECTION = "selection.json"
QUALITY = "quality.json"
Role = Literal["model", "base"]
"""Which of a translation's models answers a set-up: the one that takes dialogues, or one that continues plain text."""
MODEL_FILES: Mapping[Role, str] = MappingProxyType({"model": MODELS, "base": f"base_{MODELS}"})


@dataclass(frozen=True)
class TranslationFolder(WorkFolder):
    """The files of one translation under `path`."""

    kind = "translation"
    record = RECORD

    @property
    def replies(self) -> Path:
        """Where the runs are, one a set-up."""
        return self.path / REPLIES

    def admit_known(self, cells: Sequence[AnyCell], role: Role) -> tuple[AnyCell, ...]:
        """Return the cells of a role such that the model that answered the folder before, and no other, continues."""
        known = {} if not (self.path / MODEL_FILES[role]).exists() else self.read_json(MODEL_FILES[role])
        if not known:
            return tuple(cells)
        for cell in cells:
            if not (cell.folder.path / MODELS).exists():
                cell.folder.create()
                cell.folder.write_json(MODELS, known)
        answers = sum(cell.answered for cell in cells) or 1
        return tuple(replace(cell, answered=answers) for cell in cells)

    def keep_models(self, cells: Sequence[AnyCell], role: Role) -> None:
        """Keep which models answered the cells of a role."""
        entries = {key: model for cell in cells for key, model in read_models(cell.folder).items()}
        if entries:
            self.write_json(MODEL_FILES[role], {key: model.model_dump(mode="json") for key, model in entries.items()})


class _EarlierReply(FrozenModel):
    """A line of the file of replies that earlier versions kept for each set-up."""

    question: str
    source: str
    """Digest of the text that was to be translated."""
    reply: str | None
    cut_off: bool = False
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency_s: float | None = None
    model: str | None = None
    answered_by: str | None = None
    failure: Failure | None = None


def take_over(
    folder: TranslationFolder, plan: Plan, cell: AnyCell, words: SetupWords, name: str, role: Role
) -> AnyCell:
    """Return the cell with the replies of the file `name` that an earlier version kept, as its predictions.

    The file stays. Raises `RunFolderError` where a line is damaged.
    """
    path = folder.replies / f"{name}.jsonl"
    if cell.folder.exists() or not path.exists():
        return cell
    tasks = {(source_key(task.key), text_digest(text_of_task(task))): task for task in cell.question_set.questions}
    cell.folder.create()
    with cell.folder.locked():
        (cell.folder.path / "predictions.jsonl").unlink(missing_ok=True)
        with cell.folder.appending() as log:
            for _, _, line in parse_lines(path, _EarlierReply.model_validate_json):
                if line.failure is None and (task := tasks.get((line.question, line.source))) is not None:
                    log.append(_prediction(line, task.key, text_of_task(task).numbers, words, cell))
        if (folder.path / MODEL_FILES[role]).exists():
            cell.folder.write_json(MODELS, folder.read_json(MODEL_FILES[role]))
        cell.folder.write_record(plan.record(cell))
    return cell.updated()


def _prediction(line: _EarlierReply, key: str, numbers: Sequence[int], words: SetupWords, cell: AnyCell) -> Prediction:
    text = clean_reply(line.reply or "", numbers, words.keywords) or None
    reason = Reason.CONTEXT_OVERFLOW if line.reply is None else Reason.EMPTY
    return Prediction(
        question=key,
        program=cell.cell.program.label,
        spec_digest=cell.spec_digest,
        status=Status.UNANSWERED if text is None else Status.ANSWERED,
        reason=reason if text is None else None,
        text=text,
        reply=line.reply,
        finish_reason=None if line.reply is None else "length" if line.cut_off else "stop",
        prompt_tokens=line.prompt_tokens,
        completion_tokens=line.completion_tokens,
        latency_s=line.latency_s,
        model=line.model,
        answered_by=line.answered_by,
    )
