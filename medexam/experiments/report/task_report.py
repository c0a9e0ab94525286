"""`report.md` of a run whose questions are answered in words, and several such runs side by side."""

from collections.abc import Mapping, Sequence

from medexam.experiments.compare.ranking import ranking_notes
from medexam.experiments.report.formatting import percent
from medexam.experiments.report.markdown_parts import (
    captioned,
    describe_settings,
    describe_state,
    render_table,
    unanswered,
)
from medexam.experiments.report.run_tables import cost_tables, failure_table
from medexam.experiments.report.tables import Table
from medexam.experiments.report.task_tables import (
    TASK_LEGEND,
    name_measure,
    show_measure,
    task_breakdowns,
    task_comparison,
)
from medexam.experiments.store.stored_run import TaskRun
from medexam.predictions import Prediction


def task_report(run: TaskRun, predictions: Mapping[str, Prediction], boards: Sequence[Table] = ()) -> str:
    """Headline, boards, failures, breakdowns, costs, replies that hold no answer, and settings."""
    record = run.record
    parts = [f"# {record.cell.name}: {run.title}"]
    if record.description:
        parts.append(record.description)
    parts += [f"**Note.** {note[0].upper()}{note[1:]}." for note in task_notes(run)]
    parts += [task_headline(run), *_sections(boards)]
    failed = failure_table(run)
    if failed is not None:
        parts.append(f"## {failed.title}\n\n{render_table(failed)}\n\n`{run.folder.resume_command}` asks them again.")
    parts += [*_sections(task_breakdowns(run.metrics)), TASK_LEGEND]
    parts += captioned(cost_tables(run))
    parts += unanswered(record.questions, predictions)
    parts.append("## Settings\n\n" + render_table(describe_settings(run)))
    return "\n\n".join(parts) + "\n"


def task_comparison_report(runs: Sequence[TaskRun], boards: Sequence[Table] = ()) -> str:
    """Several runs side by side, the best of each measure in bold, on boards, then each by group."""
    table = task_comparison(runs)
    parts = [f"# {table.title}", render_table(table), TASK_LEGEND, *ranking_notes(runs), *_sections(boards)]
    parts += [f"**{run.title}.** {describe_state(run)}" for run in runs if not run.complete]
    parts += [
        f"## {run.title}: {found.title}\n\n{render_table(found)}"
        for run in runs
        for found in task_breakdowns(run.metrics)
    ]
    folders = Table("Runs", ("Run", "Folder"), tuple((run.title, str(run.folder.path)) for run in runs), text_columns=2)
    return "\n\n".join([*parts, f"## Runs\n\n{render_table(folders)}"]) + "\n"


def task_headline(run: TaskRun) -> str:
    """The run's state and its scores over all questions."""
    metrics = run.metrics
    rows = [(name_measure(name), show_measure(measure)) for name, measure in metrics.measures.items()]
    rows.append(("No answer", percent(metrics.unanswered / metrics.n if metrics.n else None)))
    rows += [(name, str(value)) for name, value in metrics.settings.items() if value is not None]
    table = Table("Result", (f"n = {metrics.n}", "Percent [95 % interval]"), tuple(rows))
    return f"{describe_state(run)}\n\n{render_table(table)}"


def _sections(tables: Sequence[Table]) -> list[str]:
    return [f"## {table.title}\n\n{render_table(table)}" for table in tables]


def task_notes(run: TaskRun) -> list[str]:
    """What a reader of the results should know, each once."""
    return list(dict.fromkeys((*run.warnings, *run.metrics.notes)))
