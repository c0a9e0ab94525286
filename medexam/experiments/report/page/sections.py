"""The tables of a page, in its order: those of the terminal and of Markdown, set side by side.

It computes no score and knows nothing of HTML.
"""

from collections.abc import Sequence
from typing import NamedTuple

from medexam.errors import DatasetError
from medexam.experiments.compare.result import describe_all
from medexam.experiments.compare.runs import compare_runs
from medexam.experiments.report.comparison_tables import breakdown_tables, comparison_lines, overall_tables, verdicts
from medexam.experiments.report.run_blocks import facet_matrices
from medexam.experiments.report.run_tables import cost_tables, describe_settings, failure_tables
from medexam.experiments.report.shown import Block
from medexam.experiments.report.tables import facet_tables
from medexam.experiments.store.stored_run import StoredRun
from medexam.measures.evidence.kinds import evidence_tables
from medexam.tables import NONE, Table

OPEN_PAIRS = 3
"""Pairs of a comparison whose verdicts stand in the open; more are folded, for the tables say the same."""


class Section(NamedTuple):
    """One part of the page that a reader opens."""

    title: str
    blocks: Sequence[Block]
    sections: Sequence["Section"] = ()


def build_sections(runs: Sequence[StoredRun], names: Sequence[str], added: Sequence[Table]) -> list[Section]:
    """Build every section below the questions; `names` tell the runs apart; `added` are tables of packages."""
    several = len(runs) > 1
    facets = [facet_tables(run) for run in runs]
    details = [
        Section(name, [*(tables if several else ()), *evidence_tables(run.metrics.evidence), describe_settings(run)])
        for run, name, tables in zip(runs, names, facets, strict=True)
    ]
    sections = [
        Section("Runs", [_runs(runs, names)]),
        *_comparisons(runs),
        *(Section(table.title, [table]) for table in added),
        Section("Scores by group", facet_matrices(runs) if several else facets[0]),
        Section("Costs", cost_tables(runs)),
        Section("Failed questions", failure_tables(runs)),
        Section("Details of each run", [], details),
    ]
    return [section for section in sections if section.blocks or section.sections]


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
    groups: dict[str, list[StoredRun]] = {}
    for run in sorted(runs, key=lambda run: run.mixed):
        groups.setdefault(run.record.cell.dataset.name, []).append(run)
    sections = []
    for dataset in dict.fromkeys(run.record.cell.dataset.name for run in runs):
        title = f"Paired comparison on {dataset}" if len(groups) > 1 else "Paired comparison"
        if len(groups[dataset]) < 2:
            continue
        try:
            comparison = compare_runs(tuple(run.folder for run in groups[dataset]))
        except DatasetError as error:
            sections.append(
                Section(title, [f"{describe_all(groups[dataset]).capitalize()} cannot be compared: {error}."])
            )
            continue
        sentences, by_group = verdicts(comparison), breakdown_tables(comparison)
        folds = [Section("In words", sentences)] if len(sentences) > OPEN_PAIRS else []
        folds += [Section("By group, every run", by_group)] if by_group else []
        blocks = [*([] if len(sentences) > OPEN_PAIRS else sentences), *comparison_lines(comparison)]
        sections.append(Section(title, [*blocks, *overall_tables(comparison)], folds))
    return sections
