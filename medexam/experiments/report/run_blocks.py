"""What is shown of stored runs and of their comparison, on the terminal, in a notebook, in Markdown and in LaTeX."""

from collections.abc import Sequence
from dataclasses import replace

from medexam.experiments.compare.ranking import ranking_notes
from medexam.experiments.report.findings import find_verdicts, findings, remarks
from medexam.experiments.report.markdown import render_markdown
from medexam.experiments.report.run_tables import (
    cost_tables,
    describe_settings,
    describe_state,
    describe_warnings,
    failure_tables,
    own_tables,
)
from medexam.experiments.report.shown import Block, Unbroken
from medexam.experiments.report.tables import facet_tables, label_runs, overview_tables, split_families, table_runs
from medexam.experiments.store.stored_run import StoredRun, tell_models_apart
from medexam.measures.benchmarks.tables import headline, matrices
from medexam.measures.evidence.kinds import evidence_tables
from medexam.tables import Table


def overview_blocks(runs: Sequence[StoredRun]) -> list[Block]:
    """Build a table for the exams and one for each other benchmark, each with what to know before ranking its runs."""
    blocks: list[Block] = []
    for group in split_families(tell_models_apart(runs)[0]):
        blocks += [
            *find_verdicts(group),
            *overview_tables(group),
            *map(Unbroken, ranking_notes(group)),
            *remarks(group),
        ]
    return blocks


def run_blocks(run: StoredRun, package_tables: Sequence[Table] = ()) -> list[Block]:
    """Show all of one run: its state, scores and facets, what it took, what failed, and what else is known of it."""
    return [
        Unbroken(describe_state(run)),
        *describe_warnings([run]),
        headline(run.metrics),
        *findings([run]),
        *own_tables([run]),
        *facet_tables(run),
        *package_tables,
        *cost_tables(run),
        *evidence_tables(run.metrics.evidence),
        *failure_tables(run),
    ]


def report_blocks(
    runs: Sequence[StoredRun], package_tables: Sequence[Table] = (), by: Sequence[str] = ()
) -> list[Block]:
    """Show one run whole, or several side by side and by the facets `by`, with the tables of installed packages."""
    if len(runs) == 1:
        return run_blocks(runs[0], package_tables)
    each = [
        replace(table, title=f"{run.title}: {table.title}")
        for run in runs
        if run.benchmark.report_each
        for table in facet_tables(run)
    ]
    pending = [block for run in runs for block in pending_blocks(run)]
    matrix_tables = facet_matrices(runs, by) if by else []
    return [*overview_blocks(runs), *describe_warnings(runs), *matrix_tables, *package_tables, *each, *pending]


def run_report(*runs: StoredRun, package_tables: Sequence[Table] = (), by: Sequence[str] = ()) -> str:
    """Render `report_blocks` as Markdown, of one run with its settings, as `report.md` in its folder, else folders."""
    blocks, first = report_blocks(runs, package_tables, by), runs[0].record
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


def pending_blocks(run: StoredRun) -> list[Block]:
    """Show the failures by kind, if any, and the command that asks what is pending."""
    if run.complete or run.running:
        return [*failure_tables(run)]
    count, command = run.metrics.failed + run.metrics.missing, run.folder.resume_command
    return [*failure_tables(run), Unbroken(f"{run.title}: {count} questions are pending; `{command}` asks them")]
