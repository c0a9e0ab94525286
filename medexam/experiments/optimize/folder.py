"""The folder of one optimization: what was asked for, every call, every trial, and the best program.

`optimization.json` says what was asked for and how it ended, `models.json` which model answers,
`prompt_models.json` which one writes instructions where that is another. `calls.jsonl` holds each call of a model,
`trials/` each program with its predictions; `program.json`, `trials.json`, `demonstrations.md` and `report.md` are made
from them. It is no run folder: nothing here was asked of the tested questions.
"""

from dataclasses import dataclass
from pathlib import Path

from medexam.experiments.store.work_folder import WorkFolder

RECORD = "optimization.json"
CALLS = "calls.jsonl"
PROMPT_MODELS = "prompt_models.json"
TRIALS = "trials.json"
PROGRAMS = "trials"
DEMONSTRATIONS = "demonstrations.md"
REPORT = "report.md"


@dataclass(frozen=True)
class OptimizationFolder(WorkFolder):
    """The files of one optimization under `path`."""

    kind = "optimization"
    record = RECORD

    @property
    def programs(self) -> Path:
        """Where each trial has a folder."""
        return self.path / PROGRAMS

    def create(self) -> None:
        """Make the folder and that of the trials; raises `RunFolderError` where that is not possible."""
        super().create()
        self.programs.mkdir(parents=True, exist_ok=True)
