"""What is shown of stored runs and of their comparison, on the terminal, in a notebook, in Markdown and in LaTeX."""

from collections.abc import Sequence
from dataclasses import replace

from medexam.benchmarks.tables import headline, matrices
from medexam.experiments.compare.ranking import ranking_notes
from medexam.experiments.report.findings import find_verdicts, findings, remarks
from medexam.experiments.report.markdown import on_one_line, render_markdown
from medexam.experiments.report.run_tables import (
    cost_tables,
    describe_settings,
    describe_state,
    failure_tables,
    own_tables,
)
from medexam.experiments.report.shown import Block, Unbroken
from medexam.experiments.report.tables import facet_tables, label_runs, overview_tables, split_families, table_runs
from medexam.experiments.store.stored_run import StoredRun, tell_models_apart
from medexam.predictions.evidence.kinds import evidence_tables
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


def run_blocks(run: StoredRun, added: Sequence[Table] = ()) -> list[Block]:
    """Show all of one run: its state, scores and facets, what it took, what failed, and what else is known of it."""
    return [
        Unbroken(describe_state(run)),
        *_warnings([run]),
        headline(run.metrics),
        *findings([run]),
        *own_tables([run]),
        *facet_tables(run),
        *added,
        *cost_tables(run),
        *evidence_tables(run.metrics.evidence),
        *failure_tables(run),
    ]


def report_blocks(runs: Sequence[StoredRun], added: Sequence[Table] = (), by: Sequence[str] = ()) -> list[Block]:
    """Show one run whole, or several side by side, and by the facets `by`; `added` are tables of more than the runs."""
    if len(runs) == 1:
        return run_blocks(runs[0], added)
    each = [table for run in runs if run.benchmark.report_each for table in _titled(run)]
    pending = [block for run in runs for block in pending_blocks(run)]
    beside = facet_matrices(runs, by) if by else []
    return [*overview_blocks(runs), *_warnings(runs), *beside, *added, *each, *pending]


def run_report(run: StoredRun, added: Sequence[Table] = ()) -> str:
    """Render all of one run as Markdown, with its settings: `report.md` in its folder."""
    description = [run.record.description] if run.record.description else []
    blocks = [*description, *run_blocks(run, added), describe_settings(run)]
    return render_markdown(f"{run.record.cell.name}: {run.title}", blocks)


def comparison_report(runs: Sequence[StoredRun], added: Sequence[Table] = (), by: Sequence[str] = ()) -> str:
    """Render several runs as Markdown, with where they lie."""
    rows = tuple((run.title, str(run.folder.path)) for run in runs)
    folders = Table("Runs", ("Run", "Folder"), rows, text_columns=2)
    return render_markdown(label_runs(runs)[0], [*report_blocks(runs, added, by), folders])


def facet_matrices(runs: Sequence[StoredRun], facets: Sequence[str] | None = None) -> list[Table]:
    """Build tables of the first measure of several runs by `facets`, or by all: a row a group, a column a run."""
    if facets is not None:
        by_run = [{"by": {facet: run.metrics.by[facet] for facet in facets}} for run in runs]
        metrics = [run.metrics.model_copy(update=by) for run, by in zip(runs, by_run, strict=True)]
        runs = [replace(run, metrics=each) for run, each in zip(runs, metrics, strict=True)]
    groups = (group for group in split_families(runs) if len(group) > 1)
    return [table for group in groups for table in matrices(group[0].benchmark, table_runs(group))]


def pending_blocks(run: StoredRun) -> list[Block]:
    """Show the failures by kind, if any, and the command that asks what is pending."""
    blocks: list[Block] = [*failure_tables(run)]
    if not run.complete and not run.running:
        blocks.append(_pending(run, run.metrics.failed + run.metrics.missing))
    return blocks


def _warnings(runs: Sequence[StoredRun]) -> list[str]:
    names = [f"{run.title}: " if len(runs) > 1 else "" for run in runs]
    lines = [f"Warning: {name}{text}" for run, name in zip(runs, names, strict=True) for text in run.warnings]
    lines += dict.fromkeys(f"Note: {note}" for run in runs for note in run.metrics.notes)
    return [f"{on_one_line(line).rstrip('.')}." for line in lines]


def _titled(run: StoredRun) -> list[Table]:
    return [replace(table, title=f"{run.title}: {table.title}") for table in facet_tables(run)]


def _pending(run: StoredRun, count: int) -> Unbroken:
    return Unbroken(f"{run.title}: {count} questions are pending; `{run.folder.resume_command}` asks them")
