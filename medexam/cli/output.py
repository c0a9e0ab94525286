"""What commands print and write: notices, JSON, files, the runs that they read, and where MLflow shows them."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medexam.text import hide_address, print_notice, writable

if TYPE_CHECKING:
    from rich.console import Console

    from medexam.experiments.run.spending import Stop
    from medexam.experiments.store.run_folder import RunFolder
    from medexam.experiments.store.stored_run import StoredRun

SHOWN = 5
"""How many lines of one kind are printed."""


def print_json(document: Any) -> None:
    """Write what `--json` asks for to standard output."""
    sys.stdout.write(json.dumps(writable(document), ensure_ascii=False, indent=2) + "\n")


def write_file(text: str, path: Path) -> None:
    """Write what `--markdown` asks for and say so; raises `RunFolderError` if the file cannot be written."""
    from medexam.experiments.report.shown import write_report

    write_report(text, path)
    sys.stderr.write(f"wrote {path}\n")


def print_document(document: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a document as JSON, or what is set in it as rows of dotted keys and values."""
    from medexam.experiments.report.shown import Terminal, print_blocks
    from medexam.tables import Table, flatten

    if as_json:
        print_json(document)
        return
    rows = tuple(flatten(document).items())
    print_blocks(Terminal(), [Table("", ("What", "How"), rows, text_columns=2)])


def print_result(result: Any, *, as_json: bool, **files: Path | None) -> None:
    """Write the files that are named, as `write_files` does, and print the result as tables or JSON."""
    from medexam.experiments.entry.report import write_files
    from medexam.experiments.report.shown import Terminal, print_blocks

    for line in write_files(result, **files):
        sys.stderr.write(f"{line}\n")
    print_json(result.document()) if as_json else print_blocks(Terminal(), result.blocks())


def send_to_mlflow(send: Callable[..., Any], *arguments: object, tracking_uri: str | None, runs_dir: Path) -> None:
    """Call `send` with a store, by default that of `runs_dir`; an outage costs only a line: folders are complete.

    What was printed before is flushed first: a store may take its time.
    """
    sys.stdout.flush()
    from medexam.experiments.entry.carry_out import send_to_mlflow as send_copies

    if (copies := send_copies(send, *arguments, track=tracking_uri or True, runs_dir=runs_dir)) is not None:
        print_pages(*copies)


def print_pages(copies: Sequence[Any], tracking_uri: str) -> None:
    """Say where MLflow's UI shows what was sent: the page of a server, else the command that serves a store."""
    from medexam.experiments.track import RUNS_PAGE, own_tracking_uri, sqlite_path

    address, path = hide_address(tracking_uri), sqlite_path(tracking_uri)
    pages = [f"{sys.argv[0]} ui --tracking-uri {address}"]
    if tracking_uri.startswith(("http://", "https://")):
        experiments = dict.fromkeys(ids.experiment_id for ids in copies)
        pages = [RUNS_PAGE.format(address.rstrip("/"), experiment_id) for experiment_id in experiments]
    elif path is not None and tracking_uri == own_tracking_uri(path.parent):
        pages = [f"{sys.argv[0]} ui --runs-dir {os.path.relpath(path.parent)}"]
    sys.stderr.writelines(f"The MLflow UI: {page}\n" for page in pages)


def print_by_kind(console: "Console", word: str, style: str, pairs: Iterable[tuple[str, str]], all_are: str) -> None:
    """Print (kind, line) pairs: the number of each kind, and its first lines; `all_are` says where the others stand."""
    kinds: dict[str, list[str]] = {}
    for kind, line in pairs:
        kinds.setdefault(kind, []).append(line)
    for kind, lines in kinds.items():
        console.print(f"{word}: {kind.replace('_', ' ')}: {len(lines):,}", style=style)
        for line in lines[:SHOWN]:
            console.print(f"  {line}")
        if len(lines) > SHOWN:
            console.print(f"  and {len(lines) - SHOWN:,} more{all_are}")


def read_current(
    folders: "Iterable[RunFolder]", metrics: Sequence[str] = (), *, rescore: bool = False
) -> "list[StoredRun]":
    """Read the runs in `folders`; lines on standard error name files that were out of date and `note` of a run.

    `metrics` of the user's own are added to what the runs are scored by; `rescore` runs the code that the runs name.
    Raises what `current_run` raises.
    """
    from medexam.experiments.report.current import current_run

    runs = [current_run(folder, print_notice, metrics, rescore=rescore) for folder in folders]
    for run in runs:
        if run.note is not None:
            print_notice(f"{'' if run.running else 'warning: '}{run.folder.name}: {run.note}")
    return runs


def describe_stop(stop: "Stop | None") -> str:
    """Say why something is incomplete, as a line of standard error begins."""
    if stop is None or stop == "interrupted":
        return stop or "incomplete"
    if stop == "failures":
        return "stopped early: the limit --max-failures of failed questions is reached"
    if stop == "uncounted":
        return (
            "stopped early: --max-tokens and --max-cost count tokens, and the server does not report them (leave "
            "these limits out, or give --max-minutes)"
        )
    return f"stopped early: the limit --max-{stop} is reached"
