"""What `medexam show` does: print a stored run, or what it answered to one question."""

import difflib
from pathlib import Path
from typing import Any

from medexam.cli.views.output import print_json
from medexam.cli.views.prediction import print_prediction
from medexam.cli.views.questions import print_question, print_task
from medexam.cli.views.runs import print_notice
from medexam.errors import DatasetError, RunFolderError
from medexam.experiments.entry.terminal import Terminal
from medexam.experiments.report.current import current_run
from medexam.experiments.report.findings import findings
from medexam.experiments.report.run_tables import describe_settings, describe_state
from medexam.experiments.report.shown import Unbroken, print_blocks
from medexam.experiments.store.data_changes import load_items
from medexam.experiments.store.paths import default_runs_dir
from medexam.experiments.store.stored_run import StoredRun, find_run, run_document
from medexam.questions import Question


def show_run(run: str, question: str | None, runs_dir: Path | None, *, as_json: bool) -> None:
    """Show a stored run: its state, settings and files, or what it answered to one question."""
    folder = find_run(run, runs_dir or default_runs_dir())
    if question is not None:
        _show_question(folder, question, as_json=as_json)
        return
    stored_run = current_run(folder, print_notice)
    if as_json:
        print_json(run_document(stored_run))
    else:
        _print_run(stored_run)


def _print_run(stored_run: StoredRun) -> None:
    lines = [
        f"{stored_run.record.cell.name}: {stored_run.title}",
        *findings([stored_run]),
        *filter(None, [stored_run.record.description]),
    ]
    state = describe_state(stored_run) if stored_run.complete else Unbroken(describe_state(stored_run))
    files = sorted(path.name for path in stored_run.folder.path.iterdir() if path.is_file() and path.name[0] != ".")
    ends = [
        Unbroken(f"Files in {stored_run.folder.path}:"),
        ", ".join(files),
        Unbroken(f"`medexam report {stored_run.folder.path}` shows its scores."),
    ]
    texts = stored_run.record.warnings if stored_run.running else stored_run.warnings
    warnings = (f"Warning: {warning}" for warning in texts)
    print_blocks(Terminal(), [*lines, state, *warnings, describe_settings(stored_run), *ends])


def _show_question(folder: Any, query: str, *, as_json: bool) -> None:
    record, predictions = folder.read_record(), folder.read_predictions()
    key = find_key(query, record.questions)
    prediction = predictions.get(key)
    if as_json:
        print_json({"question": key, "status": "pending"} if prediction is None else prediction.to_json())
        return
    console = Terminal(highlight=False, markup=False, soft_wrap=True)
    try:
        items = load_items(folder)
        _print_item(console, items, key)
    except DatasetError as error:
        console.print(key, style="bold cyan")
        print_notice(f"the question itself cannot be shown: {error}")
    print_prediction(console, prediction)


def find_key(query: str, keys: tuple[str, ...]) -> str:
    """Find the key of the run that is meant, by itself or by its end; raises `RunFolderError` unless that is one."""
    matches = [key for key in keys if key == query] or [key for key in keys if key.endswith(f"/{query}")]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        nearest = difflib.get_close_matches(query, keys, n=3, cutoff=0.6) or keys[:1]
        raise RunFolderError(f"the run asked no question {query}: give a key such as {', '.join(nearest)}")
    ellipsis = ", ..." if len(matches) > 5 else ""
    raise RunFolderError(
        f"{query} may be {len(matches)} questions: {', '.join(matches[:5])}{ellipsis}; give more of the key"
    )


def _print_item(console: Terminal, items: Any, key: str) -> None:
    item = next((question for question in items.questions if question.key == key), None)
    if item is None:
        console.print(key, style="bold cyan")
    elif isinstance(item, Question):
        print_question(console, item, items.golds[key])
    else:
        console.print(f"{key}  {item.group}, {item.language}", style="bold cyan")
        print_task(console, item, items.golds[key])
