"""What `medexam optimize` shows: what may be tried, a bar for each program that is asked, and the trials."""

from typing import Any

from medexam.experiments.entry.terminal import Terminal
from medexam.experiments.optimize.optimization import Optimization
from medexam.experiments.optimize.plan import OptimizationPlan
from medexam.experiments.report.shown import Unbroken, print_blocks
from medexam.tables import Table, flatten


def optimization_plan_document(plan: OptimizationPlan) -> dict[str, Any]:
    """Build what would be tried, JSON-ready."""
    optimization = plan.optimization
    folder, cell = optimization.folder, optimization.cell
    return {
        "id": folder.name,
        "folder": str(folder.path.resolve()),
        "optimizer": optimization.optimizer.model_dump(mode="json"),
        "program": cell.program.label,
        "model": cell.model.label,
        "train": optimization.train,
        "dropped": list(optimization.dropped),
        "validation": optimization.validation,
        "tested": optimization.tested,
        "candidates": optimization.candidates,
        "calls_per_trial": plan.trial_calls,
        "most_calls": None if plan.is_least else plan.most_calls,
        "least_calls": plan.most_calls if plan.is_least else None,
    }


def print_optimization_plan(plan: OptimizationPlan) -> None:
    """Print what would be tried, as a table."""
    document = optimization_plan_document(plan) | {"dropped": len(plan.optimization.dropped)}
    rows = tuple(flatten(document).items())
    print_blocks(Terminal(), [Table("", ("What", "How"), rows, text_columns=2)])


def optimization_document(optimization: Optimization) -> dict[str, Any]:
    """Build the optimization, JSON-ready."""
    return {
        "id": optimization.folder.name,
        "folder": str(optimization.folder.path.resolve()),
        "optimizer": optimization.optimizer.model_dump(mode="json"),
        "ending": optimization.ending,
        "why": optimization.why,
        "seconds": optimization.seconds,
        "calls": optimization.calls,
        "tokens": optimization.tokens,
        "models": [{"print": model.print, "name": model.name} for model in optimization.models],
        "trials": [
            {**vars(trial), "accuracy": trial.accuracy, "accuracy_interval": list(trial.accuracy_interval)}
            for trial in optimization.trials
        ],
        "best": optimization.best.number if optimization.best else None,
    }


def print_optimization(optimization: Optimization) -> None:
    """Print the trials as a table."""
    lines = [
        optimization.costs,
        "The chosen program looks better on these questions than on others; compare it on the tested ones.",
        f"Program, demonstrations and report are in {optimization.folder.path}",
    ]
    print_blocks(Terminal(), [optimization.trials_table(), *map(Unbroken, lines)])
