"""An optimization and its folder: what was asked for, what was tried, what was best, what it cost.

`optimization.json` says that, `models.json` which model answers, `prompt_models.json` which one writes instructions
where that is another. `cache/` holds the replies, `trials/` each program with its predictions; `program.json` is the
best one, and `report.md` is to read. It is no run folder: nothing here was asked of the tested questions.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from medexam.distributions import WILSON, rate_interval
from medexam.errors import RunFolderError
from medexam.experiments.optimize.meter import Ending, Meter
from medexam.experiments.report.markdown import fenced, render_markdown
from medexam.experiments.report.shown import Block, Displayed, Unbroken
from medexam.experiments.store.environment import read_models
from medexam.experiments.store.run_folder import WorkFolder
from medexam.programs.loading import PROGRAM, predictor_states
from medexam.questions import Question
from medexam.specs import CellSpec
from medexam.specs.base import short_name
from medexam.specs.experiment import OptimizerSpec
from medexam.specs.identity import IDENTITY_SCHEMA
from medexam.tables import Table, percent, with_interval

RECORD, PROMPT_MODELS, REPORT = "optimization.json", "prompt_models.json", "report.md"


@dataclass(frozen=True)
class OptimizationFolder(WorkFolder):
    """The files of one optimization under `path`."""

    kind = "optimization"
    record = RECORD

    @property
    def programs(self) -> Path:
        """Where each trial has a folder."""
        return self.path / "trials"


@dataclass(frozen=True)
class Trial:
    """One program, asked every validation question."""

    number: int
    """0 is the program as it was written."""
    name: str
    digest: str
    demos: int
    """Demonstrations that its prompts show, over all predictors."""
    n: int
    right: int
    unanswered: int
    score: float
    """The optimizer's metric: of 1, or nats where that is a log-probability."""
    calls: int

    @property
    def accuracy(self) -> tuple[float, tuple[float, float]]:
        """The share of right answers, and its 95 % interval (Wilson)."""
        return self.right / self.n, rate_interval(self.right, self.n) or (0.0, 1.0)


@dataclass(kw_only=True, repr=False)
class Optimization(Displayed):
    """One optimization, as the `optimization.json` of its folder tells it."""

    work: OptimizationFolder
    cell: CellSpec
    optimizer: OptimizerSpec
    description: str
    identity: dict[str, Any]
    train: int
    validation: int
    tested: int
    """Numbers of questions: that could be shown, that candidates were chosen by, and that neither knows."""
    dropped: tuple[str, ...]
    """Keys of training questions that nearly repeat others, and were never shown."""
    candidates: int
    """Programs that its budget allowed."""
    started_at: str
    """ISO 8601, with the time zone."""
    ending: Ending = "interrupted"
    why: str | None = None
    """What ended it early; None if nothing did."""
    seconds: float = 0.0
    calls: int = 0
    """Calls of all models, those that found demonstrations and wrote instructions included."""
    tokens: int = 0
    trials: tuple[Trial, ...] = ()
    """By number."""

    @property
    def folder(self) -> Path:
        """Where the best program lies: `program.load` takes it."""
        return self.work.path

    @property
    def title(self) -> str:
        """Optimizer, program, model, data set and language."""
        cell = self.cell
        return " · ".join((self.optimizer.kind, cell.program.label, cell.model.label, cell.dataset.label))

    @property
    def best(self) -> Trial | None:
        """The trial with the highest score, of equal ones the first."""
        return max(self.trials, key=lambda trial: (trial.score, -trial.number), default=None)

    @property
    def finished(self) -> bool:
        """Whether nothing is left to try, or to spend."""
        return self.ending in ("complete", "budget")

    def keep(self, meter: Meter) -> None:
        """Write the best program and what is known and spent by now; raises `RunFolderError` if that fails."""
        self.trials = tuple(sorted(self.trials, key=lambda trial: trial.number))
        self.seconds = round(time.monotonic() - meter.start, 2)
        self.calls, self.tokens = meter.spent["calls"], meter.spent["tokens"]
        if self.best is not None:
            self.work.write(PROGRAM, (self.work.programs / self.best.digest / PROGRAM).read_bytes())
        self.work.write(REPORT, render_markdown(self.title, self._report()))
        record = _FORM.dump_python(self, mode="json", exclude={"work"})
        # Last: what it calls complete is never begun again, whatever is missing.
        self.work.write_json(RECORD, {"id": self.work.name, "schema": IDENTITY_SCHEMA, **record})

    @staticmethod
    def load(folder: OptimizationFolder) -> "Optimization":
        """Load the optimization in `folder`; raises `RunFolderError` if there is none of this version."""
        record = folder.read_json(RECORD)
        try:
            if record.get("schema") == IDENTITY_SCHEMA:
                return _FORM.validate_python({**record, "work": folder})
        except ValidationError:
            pass
        raise RunFolderError(f"{folder.path} was made by another version of medexam: optimize its spec again")

    def blocks(self) -> list[Block]:
        """List every trial with its scores, what it cost, and where the best program lies."""
        early = f"; ended early: {self.why}" if self.why else ""
        metric, trials = self.optimizer.metric, self.trials
        name = {"exam_score": "Exam score", "log_probability": "log p, nats"}.get(metric) or short_name(metric)
        scores = {} if metric == "accuracy" else {name: [f"{trial.score:.3f}" for trial in trials]}
        columns = {
            "Trial": [str(trial.number) for trial in trials],
            "Program": [trial.name + (" (best)" if trial == self.best else "") for trial in trials],
            "Demos": [str(trial.demos) for trial in trials],
            "n": [str(trial.n) for trial in trials],
            "Accuracy": [with_interval(percent(share), ends) for share, ends in (trial.accuracy for trial in trials)],
            **scores,
            "Calls": [f"{trial.calls:,}" for trial in trials],
            "No answer": [str(trial.unanswered) for trial in trials],
        }
        caption, rows = f"Percent of n, with a 95 % interval ({WILSON}).", tuple(zip(*columns.values(), strict=True))
        return [
            Table(self.title, tuple(columns), rows, text_columns=2, caption=caption),
            Unbroken(f"{self.calls:,} calls, {self.tokens:,} tokens, {self.seconds:.0f} s{early}."),
            Unbroken("The best looks better on these questions than on others: compare it on the tested ones."),
            Unbroken(f"Program, demonstrations and report are in {self.folder}"),
        ]

    def _report(self) -> Iterator[Block]:
        if self.description:
            yield self.description
        yield (
            f"Demonstrations from {self.train} training questions, chosen on {self.validation} validation questions; "
            f"the {self.tested} tested questions were not used. {len(self.dropped)} training questions were left out, "
            "because they nearly repeat tested or validation questions."
        )
        yield from (f"Answered by {model.identity.describe()}." for model in read_models(self.work).values())
        yield from self.blocks()[:-1]
        state = {} if self.best is None else json.loads((self.folder / PROGRAM).read_text(encoding="utf-8"))
        for name, part in predictor_states(state).items():
            yield f"Instructions of {name or 'the predictor'}:"
            yield fenced(part["signature"]["instructions"])
            if self.best is not None and (pool := len(part["demos"])) > self.best.demos:
                yield f"Each prompt shows the {self.best.demos} most similar of {pool} training questions."
                continue
            for number, demo in enumerate(part["demos"], start=1):
                yield f"Demonstration {number}:"
                yield fenced("\n".join(f"{field}: {_printed(value)}" for field, value in demo.items()))


_FORM = TypeAdapter(Optimization)


def _printed(value: Any) -> Any:
    return Question.model_validate(value).printed if isinstance(value, dict) and "stem" in value else value
