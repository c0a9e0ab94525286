"""What MLflow receives of an optimization: its curve by trial, its report, its best program, and how that asked.

`mlflow.dspy.log_model` is not used: in both of its modes it pickles the module and DSPy's settings. `program.json`,
which `program.load` of a spec reads, lies among the files of the run.
"""

from medexam.experiments.optimize.folder import CALLS, REPORT
from medexam.experiments.optimize.optimization import Optimization, OptimizationEnding
from medexam.experiments.store.run_folder import RunFolder
from medexam.experiments.track.copies import NOTE, Copy, CopyIds, send_copies
from medexam.experiments.track.runs import read_sample
from medexam.tables import flatten

_STATUS = {OptimizationEnding.INTERRUPTED: "KILLED", OptimizationEnding.FAILED: "FAILED"}


def track_optimization(optimization: Optimization, *, tracking_uri: str) -> CopyIds:
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
    metrics += [("score", trial.score, trial.number) for trial in optimization.trials]
    report = (folder.path / REPORT).read_text(encoding="utf-8") if (folder.path / REPORT).exists() else ""
    names = {"program": cell.program.label, "model": cell.model.label, "language": cell.dataset.language}
    programs = [] if best is None else [RunFolder(folder.programs / best.digest, best.digest)]
    copy = Copy(
        experiment=cell.name,
        name=f"optimize · {optimization.title}",
        key=folder.name,
        started_at=optimization.started_at,
        seconds=optimization.seconds,
        status=_STATUS.get(optimization.ending, "FINISHED"),
        params=flatten({key: value for key, value in optimization.identity.items() if key != "words"}) | names,
        metrics=metrics,
        tags={"medexam.ending": optimization.ending.value, "medexam.run_dir": str(folder.path.resolve()), NOTE: report},
        files=[path for path in folder.path.iterdir() if path.name != CALLS],
        sample=lambda: [pair for program in programs for pair in read_sample(program, cell.trace_questions)],
    )
    return send_copies([copy], tracking_uri)[0]
