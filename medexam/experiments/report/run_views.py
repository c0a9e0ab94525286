"""Runs of every kind side by side: a table for exams, and one for each benchmark that is answered in words."""

from collections.abc import Sequence

from medexam.experiments.report.tables import TerminalTable, build_table
from medexam.experiments.report.task_tables import build_task_breakdowns, build_task_table
from medexam.experiments.store.stored_run import AnyRun, is_exam_run, is_task_run


def split_runs(runs: Sequence[AnyRun]) -> list[list[AnyRun]]:
    """The runs that share a table: those on exams, then those of each other benchmark; in their order."""
    exams: list[AnyRun] = []
    families: dict[str, list[AnyRun]] = {}
    for run in runs:
        family = families.setdefault(run.record.cell.dataset.name, []) if is_task_run(run) else exams
        family.append(run)
    return [group for group in (exams, *families.values()) if group]


def build_overview(runs: Sequence[AnyRun]) -> list[TerminalTable]:
    """The comparison of runs that share a table, ready for `Console.print`; a benchmark's only run by group too."""
    exams, tasks = [run for run in runs if is_exam_run(run)], [run for run in runs if is_task_run(run)]
    tables = [build_table(exams)] if exams else []
    tables += [build_task_table(tasks)] if tasks else []
    return tables + (build_task_breakdowns(tasks[0]) if len(tasks) == 1 else [])
