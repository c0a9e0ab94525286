"""Runs of every kind side by side: a table for exams, and one for each benchmark that is answered in words."""

from collections.abc import Sequence

from medexam.experiments.summary import AnyRun, ExamRun, TaskRun, is_exam_run, is_task_run
from medexam.experiments.tables import TerminalTable, build_table
from medexam.experiments.task_tables import build_task_breakdowns, build_task_table


def split_runs(runs: Sequence[AnyRun]) -> tuple[list[ExamRun], list[list[TaskRun]]]:
    """The runs on exams, and those of each other benchmark together; in their order."""
    families: dict[str, list[TaskRun]] = {}
    for run in runs:
        if is_task_run(run):
            families.setdefault(run.record.cell.dataset.name, []).append(run)
    return [run for run in runs if is_exam_run(run)], list(families.values())


def build_overviews(runs: Sequence[AnyRun]) -> list[TerminalTable]:
    """The comparisons, ready for `Console.print`; a benchmark's only run is shown by group too."""
    exams, families = split_runs(runs)
    tables = [build_table(exams)] if exams else []
    for family in families:
        tables.append(build_task_table(family))
        if len(family) == 1:
            tables += build_task_breakdowns(family[0])
    return tables
