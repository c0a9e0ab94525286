"""The tables of a page, in its order: the builders of the terminal's and of Markdown's tables, set side by side.

It computes no score and knows nothing of HTML.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from medexam.errors import DatasetError
from medexam.experiments.compare.ranking import ranking_notes
from medexam.experiments.compare.result import describe_all
from medexam.experiments.compare.runs import compare_runs
from medexam.experiments.report.comparison_tables import comparison_lines, overall_tables, verdicts
from medexam.experiments.report.markdown import describe_settings
from medexam.experiments.report.own_tables import own_tables
from medexam.experiments.report.run_tables import cost_tables, failure_tables
from medexam.experiments.report.tables import BOLD, comparison, legend, table_runs
from medexam.experiments.store.stored_run import AnyRun
from medexam.tables import NONE, Captioned, Table


def stack(tables: Sequence[Table], names: Sequence[str]) -> list[Table]:
    """Stack tables of several runs, with the run's name before each row: one table for each set of headers."""
    stacked: dict[tuple[str, ...], Table] = {}
    for table, name in zip(tables, names, strict=True):
        rows = tuple((name, *cells) for cells in table.rows)
        before = stacked.get(table.headers)
        if before is None:
            stacked[table.headers] = replace(
                table, headers=("Run", *table.headers), rows=rows, best=frozenset(), text_columns=table.text_columns + 1
            )
        else:
            stacked[table.headers] = replace(before, rows=before.rows + rows)
    return list(stacked.values())


def merge_captions(captions: Sequence[str], names: Sequence[str]) -> str:
    """Merge captions of several runs: the sentences that all of them have, then each run's own under its name."""
    sentences = [re.split(r"(?<=\.) ", caption) for caption in captions]
    shared_sentences = (
        [sentence for sentence in sentences[0] if all(sentence in others for others in sentences)] if sentences else []
    )
    run_notes = [
        f"{name}: {' '.join(own_sentences)}"
        for name, run_sentences in zip(names, sentences, strict=True)
        if (own_sentences := [sentence for sentence in run_sentences if sentence not in shared_sentences])
    ]
    return " ".join([*shared_sentences, *run_notes])


SAID_PAIRS = 3
"""Pairs of a comparison whose verdicts stand in the open; more are folded, for the tables say the same."""


@dataclass(frozen=True)
class Fold:
    """Tables and sentences that a reader opens when they want them."""

    title: str
    tables: tuple[Captioned, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class PageSection:
    """One part of the page."""

    anchor: str
    title: str
    tables: tuple[Captioned, ...] = ()
    lines: tuple[str, ...] = ()
    """Sentences before the tables."""
    folds: tuple[Fold, ...] = ()


def first_screen_tables(runs: Sequence[AnyRun], reading: str) -> list[Captioned]:
    """Build the tables of the first screen: the runs side by side, and their own metrics.

    `reading` ends the first one's caption.
    """
    overview = comparison(runs)
    read = " ".join(filter(None, [legend(runs), BOLD if overview.best else "", reading]))
    return [(replace(overview, title="Scores"), read), *own_tables(runs)]


def build_sections(runs: Sequence[AnyRun], names: Sequence[str], added: Sequence[Captioned]) -> list[PageSection]:
    """Build every section below the questions; `names` tell the runs apart, one each.

    `added` are the tables of installed packages, a section each.
    """
    several = len(runs) > 1
    groups = runs[0].benchmark.matrices(table_runs(runs)) if several else _breakdowns(runs[0])
    sections = [
        PageSection("runs", "Runs", (_runs(runs, names),)),
        *_compared(runs),
        *(PageSection(f"added-{place}", table[0].title, (table,)) for place, table in enumerate(added)),
        *(_grouped(matrix) for matrix in groups),
        _stacked("costs", "Costs", [cost_tables(run) for run in runs], names),
        _stacked(
            "failures",
            "Failed questions",
            [failure_tables(run, f"{run.folder.resume_command} asks them again.") for run in runs],
            names,
        ),
        PageSection("details", "Details of each run", folds=tuple(_details(runs, names, several=several))),
    ]
    return [section for section in sections if section.tables or section.lines or section.folds]


def warnings(runs: Sequence[AnyRun], names: Sequence[str]) -> list[str]:
    """List what a reader should know before the scores: how runs differ, what they warn of, and what is pending in
    them.
    """
    notes = ranking_notes(runs)
    notes += [f"{name}: {warning}" for run, name in zip(runs, names, strict=True) for warning in run.warnings]
    notes += dict.fromkeys(note for run in runs for note in run.benchmark.notes(run.metrics))
    for run, name in zip(runs, names, strict=True):
        metrics = run.metrics
        if not metrics.complete:
            notes.append(
                f"{name} is incomplete: {metrics.n} of {metrics.selected} questions scored, {metrics.failed} failed, "
                f"{metrics.missing} not asked yet; they do not count: {run.folder.resume_command} asks them"
            )
    return notes


def _runs(runs: Sequence[AnyRun], names: Sequence[str]) -> Captioned:
    rows = tuple(
        (
            name,
            run.record.cell.name,
            run.model or "none",
            run.record.cell.dataset.label,
            str(run.folder.path),
            when(run),
            str(run.metrics.n),
            ", ".join(f"{number} {unit}" for unit, number in run.benchmark.size(run.metrics).items()),
            run.status,
        )
        for run, name in zip(runs, names, strict=True)
    )
    headers = ("Run", "Experiment", "Model", "Data set", "Folder", "When", "n", "Of", "State")
    caption = "n: questions scored. Model none: a control, which asks no model. When: the last time it asked, UTC."
    return Table("Runs", headers, rows, text_columns=6), caption


def when(run: AnyRun) -> str:
    """Return day and minute at which the run ended, as its environment says; `-` where it does not."""
    end_time = str(run.environment.get("ended_at") or run.environment.get("started_at") or "")
    return end_time[:16].replace("T", " ") or NONE


def _compared(runs: Sequence[AnyRun]) -> list[PageSection]:
    """Build one section for each data set that two runs or more were asked."""
    runs_by_dataset: dict[str, list[AnyRun]] = {}
    for run in runs:
        runs_by_dataset.setdefault(run.record.cell.dataset.name, []).append(run)
    sections = []
    for dataset, group in runs_by_dataset.items():
        if len(group) > 1:
            title = "Paired comparison" if len(runs_by_dataset) == 1 else f"Paired comparison on {dataset}"
            sections.append(_comparison(f"compared-{dataset}", title, group))
    return sections


def _comparison(anchor: str, title: str, runs: Sequence[AnyRun]) -> PageSection:
    try:
        run_comparison = compare_runs([run.folder for run in sorted(runs, key=lambda run: run.mixed)])
    except DatasetError as error:
        return PageSection(anchor, title, lines=(f"{describe_all(runs).capitalize()} cannot be compared: {error}.",))
    lines, sentences = comparison_lines(run_comparison), verdicts(run_comparison)
    breakdowns = tuple(run_comparison.statistics.breakdown_tables(run_comparison.names))
    folds = [Fold(f"By {run_comparison.statistics.breakdown}, every run", breakdowns)] if breakdowns else []
    if len(sentences) > SAID_PAIRS:
        folds.insert(0, Fold("In words", lines=tuple(sentences)))
    else:
        lines += sentences
    return PageSection(anchor, title, tuple(overall_tables(run_comparison)), tuple(lines), tuple(folds))


def _grouped(captioned: Captioned) -> PageSection:
    title = captioned[0].title
    return PageSection(f"by-{title.rsplit(maxsplit=1)[-1].lower()}", title, (captioned,))


def _breakdowns(run: AnyRun) -> list[Captioned]:
    benchmark = run.benchmark
    tables = benchmark.breakdowns(run.metrics, published=True)
    legend_text = legend([run])
    return [(table, legend_text + ("" if place else benchmark.published_legend)) for place, table in enumerate(tables)]


def _stacked(
    anchor: str, title: str, tables_by_run: Sequence[Sequence[Captioned]], names: Sequence[str]
) -> PageSection:
    """Stack the tables that each run has, of several runs as one table."""
    entries = [(name, table, text) for name, tables in zip(names, tables_by_run, strict=True) for table, text in tables]
    tables = [replace(table, title=title) for _, table, _ in entries]
    if len(tables_by_run) > 1:
        tables = stack(tables, [name for name, _, _ in entries])
    caption = merge_captions([text for _, _, text in entries], [name for name, _, _ in entries])
    return PageSection(anchor, title, tuple((table, caption) for table in tables))


def _details(runs: Sequence[AnyRun], names: Sequence[str], *, several: bool) -> list[Fold]:
    """Build what the sections above do not show of each run; its settings at least."""
    folds = []
    for run, name in zip(runs, names, strict=True):
        tables = _breakdowns(run) if several else []
        tables += run.benchmark.details(run.metrics)
        folds.append(Fold(name, (*tables, (describe_settings(run), ""))))
    return folds
