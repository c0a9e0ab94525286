"""Bars on standard error, drawn alike by every command, and the one for passages that are being encoded."""

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


def open_bars() -> Progress:
    """Bars on standard error; without a terminal they draw nothing."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
        disable=not console.is_terminal,
    )


class EncodingProgress:
    """Called with the number of passages encoded so far: a bar, or one line without a terminal.

    An index that is complete at the first call shows nothing.
    """

    def __init__(self, bars: Progress, label: str, total: int) -> None:
        self._bars = bars
        self._label = label
        self._total = total
        self._task: TaskID | None = None

    def __call__(self, done: int) -> None:
        """So many passages are encoded, those of earlier calls included."""
        if self._task is None:
            if done >= self._total:
                return
            self._task = self._bars.add_task(self._label, total=self._total, note="passages")
            if not self._bars.console.is_terminal:
                begun = f", {done:,} of which are encoded already" if done else ""
                sys.stderr.write(f"{self._label}: {self._total:,} passages{begun} ...\n")
        self._bars.update(self._task, completed=done)
