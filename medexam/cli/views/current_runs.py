"""Stored runs as commands read them: with the scores of what their folders hold now."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from medexam.experiments.store.run_folder import RunFolder
    from medexam.experiments.store.stored_run import AnyRun


def read_current(folders: "Iterable[RunFolder]") -> "list[AnyRun]":
    """The runs in `folders`; lines on standard error tell which files were out of date, and what `note` of a run says.

    Raises what `current_run` raises.
    """
    from medexam.experiments.report.current import current_run

    runs = [current_run(folder, say) for folder in folders]
    for run in runs:
        if run.note is not None:
            say(f"warning: {run.folder.name}: {run.note}")
    return runs


def say(line: str) -> None:
    """Tell the user in one line on standard error."""
    sys.stderr.write(f"medexam: {line}\n")
