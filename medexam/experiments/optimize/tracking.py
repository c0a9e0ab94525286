"""What MLflow receives of an optimization: its curve by trial, the best program as JSON, and how that asked.

`mlflow.dspy.log_model` is not used: in both of its modes it pickles the module and DSPy's settings. `program.json`,
which `program.load` of a spec reads, lies among the files of the run.
"""

from datetime import datetime
from itertools import accumulate

from medexam.experiments.optimize.folder import CALLS
from medexam.experiments.optimize.optimization import Optimization, OptimizationEnding
from medexam.experiments.report.escaping import disarm, paragraphs
from medexam.experiments.store.run_folder import RunFolder
from medexam.experiments.track.copies import NOTE, Copy, SentCopy, plain_files, send_copy
from medexam.experiments.track.traces import Asked, sample_keys
from medexam.plugins import __version__
from medexam.tables import flatten, percent, with_interval

_STATUS = {OptimizationEnding.INTERRUPTED: "KILLED", OptimizationEnding.FAILED: "FAILED"}


def track_optimization(optimization: Optimization, *, tracking_uri: str) -> SentCopy:
    """Send an optimization to the MLflow store at `tracking_uri`.

    Raises `TrackingError` when the store cannot be reached or written.
    """
    best, written, cell = optimization.best, optimization.written, optimization.cell
    values = {"trials": len(optimization.trials), "seconds": optimization.seconds}
    values |= {"calls": optimization.spent.calls, "tokens": optimization.spent.tokens}
    note = "No trial was completed."
    if best is not None:
        low, high = best.accuracy_interval
        values |= {"validation_accuracy": best.accuracy, "validation_accuracy_low": low, "best_trial": best.number}
        values |= {"validation_accuracy_high": high, "written_accuracy": written.accuracy if written else 0.0}
        note = (
            f"Best of {len(optimization.trials)}: **{best.name}** (trial {best.number}), "
            f"{with_interval(f'{percent(best.accuracy)} % right', (low, high))} of {best.n} validation questions; as "
            f"written {percent(written.accuracy if written else None)} %. It looks better on these questions than on "
            "others: compare both on the tested questions."
        )
    trials = sorted(optimization.trials, key=lambda trial: trial.number)
    peaks = accumulate((trial.score for trial in trials), max)
    began = round(1000 * datetime.fromisoformat(optimization.started_at).timestamp())
    copy = Copy(
        experiment=cell.name,
        name=f"optimize · {optimization.title}",
        kind="optimization",
        key=f"{optimization.folder.name} {optimization.started_at}",
        began=began,
        ended=began + round(1000 * optimization.seconds),
        status=_STATUS.get(optimization.ending, "FINISHED"),
        params=flatten({key: value for key, value in optimization.identity.items() if key != "words"})
        | {"program": cell.program.label, "model": cell.model.label, "language": cell.dataset.language},
        metrics=[
            *((name, float(value), 0) for name, value in values.items()),
            *(("score", trial.score, trial.number) for trial in trials),
            *(("best_so_far", peak, trial.number) for peak, trial in zip(peaks, trials, strict=True)),
        ],
        tags={
            "medexam.status": optimization.ending.value,
            "medexam.why": optimization.why or "",
            "medexam.run_dir": str(optimization.folder.path.resolve()),
            "medexam.version": __version__,
            NOTE: disarm("\n\n".join(filter(None, (paragraphs(optimization.description), note)))),
        },
        files=[path for path in plain_files(optimization.folder.path) if path.name != CALLS],
        prompt=f"{cell.program.label}-{cell.dataset.language}",
        sample=lambda: _read_sample(optimization),
    )
    return send_copy(copy, tracking_uri)


def _read_sample(optimization: Optimization) -> list[Asked]:
    """Read some predictions of the best program."""
    if optimization.best is None:
        return []
    digest = optimization.best.digest
    predictions = RunFolder(optimization.folder.programs / digest, digest).read_predictions()
    return [Asked(predictions[key]) for key in sample_keys(list(predictions), optimization.cell.trace_questions)]
