"""What `medexam data translate` shows meanwhile: a bar for each set-up."""

import sys

from rich.progress import TaskID

from medexam import Prediction
from medexam.companions.translation.plan import TranslationTask
from medexam.toolkit.progress import WorkProgress


class TranslationProgress(WorkProgress):
    """A `TranslationObserver` that draws a bar for each set-up on standard error."""

    def __init__(self) -> None:
        super().__init__()
        self._task: TaskID | None = None
        self._failed = 0

    def task_starts(self, task: TranslationTask) -> None:
        """Open a bar; without a terminal, write a line."""
        total, pending = len(task.sources), len(task.pending)
        label = task.name.rpartition("-")[0]
        self._failed = 0
        self._task = self._bars.add_task(label, total=total, completed=total - pending, note="")
        if not self._console.is_terminal:
            sys.stderr.write(f"{label}: {pending:,} of {total:,} questions to translate ...\n")

    def asked(self) -> None:
        """Show nothing of what is in flight."""

    def answered(self, prediction: Prediction) -> None:
        """Move the bar; say how many failed."""
        self._failed += prediction.failure is not None
        if self._task is not None:
            self._bars.update(self._task, advance=1, note=f"{self._failed} failed" if self._failed else "")
