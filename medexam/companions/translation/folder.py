"""The folder of one translation: what was asked for, the runs that ask, and what came out.

`translation.json` says what was asked for and `models.json` which model translates; what continues plain text has
`base_models.json` beside it. `texts.jsonl` holds the texts, `replies/` a run folder for each set-up, and
`selection.json`, `quality.json` and the data set are made from them. Asked again, it continues where it stopped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from medexam import Prediction
from medexam.companions.translation.layout import source_key, text_digest, text_of_task
from medexam.companions.translation.program import SetupWords
from medexam.companions.translation.validity import clean_reply
from medexam.toolkit.data import Reason, Status, Task
from medexam.toolkit.files import WorkFolder, parse_json
from medexam.toolkit.runs import MODELS, PREDICTIONS, AnyCell, Plan, parse_lines, read_models

RECORD = "translation.json"
REPLIES = "replies"
SELECTION = "selection.json"
QUALITY = "quality.json"
Role = Literal["model", "base"]
"""Which of a translation's models answers a set-up: the one that takes dialogues, or one that continues plain text."""
_KEPT = ("prompt_tokens", "completion_tokens", "latency_s", "model", "answered_by")
"""What a reply of an earlier version says as a prediction does."""
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

    def admit_known(self, cells: Sequence[AnyCell], role: Role) -> Sequence[AnyCell]:
        """Return the cells of a role such that the model that answered the folder before, and no other, continues."""
        if not (self.path / MODEL_FILES[role]).exists():
            return cells
        known = self.read_json(MODEL_FILES[role])
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
    predictions = [
        _prediction(line, tasks[line["question"], line["source"]], words, cell)
        for _, _, line in parse_lines(path, parse_json)
        if line.get("failure") is None and (line["question"], line["source"]) in tasks
    ]
    cell.folder.create()
    cell.folder.write_bytes(PREDICTIONS, b"".join(prediction.to_line() for prediction in predictions))
    if (folder.path / MODEL_FILES[role]).exists():
        cell.folder.write_json(MODELS, folder.read_json(MODEL_FILES[role]))
    cell.folder.write_record(plan.record(cell))
    return cell.updated()


def _prediction(line: Mapping[str, Any], task: Task, words: SetupWords, cell: AnyCell) -> Prediction:
    reply = line["reply"]
    kept: dict[str, Any] = {name: line.get(name) for name in _KEPT}
    text = clean_reply(reply or "", text_of_task(task).numbers, words.keywords) or None
    return Prediction(
        question=task.key,
        program=cell.cell.program.label,
        spec_digest=cell.spec_digest,
        status=Status.UNANSWERED if text is None else Status.ANSWERED,
        reason=None if text else Reason.CONTEXT_OVERFLOW if reply is None else Reason.EMPTY,
        text=text,
        reply=reply,
        finish_reason=None if reply is None else "length" if line.get("cut_off") else "stop",
        **kept,
    )
