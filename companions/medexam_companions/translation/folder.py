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

from medexam.errors import RunFolderError
from medexam.experiments import MODELS, AnyCell, WorkFolder, read_models
from medexam.specs import IDENTITY_SCHEMA

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

    def read_record(self) -> dict[str, Any]:
        """Read `translation.json`; raises `RunFolderError` where there is none of this version."""
        record = self.read_json(RECORD)
        if record.get("schema") != IDENTITY_SCHEMA:
            raise RunFolderError(
                f"{self.path} was made by another version of medexam: choose another folder with --out"
            )
        return record

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
