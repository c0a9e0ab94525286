"""An optimization as one value, read from its folder: what was tried, what was best, what it cost."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import TypeAdapter, ValidationError

from medexam.errors import RunFolderError
from medexam.experiments.optimize.call_log import CallUsage
from medexam.experiments.optimize.folder import RECORD, TRIALS, OptimizationFolder
from medexam.experiments.optimize.trials import Trial, best_trial
from medexam.experiments.store.answerers import read_models
from medexam.model_identity import ModelIdentity
from medexam.specs import CellSpec
from medexam.specs.identity import IDENTITY_SCHEMA
from medexam.specs.optimizer import OptimizerSpec


class OptimizationEnding(StrEnum):
    """How an optimization ended."""

    COMPLETE = "complete"
    """Everything was tried."""
    BUDGET = "budget"
    """What it may spend is spent."""
    INTERRUPTED = "interrupted"
    """Ctrl-C."""
    FAILED = "failed"
    """The models do not answer."""


@dataclass(frozen=True, kw_only=True)
class Optimization:
    """One optimization, as its folder tells it; `optimization.json` holds the fields from `cell` to `beside`."""

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
    candidates: int
    """Programs that its budget allowed."""
    dropped: tuple[str, ...]
    """Keys of training questions that nearly repeat others, and were never shown."""
    started_at: str
    """ISO 8601, with the time zone."""
    ending: OptimizationEnding
    why: str | None
    """What ended it early; None if nothing did."""
    seconds: float
    spent: CallUsage
    beside: CallUsage
    """What of it went into anything but trials: bootstrapping and writing instructions."""
    trials: tuple[Trial, ...]
    """By number."""
    models: tuple[ModelIdentity, ...]
    """What answered; empty before a model was reached."""

    @property
    def title(self) -> str:
        """Optimizer, program, model, data set and language."""
        cell = self.cell
        return " · ".join((self.optimizer.kind, cell.program.label, cell.model.label, cell.dataset.label))

    @property
    def best(self) -> Trial | None:
        """The trial with the highest score; None if not even the program as written was tried."""
        return best_trial(self.trials) if self.trials else None

    @property
    def written(self) -> Trial | None:
        """The trial of the program as written; None if it was not tried to the end."""
        return next((trial for trial in self.trials if trial.number == 0), None)

    @property
    def finished(self) -> bool:
        """Whether nothing is left to try, or to spend."""
        return self.ending in (OptimizationEnding.COMPLETE, OptimizationEnding.BUDGET)


_FORM = TypeAdapter(Optimization)


def write_optimization(optimization: Optimization) -> None:
    """Write what is known now; raises `RunFolderError` if that fails."""
    record = _FORM.dump_python(optimization, mode="json", exclude={"folder", "trials", "models"})
    optimization.folder.write_json(TRIALS, {"trials": [trial.to_json() for trial in optimization.trials]})
    optimization.folder.write_json(RECORD, {"id": optimization.folder.name, "schema": IDENTITY_SCHEMA, **record})


def load_optimization(folder: OptimizationFolder) -> Optimization:
    """Load the optimization in `folder`; raises `RunFolderError` if there is none of this version."""
    record, trials = folder.read_json(RECORD), folder.read_json(TRIALS)
    other_fields = {"folder": folder, "trials": trials.get("trials"), "models": read_identities(folder)}
    if record.get("schema") != IDENTITY_SCHEMA:
        raise RunFolderError(f"{folder.path} was made by another version of medexam: optimize its spec again")
    try:
        return _FORM.validate_python({**record, **other_fields})
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, first["loc"]))
        raise RunFolderError(
            f"{folder.path / RECORD} is not of this version ({location}: {first['msg']}); optimize again"
        ) from None


def read_identities(folder: OptimizationFolder) -> tuple[ModelIdentity, ...]:
    """Read the models that answered, in the order of their first replies."""
    return tuple(model.identity for model in read_models(folder).values())
