"""Runs of one family side by side, and how they are called in tables."""

from collections.abc import Sequence
from dataclasses import replace

from medexam.experiments.compare.ranking import describe_difference, find_standing
from medexam.experiments.compare.runs import label_rows, run_names
from medexam.experiments.report.run_tables import own_tables
from medexam.experiments.store.stored_run import StoredRun
from medexam.measures.tables import TableRun, breakdowns, legend, overview
from medexam.tables import Table

BOLD = "Bold: better than every other run, by McNemar's test after Holm, however the replies are read."


def overview_tables(runs: Sequence[StoredRun]) -> list[Table]:
    """Build the comparison of runs of one family, the best first, and what their own metrics say."""
    if describe_difference(runs) is None:
        runs = sorted(runs, key=lambda run: -(run.score or 0))
    return [comparison(runs), *own_tables(runs)]


def comparison(runs: Sequence[StoredRun]) -> Table:
    """Build runs of one family side by side, the scores of the best stressed; what they share goes into the title."""
    table = overview(label_runs(runs)[0], table_runs(runs))
    caption = legend(runs[0].benchmark, [run.metrics for run in runs])
    return replace(table, caption=f"{caption} {BOLD}" if table.best else caption)


def facet_tables(run: StoredRun) -> list[Table]:
    """Build tables of the scores of one run by each facet."""
    return breakdowns(run.benchmark, run.metrics)


def split_families(runs: Sequence[StoredRun]) -> list[list[StoredRun]]:
    """Split the runs into those that share a table, in their order: first those whose answers are right or wrong."""
    families: dict[str, list[StoredRun]] = {}
    for run in runs:
        families.setdefault(run.benchmark.family, []).append(run)
    return sorted(families.values(), key=lambda family: not family[0].benchmark.right_or_wrong)


def table_runs(runs: Sequence[StoredRun]) -> list[TableRun]:
    """Return the runs as a benchmark's tables need them."""
    names, labels = run_names(runs), label_runs(runs)[1]
    standing = find_standing(runs, names)
    best = standing.first if standing is not None and standing.is_best else None
    return [
        TableRun(name, {header: values[position] for header, values in labels.items()}, run.metrics, run is best)
        for position, (name, run) in enumerate(zip(names, runs, strict=True))
    ]


def label_runs(runs: Sequence[StoredRun]) -> tuple[str, dict[str, list[str]]]:
    """Return a title with what all runs share, and a column, by its header, for each thing in which they differ.

    Controls beside runs of one model are named in the title as asking none.
    """
    labels = label_rows(runs)
    experiments = [run.record.cell.name for run in runs]
    title = [", ".join(dict.fromkeys(experiments))]
    models = list(dict.fromkeys(run.model for run in runs if run.model is not None))
    controls = dict.fromkeys(run.program for run in runs if run.model is None)
    if len(models) == 1:
        title.append(models[0] + (f" (no model: {', '.join(controls)})" if controls else ""))
    if "Data set" not in labels:
        title.append(runs[0].record.cell.dataset.label)
    return " · ".join(title), labels
