"""An optimization and its folder: what was asked for, what was tried, what was best, what it cost.

`optimization.json` says that, `models.json` which model answers, `prompt_models.json` which one writes instructions
where that is another. `cache/` holds the replies, `trials/` each program with its predictions; `program.json` is the
best one, and `report.md` is to read. It is no run folder: nothing here was asked of the tested questions.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from medexam.distributions import WILSON, rate_interval
from medexam.errors import RunFolderError
from medexam.experiments.optimize.meter import Ending, Meter
from medexam.experiments.report.markdown import fenced, render_markdown
from medexam.experiments.report.shown import Block
from medexam.experiments.store.answerers import read_models
from medexam.experiments.store.run_folder import WorkFolder, describe_fault
from medexam.model_identity import ModelIdentity
from medexam.programs.loading import PROGRAM, predictor_states
from medexam.questions import Question
from medexam.specs import CellSpec
from medexam.specs.identity import IDENTITY_SCHEMA
from medexam.specs.names import short_name
from medexam.specs.optimizer import OptimizerSpec
from medexam.tables import Table, percent, with_interval

RECORD = "optimization.json"
PROMPT_MODELS = "prompt_models.json"
REPORT = "report.md"


@dataclass(frozen=True)
class OptimizationFolder(WorkFolder):
    """The files of one optimization under `path`."""

    kind = "optimization"
    record = RECORD

    @property
    def programs(self) -> Path:
        """Where each trial has a folder."""
        return self.path / "trials"

    @property
    def cache(self) -> Path:
        """Where the replies lie."""
        return self.path / "cache"


@dataclass(frozen=True)
class Trial:
    """One program, asked every validation question."""

    number: int
    """0 is the program as it was written."""
    name: str
    """How it was made."""
    digest: str
    """Identity of its instructions and demonstrations."""
    demos: int
    """Demonstrations that its prompts show, over all predictors."""
    n: int
    right: int
    unanswered: int
    score: float
    """The optimizer's metric: of 1, or nats where that is a log-probability."""
    calls: int
    """Calls that its answers are made of."""

    @property
    def accuracy(self) -> float:
        """Right answers of all, of 1."""
        return self.right / self.n

    @property
    def accuracy_interval(self) -> tuple[float, float]:
        """95 % interval of the accuracy (Wilson)."""
        return rate_interval(self.right, self.n) or (0.0, 1.0)


@dataclass(kw_only=True)
class Optimization:
    """One optimization, as the `optimization.json` of its folder tells it."""

    folder: OptimizationFolder
    cell: CellSpec
    optimizer: OptimizerSpec
    description: str
    identity: dict[str, Any]
    train: int
    """Questions that could be shown."""
    validation: int
    """Questions that candidates were chosen by."""
    tested: int
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
    def title(self) -> str:
        """Optimizer, program, model, data set and language."""
        cell = self.cell
        return " · ".join((self.optimizer.kind, cell.program.label, cell.model.label, cell.dataset.label))

    @property
    def best(self) -> Trial | None:
        """The trial with the highest score, of equal ones the first; None if none was completed."""
        return max(self.trials, key=lambda trial: (trial.score, -trial.number), default=None)

    @property
    def models(self) -> tuple[ModelIdentity, ...]:
        """What answered; empty before a model was reached."""
        return tuple(model.identity for model in read_models(self.folder).values())

    @property
    def finished(self) -> bool:
        """Whether nothing is left to try, or to spend."""
        return self.ending in ("complete", "budget")

    @property
    def costs(self) -> str:
        """What it cost, and what ended it early."""
        early = f"; ended early: {self.why}" if self.why else ""
        return f"{self.calls:,} calls, {self.tokens:,} tokens, {self.seconds:.0f} s{early}"

    def keep(self, meter: Meter) -> None:
        """Write what is known and spent by now."""
        self.seconds, self.calls = round(meter.seconds, 2), meter.spent["calls"]
        self.tokens = meter.spent["tokens"]
        self.write()

    def write(self) -> None:
        """Write the best program and what is known now; raises `RunFolderError` if that fails."""
        folder, best = self.folder, self.best
        if best is not None:
            try:
                folder.write(PROGRAM, (folder.programs / best.digest / PROGRAM).read_bytes())
            except OSError as error:
                raise RunFolderError(f"cannot write {folder.path / PROGRAM}: {error}") from None
        folder.write(REPORT, render_markdown(self.title, self._report()))
        record = _FORM.dump_python(self, mode="json", exclude={"folder"})
        # Last: what it calls complete is never begun again, whatever is missing.
        folder.write_json(RECORD, {"id": folder.name, "schema": IDENTITY_SCHEMA, **record})

    @staticmethod
    def load(folder: OptimizationFolder) -> "Optimization":
        """Load the optimization in `folder`; raises `RunFolderError` if there is none of this version."""
        record = folder.read_json(RECORD)
        if record.get("schema") != IDENTITY_SCHEMA:
            raise RunFolderError(f"{folder.path} was made by another version of medexam: optimize its spec again")
        try:
            return _FORM.validate_python({**record, "folder": folder})
        except ValidationError as error:
            raise RunFolderError(
                f"{folder.path / RECORD} is not of this version ({describe_fault(error)}); optimize again"
            ) from None

    def trials_table(self) -> Table:
        """List every trial with its scores."""
        trials, best, metric = self.trials, self.best, self.optimizer.metric
        columns = {
            "Trial": [str(trial.number) for trial in trials],
            "Program": [trial.name + (" (best)" if trial == best else "") for trial in trials],
            "Demos": [str(trial.demos) for trial in trials],
            "n": [str(trial.n) for trial in trials],
            "Accuracy": [with_interval(percent(trial.accuracy), trial.accuracy_interval) for trial in trials],
        }
        if metric != "accuracy":
            head = {"exam_score": "Exam score", "log_probability": "log p, nats"}.get(metric, short_name(metric))
            columns[head] = [f"{trial.score:.3f}" for trial in trials]
        columns["Calls"] = [f"{trial.calls:,}" for trial in trials]
        columns["No answer"] = [str(trial.unanswered) for trial in trials]
        rows = tuple(zip(*columns.values(), strict=True))
        caption = f"Percent of n, with a 95 % interval ({WILSON})."
        return Table(self.title, tuple(columns), rows, text_columns=2, caption=caption)

    def _report(self) -> Iterator[Block]:
        if self.description:
            yield self.description
        yield (
            f"Demonstrations from {self.train} training questions, chosen by "
            f"{short_name(self.optimizer.metric).replace('_', ' ')} on {self.validation} validation questions; the "
            f"{self.tested} tested questions were not used. {len(self.dropped)} training questions were "
            "left out, because they nearly repeat tested or validation questions."
        )
        yield f"{self.costs}."
        for model in self.models:
            yield f"Answered by {model.describe()}."
        if self.best is None:
            yield "No trial was completed."
            return
        yield self.trials_table()
        yield (
            "The chosen program looks better on these questions than on others. Run both programs on the tested "
            "questions, and compare them."
        )
        state = json.loads((self.folder.path / PROGRAM).read_text(encoding="utf-8"))
        for name, part in predictor_states(state).items():
            yield f"Instructions of {name or 'the predictor'}:"
            yield fenced(part["signature"]["instructions"])
            if (pool := len(part["demos"])) > self.best.demos:
                yield f"Each prompt shows the {self.best.demos} most similar of {pool} training questions."
                continue
            for number, demo in enumerate(part["demos"], start=1):
                yield f"Demonstration {number}:"
                yield fenced("\n".join(f"{field}: {_printed(value)}" for field, value in demo.items()))


_FORM = TypeAdapter(Optimization)


def _printed(value: Any) -> Any:
    """Return a question as text, and any other value of a demonstration as it is."""
    return Question.model_validate(value).printed if isinstance(value, dict) and "stem" in value else value
