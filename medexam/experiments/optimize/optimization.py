"""An optimization as one value, read from its folder: what was tried, what was best, what it cost."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from medexam.errors import RunFolderError
from medexam.experiments.optimize.call_log import CallUsage
from medexam.experiments.optimize.folder import RECORD, TRIALS, OptimizationFolder
from medexam.experiments.optimize.plan import OptimizationPlan
from medexam.experiments.optimize.trials import Trial, best_trial
from medexam.experiments.store.answerers import read_models
from medexam.model_identity import ModelIdentity
from medexam.specs import CellSpec, OptimizerSpec
from medexam.specs.identity import IDENTITY_SCHEMA


class Ending(StrEnum):
    """How an optimization ended."""

    COMPLETE = "complete"
    """Everything was tried."""
    BUDGET = "budget"
    """What it may spend is spent."""
    INTERRUPTED = "interrupted"
    """Ctrl-C."""
    FAILED = "failed"
    """The models do not answer."""


@dataclass(frozen=True)
class Optimization:
    """One optimization, as its folder tells it."""

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
    dropped: int
    """Training questions that are nearly others, and were never shown."""
    started_at: str
    """ISO 8601, with the time zone."""
    ending: Ending
    why: str | None
    """What ended it early; None where nothing did."""
    seconds: float
    spent: CallUsage
    beside: CallUsage
    """What of it went into anything but trials: bootstrapping and writing instructions."""
    trials: tuple[Trial, ...]
    """By number."""
    candidates: int | None
    """Programs that its budget allowed; None in folders of earlier versions."""
    models: tuple[ModelIdentity, ...]
    """What answered; empty in folders of earlier versions, and before a model was reached."""

    @property
    def title(self) -> str:
        """Optimizer, program, model, data set and language."""
        cell = self.cell
        words = (
            self.optimizer.kind,
            cell.program.label,
            cell.model.label,
            cell.dataset.label,
        )
        return " · ".join(words)

    @property
    def best(self) -> Trial | None:
        """The trial with the highest score; None where not even the program as written was tried."""
        return best_trial(self.trials) if self.trials else None

    @property
    def finished(self) -> bool:
        """Whether nothing is left to try, or to spend."""
        return self.ending in (Ending.COMPLETE, Ending.BUDGET)


def write_optimization(
    plan: OptimizationPlan,
    *,
    started_at: str,
    ending: Ending,
    why: str | None,
    seconds: float,
    spent: CallUsage,
    trials: Sequence[Trial],
) -> Optimization:
    """Write what is known now; raises `RunFolderError` where that fails."""
    beside = CallUsage(
        spent.calls - sum(trial.calls for trial in trials), spent.tokens - sum(trial.tokens for trial in trials)
    )
    record = {
        "id": plan.folder.name,
        "schema": IDENTITY_SCHEMA,
        "cell": plan.cell.model_dump(mode="json"),
        "optimizer": plan.optimizer.model_dump(mode="json"),
        "description": plan.description,
        "identity": plan.identity,
        "train": len(plan.train.questions),
        "validation": len(plan.validation.question_set.questions),
        "tested": plan.tested,
        "candidates": plan.candidates,
        "dropped": list(plan.dropped),
        "started_at": started_at,
        "ending": ending.value,
        "why": why,
        "seconds": round(seconds, 2),
        "spent": vars(spent),
        "beside": vars(beside),
    }
    plan.folder.write_json(TRIALS, {"trials": [trial.to_json() for trial in trials]})
    plan.folder.write_json(RECORD, record)
    return load_optimization(plan.folder)


def load_optimization(folder: OptimizationFolder) -> Optimization:
    """The optimization in `folder`; raises `RunFolderError` where there is none of this version."""
    record, trials = folder.read_json(RECORD), folder.read_json(TRIALS)
    models = tuple(known.identity for known in read_models(folder).values())
    known = {field.name for field in fields(Trial)}
    try:
        return Optimization(
            folder=folder,
            cell=CellSpec.model_validate(record["cell"]),
            optimizer=OptimizerSpec.model_validate(record["optimizer"]),
            description=record["description"],
            identity=record["identity"],
            train=record["train"],
            validation=record["validation"],
            tested=record["tested"],
            dropped=len(record["dropped"]),
            started_at=record["started_at"],
            ending=Ending(record["ending"]),
            why=record["why"],
            seconds=record["seconds"],
            spent=CallUsage(**record["spent"]),
            beside=CallUsage(**record["beside"]),
            trials=tuple(
                Trial(**{name: value for name, value in row.items() if name in known}) for row in trials["trials"]
            ),
            candidates=record.get("candidates"),
            models=models,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RunFolderError(f"{folder.path / RECORD} is not of this version ({error!r}); optimize again") from None
