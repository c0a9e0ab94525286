"""What is shown of stored runs and of their comparison, on the terminal, in a notebook, in Markdown and in LaTeX."""

from collections.abc import Sequence
from dataclasses import replace

from medexam.experiments.compare.ranking import ranking_notes
from medexam.experiments.report.findings import findings, lead, remarks
from medexam.experiments.report.markdown import render_markdown
from medexam.experiments.report.run_tables import (
    cost_tables,
    describe_pending,
    describe_settings,
    describe_state,
    describe_warnings,
    failure_tables,
    label_runs,
    overview_tables,
    own_tables,
    split_families,
    table_runs,
)
from medexam.experiments.report.shown import Block, Unbroken
from medexam.experiments.store.stored_run import StoredRun, tell_models_apart
from medexam.measures.evidence.kinds import evidence_tables
from medexam.measures.tables import breakdowns, headline, matrices
from medexam.tables import Table


def overview_blocks(runs: Sequence[StoredRun]) -> list[Block]:
    """Build a table for the exams and one for each other benchmark, each with what to know before ranking its runs."""
    blocks: list[Block] = []
    for group in split_families(tell_models_apart(runs)[0]):
        first = lead(group)
        notes = [note for note in ranking_notes(group) if note != first]
        blocks += [*filter(None, [first]), *overview_tables(group), *notes, *remarks(group)]
    return blocks


def run_blocks(run: StoredRun, extra: Sequence[Block] = ()) -> list[Block]:
    """Show all of one run: its state, scores and facets, what it took, what failed, and what else is known of it."""
    return [
        Unbroken(describe_state(run)),
        *describe_warnings([run]),
        headline(run.metrics),
        *findings([run]),
        *own_tables([run]),
        *breakdowns(run.benchmark, run.metrics),
        *extra,
        *cost_tables([run]),
        *evidence_tables(run.metrics.evidence),
        *failure_tables([run]),
    ]


def report_blocks(runs: Sequence[StoredRun], extra: Sequence[Block] = (), by: Sequence[str] = ()) -> list[Block]:
    """Show one run whole, or several side by side and by the facets `by`, with the tables of installed packages."""
    if len(runs) == 1:
        return run_blocks(runs[0], extra)
    each = [
        replace(table, title=f"{run.title}: {table.title}")
        for run in runs
        if not run.benchmark.right_or_wrong
        for table in breakdowns(run.benchmark, run.metrics)
    ]
    matrix_tables = facet_matrices(runs, by) if by else []
    return [*overview_blocks(runs), *describe_warnings(runs), *matrix_tables, *extra, *each, *pending_blocks(runs)]


def run_report(*runs: StoredRun, extra: Sequence[Block] = (), by: Sequence[str] = ()) -> str:
    """Render `report_blocks` as Markdown, of one run with its settings, as `report.md` in its folder, else folders."""
    blocks, first = report_blocks(runs, extra, by), runs[0].record
    if len(runs) == 1:
        title, description = f"{first.cell.name}: {runs[0].title}", [first.description] if first.description else []
        return render_markdown(title, [*description, *blocks, describe_settings(runs[0])])
    rows = tuple((run.title, str(run.folder.path)) for run in runs)
    folders = Table("Runs", ("Run", "Folder"), rows, text_columns=2)
    return render_markdown(label_runs(runs)[0], [*blocks, folders])


def facet_matrices(runs: Sequence[StoredRun], facets: Sequence[str] | None = None) -> list[Table]:
    """Build tables of the first measure of several runs by `facets`, or by all: a row a group, a column a run."""
    groups = (group for group in split_families(runs) if len(group) > 1)
    return [table for group in groups for table in matrices(group[0].benchmark, table_runs(group), facets)]


def pending_blocks(runs: Sequence[StoredRun]) -> list[Block]:
    """Show the failures by kind, if any, and the commands that ask what is pending."""
    pending = [(run, run.metrics.failed + run.metrics.missing) for run in runs if not run.running]
    return [*failure_tables(runs), *describe_pending(pending)]
