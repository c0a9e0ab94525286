"""What MLflow receives of an optimization: its curve by trial, its report, its best program, and how that asked.

`mlflow.dspy.log_model` is not used: in both of its modes it pickles the module and DSPy's settings. `program.json`,
which `program.load` of a spec reads, lies among the files of the run.
"""

from datetime import datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING

from medexam.experiments.optimize.folder import CALLS, REPORT
from medexam.experiments.optimize.optimization import Optimization, OptimizationEnding
from medexam.experiments.store.run_folder import RunFolder
from medexam.experiments.track.copies import NOTE, Copy, sample_keys, send_copies
from medexam.predictions import Prediction
from medexam.tables import flatten

if TYPE_CHECKING:
    from mlflow.entities import RunInfo

_STATUS = {OptimizationEnding.INTERRUPTED: "KILLED", OptimizationEnding.FAILED: "FAILED"}


def track_optimization(optimization: Optimization, *, tracking_uri: str) -> "RunInfo":
    """Send an optimization to the MLflow store at `tracking_uri`.

    Raises `TrackingError` when the store cannot be reached or written.
    """
    best, cell, folder, spent = optimization.best, optimization.cell, optimization.folder, optimization.spent
    values: dict[str, float] = {"trials": len(optimization.trials), "calls": spent.calls, "tokens": spent.tokens}
    if best is not None:
        low, high = best.accuracy_interval
        values |= {"validation_accuracy": best.accuracy, "validation_accuracy_low": low, "best_trial": best.number}
        values |= {"validation_accuracy_high": high}
    metrics = [(name, float(value), 0) for name, value in values.items()]
    peaks = accumulate((trial.score for trial in optimization.trials), max)
    for trial, peak in zip(optimization.trials, peaks, strict=True):
        metrics += [("score", trial.score, trial.number), ("best_so_far", peak, trial.number)]
    ended = datetime.fromisoformat(optimization.started_at) + timedelta(seconds=optimization.seconds)
    report = (folder.path / REPORT).read_text(encoding="utf-8") if (folder.path / REPORT).exists() else ""
    names = {"program": cell.program.label, "model": cell.model.label, "language": cell.dataset.language}
    copy = Copy(
        experiment=cell.name,
        name=f"optimize · {optimization.title}",
        kind="optimization",
        key=folder.name,
        started_at=optimization.started_at,
        ended_at=ended.isoformat(),
        seconds=optimization.seconds,
        status=_STATUS.get(optimization.ending, "FINISHED"),
        params=flatten({key: value for key, value in optimization.identity.items() if key != "words"}) | names,
        metrics=metrics,
        tags={"medexam.status": optimization.ending.value, "medexam.run_dir": str(folder.path.resolve()), NOTE: report},
        folder=folder.path,
        without=(CALLS,),
        sample=lambda: _read_sample(optimization),
    )
    return send_copies([copy], tracking_uri)[0]


def _read_sample(optimization: Optimization) -> list[tuple[Prediction, dict[str, str]]]:
    """Read some predictions of the best program."""
    if optimization.best is None:
        return []
    digest = optimization.best.digest
    predictions = RunFolder(optimization.folder.programs / digest, digest).read_predictions()
    return [(predictions[key], {}) for key in sample_keys(predictions, optimization.cell.trace_questions)]
