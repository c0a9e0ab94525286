"""Stored runs on the terminal: with current scores, side by side, and what is said of their pending questions."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from medexam.text import one_line

if TYPE_CHECKING:
    from medexam.experiments.run.spending import Stop
    from medexam.experiments.store.run_folder import RunFolder
    from medexam.experiments.store.stored_run import StoredRun


def read_current(
    folders: "Iterable[RunFolder]", metrics: Sequence[str] = (), *, rescore: bool = False
) -> "list[StoredRun]":
    """Read the runs in `folders`; lines on standard error name files that were out of date and `note` of a run.

    `metrics` of the user's own are added to what the runs are scored by; `rescore` runs the code that the runs name.
    Raises what `current_run` raises.
    """
    from medexam.experiments.report.current import current_run, rescored

    runs = [
        rescored(folder, metrics, print_notice, again=rescore)
        if metrics or rescore
        else current_run(folder, print_notice)
        for folder in folders
    ]
    for run in runs:
        if run.note is not None:
            print_notice(f"{'' if run.running else 'warning: '}{run.folder.name}: {run.note}")
    return runs


def print_notice(line: str) -> None:
    """Tell the user in one line on standard error."""
    sys.stderr.write(f"medexam: {one_line(line)}\n")


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
