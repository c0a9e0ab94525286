"""What `medexam optimize` shows: what may be tried, a bar for each program that is asked, and the trials."""

from dataclasses import replace
from typing import Any

from medexam.distributions import WILSON
from medexam.experiments.entry.terminal import Terminal
from medexam.experiments.optimize.optimization import Optimization
from medexam.experiments.optimize.outcome import trials_table
from medexam.experiments.optimize.plan import OptimizationPlan
from medexam.experiments.report.shown import Unbroken, print_blocks
from medexam.specs.names import short_name
from medexam.tables import Table


def optimization_plan_document(plan: OptimizationPlan) -> dict[str, Any]:
    """Build what would be tried, JSON-ready."""
    spec = plan.optimizer
    return {
        "id": plan.folder.name,
        "folder": str(plan.folder.path.resolve()),
        "optimizer": spec.model_dump(mode="json"),
        "program": plan.spec.label,
        "model": plan.cell.model.label,
        "train": len(plan.exams.train.questions),
        "dropped": list(plan.exams.duplicates),
        "validation": len(plan.exams.validation.questions),
        "tested": len(plan.exams.tested.questions),
        "candidates": plan.candidates,
        "calls_per_trial": plan.calls.trial,
        "most_calls": None if plan.calls.is_least else plan.most_calls,
        "least_calls": plan.most_calls if plan.calls.is_least else None,
        "writing_calls": plan.calls.writing,
    }


def print_optimization_plan(plan: OptimizationPlan) -> None:
    """Print what would be tried, as a table."""
    spec, exams = plan.optimizer, plan.exams
    rows = {
        "optimizer": f"{short_name(spec.kind)}, by {short_name(spec.metric).replace('_', ' ')}",
        "program": f"{plan.spec.label}, {plan.cell.model.label}, {plan.cell.dataset.language}",
        "training questions": (
            f"{len(exams.train.questions):,}, without {len(exams.duplicates)} that nearly repeat others"
        ),
        "validation questions": f"{len(exams.validation.questions):,}",
        "tested questions": f"{len(exams.tested.questions):,}, not used by the optimization",
        "programs": f"{plan.candidates}"
        + (f" of {spec.programs}, as the budget allows" if plan.candidates < spec.programs else ""),
        "calls": _calls(plan),
        "budget": _budget(plan),
    }
    print_blocks(Terminal(), [Table(plan.folder.name, ("What", "How"), tuple(rows.items()), text_columns=2)])


def optimization_document(optimization: Optimization) -> dict[str, Any]:
    """Build the optimization, JSON-ready."""
    return {
        "id": optimization.folder.name,
        "folder": str(optimization.folder.path.resolve()),
        "optimizer": optimization.optimizer.model_dump(mode="json"),
        "ending": optimization.ending.value,
        "why": optimization.why,
        "seconds": optimization.seconds,
        "calls": optimization.spent.calls,
        "tokens": optimization.spent.tokens,
        "models": [{"print": model.print, "name": model.name} for model in optimization.models],
        "trials": [trial.to_json() for trial in optimization.trials],
        "best": optimization.best.number if optimization.best else None,
    }


def print_optimization(optimization: Optimization) -> None:
    """Print the trials as a table."""
    table = replace(trials_table(optimization, brief=True), caption=f"Percent of n, with a 95 % interval ({WILSON}).")
    early = f"; ended early: {optimization.why}" if optimization.why else ""
    lines = [
        f"{optimization.spent.calls:,} calls ({optimization.beside.calls:,} outside the trials), "
        f"{optimization.spent.tokens:,} tokens, {optimization.seconds:.0f} s{early}",
        "The chosen program looks better on these questions than on others; compare it on the tested ones.",
        f"Program, demonstrations and report are in {optimization.folder.path}",
    ]
    print_blocks(Terminal(), [table, *map(Unbroken, lines)])


def _calls(plan: OptimizationPlan) -> str:
    """Say how many calls trials and demonstrations take, and how many the writing of instructions."""
    bound = "at least" if plan.calls.is_least else "at most"
    own = "; the calls of your module or optimizer are known only afterwards" if plan.calls.is_least else ""
    writing = f", and about {plan.calls.writing:,} for new instructions" if plan.calls.writing else ""
    return f"{bound} {plan.most_calls:,}{writing}{own}"


def _budget(plan: OptimizationPlan) -> str:
    spec = plan.optimizer
    limits = {"calls": spec.max_calls, "tokens": spec.max_tokens, "minutes": spec.max_minutes}
    return ", ".join(f"{value:,} {name}" for name, value in limits.items() if value is not None) or "no limit"
