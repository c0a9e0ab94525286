"""The tables of a page, in its order: those of the terminal and of Markdown, set side by side.

It computes no score and knows nothing of HTML.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from medexam.errors import DatasetError
from medexam.experiments.compare.result import describe_all
from medexam.experiments.compare.runs import compare_runs
from medexam.experiments.report.comparison_tables import breakdown_tables, comparison_lines, overall_tables, verdicts
from medexam.experiments.report.run_blocks import facet_matrices
from medexam.experiments.report.run_tables import cost_tables, describe_settings, failure_tables
from medexam.experiments.report.tables import facet_tables
from medexam.experiments.store.stored_run import StoredRun
from medexam.measures.evidence.kinds import evidence_tables
from medexam.tables import NONE, Table

OPEN_PAIRS = 3
"""Pairs of a comparison whose verdicts stand in the open; more are folded, for the tables say the same."""


@dataclass(frozen=True)
class Section:
    """One part of the page that a reader opens."""

    title: str
    lines: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    sections: tuple["Section", ...] = ()


def build_sections(runs: Sequence[StoredRun], names: Sequence[str], added: Sequence[Table]) -> list[Section]:
    """Build every section below the questions; `names` tell the runs apart; `added` are tables of packages."""
    several = len(runs) > 1
    facets = [facet_tables(run) for run in runs]
    details = (
        Section(
            name, (), (*(tables if several else ()), *evidence_tables(run.metrics.evidence), describe_settings(run))
        )
        for run, name, tables in zip(runs, names, facets, strict=True)
    )
    sections = [
        Section("Runs", tables=(_runs(runs, names),)),
        *_comparisons(runs),
        *(Section(table.title, tables=(table,)) for table in added),
        Section("Scores by group", tables=tuple(facet_matrices(runs) if several else facets[0])),
        Section("Costs", tables=tuple(cost_tables(runs))),
        Section("Failed questions", tables=tuple(failure_tables(runs))),
        Section("Details of each run", sections=tuple(details)),
    ]
    return [section for section in sections if section.lines or section.tables or section.sections]


def _runs(runs: Sequence[StoredRun], names: Sequence[str]) -> Table:
    rows = tuple(
        (
            *(name, run.record.cell.name, run.model or "none", run.record.cell.dataset.label, str(run.folder.path)),
            str(run.environment.get("ended_at") or run.environment.get("started_at") or NONE)[:16].replace("T", " "),
            str(run.metrics.n),
            f"{run.metrics.exams} exams" if run.metrics.exams else "",
            run.status,
        )
        for run, name in zip(runs, names, strict=True)
    )
    headers = ("Run", "Experiment", "Model", "Data set", "Folder", "When", "n", "Of", "State")
    caption = "n: questions scored. Model none: a control, which asks no model. When: the last time it asked, UTC."
    return Table("Runs", headers, rows, text_columns=6, caption=caption)


def _comparisons(runs: Sequence[StoredRun]) -> list[Section]:
    """Build one section for each data set that two runs or more were asked."""
    runs_by_dataset: dict[str, list[StoredRun]] = {}
    for run in runs:
        runs_by_dataset.setdefault(run.record.cell.dataset.name, []).append(run)
    titles = {dataset: f" on {dataset}" if len(runs_by_dataset) > 1 else "" for dataset in runs_by_dataset}
    return [
        _compare(f"Paired comparison{titles[dataset]}", group)
        for dataset, group in runs_by_dataset.items()
        if len(group) > 1
    ]


def _compare(title: str, runs: Sequence[StoredRun]) -> Section:
    try:
        comparison = compare_runs(tuple(run.folder for run in sorted(runs, key=lambda run: run.mixed)))
    except DatasetError as error:
        return Section(title, (f"{describe_all(runs).capitalize()} cannot be compared: {error}.",))
    lines, sentences = comparison_lines(comparison), verdicts(comparison)
    folds = [Section("By group, every run", tables=tuple(breakdown_tables(comparison)))]
    if len(sentences) > OPEN_PAIRS:
        folds.insert(0, Section("In words", tuple(sentences)))
        sentences = []
    folds = [fold for fold in folds if fold.lines or fold.tables]
    return Section(title, (*sentences, *lines), tuple(overall_tables(comparison)), tuple(folds))
