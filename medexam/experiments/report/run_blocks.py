"""What is shown of stored runs and of their comparison, on the terminal and in a notebook."""

from collections.abc import Sequence

from medexam.experiments.compare.languages import CrossLanguages
from medexam.experiments.compare.ranking import ranking_notes
from medexam.experiments.compare.result import Comparison
from medexam.experiments.report.comparison_tables import SHOWN_PAIRS, comparison_lines, comparison_tables, verdicts
from medexam.experiments.report.findings import findings
from medexam.experiments.report.language_tables import language_tables
from medexam.experiments.report.run_tables import failure_tables
from medexam.experiments.report.shown import Block, Unbroken
from medexam.experiments.report.tables import overview_tables, split_families
from medexam.experiments.store.answerers import describe_models, read_models
from medexam.experiments.store.stored_run import AnyRun, tell_models_apart


def overview_blocks(runs: Sequence[AnyRun]) -> list[Block]:
    """Build a table for the exams and one for each other benchmark, each with what to know before ranking its runs."""
    blocks: list[Block] = []
    for group in split_families(tell_models_apart(runs)[0]):
        blocks += [*overview_tables(group), *map(Unbroken, ranking_notes(group)), *findings(group)]
    return blocks


def pending_blocks(run: AnyRun) -> list[Block]:
    """Show the failures by kind, if any, and the command that asks what is pending."""
    blocks: list[Block] = [*failure_tables(run)]
    if not run.complete and not run.running:
        blocks.append(_pending(run, run.metrics.failed + run.metrics.missing))
    return blocks


def model_blocks(run: AnyRun) -> list[Block]:
    """Describe what answered the run, a line for each model; empty for a control."""
    return [*describe_models(run.answerers, read_models(run.folder))]


def comparison_blocks(comparison: Comparison) -> list[Block]:
    """Show what was compared, the tables, what may be said of each pair, and what each run still has to ask."""
    blocks: list[Block] = [*comparison_tables(comparison)]
    if len(comparison.runs) - 1 > SHOWN_PAIRS and comparison.statistics.breakdown_tables(comparison.names):
        blocks.append(f"--markdown FILE and --json hold the breakdowns by {comparison.statistics.breakdown}.")
    return _framed(comparison, [*blocks, *verdicts(comparison)])


def language_blocks(cross: CrossLanguages) -> list[Block]:
    """Show the same of runs in several languages."""
    return _framed(cross, [*language_tables(cross)])


def _framed(comparison: Comparison, blocks: list[Block]) -> list[Block]:
    pending_counts = zip(comparison.runs, comparison.pending, strict=True)
    return [*comparison_lines(comparison), *blocks, *(_pending(run, count) for run, count in pending_counts if count)]


def _pending(run: AnyRun, count: int) -> Unbroken:
    return Unbroken(f"{run.title}: {count} questions are pending; {run.folder.resume_command} asks them")
