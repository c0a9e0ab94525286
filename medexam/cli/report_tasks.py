"""`medexam report` of runs whose questions are answered in words."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from medexam.cli.report_options import ReportOptions
from medexam.cli.views.current_runs import read_current
from medexam.cli.views.pending import print_pending
from medexam.errors import RunFolderError, SpecError

if TYPE_CHECKING:
    from medexam.experiments.report.tables import Table
    from medexam.experiments.store.run_folder import RunFolder
    from medexam.experiments.store.stored_run import TaskRun


def report_tasks(folders: "list[RunFolder]", options: ReportOptions) -> None:
    """Print the runs as they are now and write what is asked for; raises `SpecError` for what only exams have."""
    as_json, markdown, html = options.as_json, options.markdown, options.html
    if options.plots is not None or options.layout is not None:
        raise SpecError(
            "--plots and --layout show exams; these runs answer in words: leave them out, --html and --markdown work"
        )
    from medexam.experiments.report.task_tables import board_tables, make_boards, standings
    from medexam.experiments.store.stored_run import is_task_run, run_document

    if len({folder.read_record().cell.dataset.name for folder in folders}) > 1 and (markdown or html):
        raise SpecError("--markdown and --html hold one benchmark: report the runs of each apart")
    runs = [run for run in read_current(folders) if is_task_run(run)]
    boards = make_boards(runs, options.weights)
    tables = board_tables(boards, options.weights)
    if markdown is not None:
        _write(markdown, _markdown(runs, tables))
    if html is not None:
        from medexam.experiments.report.page.tasks import write_task_page

        size = write_task_page(runs, html, tables)
        sys.stderr.write(f"wrote {html} ({size.questions} questions, {size.bytes / 1e6:.1f} MB)\n")
    if as_json:
        documents = [run_document(run) | standing for run, standing in zip(runs, standings(runs, boards), strict=True)]
        sys.stdout.write(json.dumps(documents, ensure_ascii=False, indent=2) + "\n")
    else:
        _print(runs, tables)


def _markdown(runs: "list[TaskRun]", boards: "list[Table]") -> str:
    from medexam.experiments.report.task_report import task_comparison_report, task_report

    if len(runs) == 1:
        return task_report(runs[0], runs[0].folder.read_predictions(), boards)
    return task_comparison_report(runs, boards)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunFolderError(f"cannot write {path}: {error}; choose another file with --markdown") from None
    sys.stderr.write(f"wrote {path}\n")


def _print(runs: "list[TaskRun]", boards: "list[Table]") -> None:
    from rich.console import Console

    from medexam.cli.views.overviews import print_models, print_overviews
    from medexam.experiments.report.run_tables import build_cost_tables
    from medexam.experiments.report.tables import TerminalTable
    from medexam.experiments.report.task_report import task_notes

    console = Console()
    print_overviews(console, runs)
    for board in boards:
        console.print(TerminalTable(board))
    if len(runs) == 1:
        for table in build_cost_tables(runs[0]):
            console.print(table)
        print_models(console, runs[0])
    for run in runs:
        print_pending(console, run)
    for note in dict.fromkeys(note for run in runs for note in task_notes(run)):
        console.print(f"Note: {note}.", highlight=False, markup=False)
