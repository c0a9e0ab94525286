"""What a run shows on standard error meanwhile: a bar and a line of figures for each cell, and a bar for an
index that it makes.
"""

import time
from collections.abc import Sequence
from datetime import timedelta

from rich.progress import TaskID
from rich.text import Text

from medexam.experiments.entry.bars import EncodingProgress, WorkProgress
from medexam.experiments.entry.pace import Pace
from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.store.stored_run import StoredRun
from medexam.predictions import Prediction

REDRAW_S = 0.25
"""Seconds between two computations of the figures on a terminal."""
REPEAT_S = 30.0
"""Seconds between two lines of figures without bars."""


class RunProgress(WorkProgress):
    """The progress of a run on standard error; without bars it writes a line now and then."""

    def __init__(self, cells: Sequence[AnyCell] = (), *, disable: bool = False) -> None:
        """`cells` are all that are asked; with `disable` nothing is shown."""
        self._cells = [planned for planned in cells if planned.pending]
        self._begun: dict[str, int] = {}
        """Id of a run -> its number in the order of beginning, 1 the first."""
        self._task: TaskID | None = None
        self._tasks: dict[str, TaskID] = {}
        """Id of a run -> its bar; a run that is asked in blocks keeps one."""
        self._label = ""
        self._pace: Pace | None = None
        self._looked = self._began = 0.0
        self._figures = Text()
        self._encoding: EncodingProgress | None = None
        super().__init__(self._draw_figures, disable=disable)

    def retrieval_starts(self, planned: AnyCell) -> None:
        """Say that passages are being looked up."""
        self._say(f"Looking up passages for {planned.label} ...")
        self._encoding = None

    def passages_encoded(self, planned: AnyCell, count: int) -> None:
        """Move the bar of the index that is being made."""
        if planned.retrieval is None or planned.retrieval.size is None:
            return
        if self._encoding is None:
            self._encoding = EncodingProgress(self._bars, "Encoding the corpus", planned.retrieval.size)
        self._encoding(count)

    def cell_starts(self, planned: AnyCell) -> None:
        """Open a bar for the cell, or go on with its own."""
        self._draw_done()
        total = planned.total
        count = planned.done
        # Like prompts follow each other, so cells are numbered as they begin.
        self._begun.setdefault(planned.run_id, len(self._begun) + 1)
        later = sum(len(cell.pending) for cell in self._cells if cell.run_id not in self._begun)
        pace = Pace(planned.is_right, total, count, planned.right, later=later)
        number = f"cell {self._begun[planned.run_id]} of {len(self._cells)}: " if len(self._cells) > 1 else ""
        self._label, self._looked, self._figures = f"{number}{planned.label}", time.monotonic(), Text()
        pace.describe(self._looked)
        self._pace, self._began = pace, self._looked
        self._task = self._tasks.get(planned.run_id)
        if self._task is not None:
            return
        self._task = self._tasks[planned.run_id] = self._bars.add_task(
            self._label, total=total, completed=count, note=""
        )
        if not self._draws and planned.pending:
            self._say(f"{self._label}: asking {len(planned.pending):,} of {total:,} questions ...")

    def asked(self) -> None:
        """Count a question as in flight."""
        if self._pace is not None:
            self._pace.asked()

    def answered(self, prediction: Prediction) -> None:
        """Count the answer; without bars, say now and then how it goes."""
        pace = self._pace
        if pace is None:
            return
        pace.answered(prediction)
        if (now := time.monotonic()) - self._looked >= REPEAT_S and not self._draws:
            self._looked = now
            figures, elapsed = pace.describe(now, time_left=True), timedelta(seconds=round(now - self._began))
            self._say(f"{self._label}: {pace.progress:,} of {pace.total:,} questions · {elapsed} elapsed · {figures}")

    def cell_ends(self, run: StoredRun) -> None:
        """Close the cell's bar; without bars, say that the run is on disk."""
        self._draw_done()
        self._pace = self._task = None
        if not self._draws:
            self._say(f"{run.record.run_id}: {run.metrics.n} of {len(run.record.questions)} questions")

    def _draw_done(self) -> None:
        if self._pace is not None and self._task is not None:
            self._bars.update(self._task, completed=self._pace.progress)

    def _draw_figures(self) -> Text | None:
        """Draw the line below the bars, as the thread that draws them asks for it; None between two cells."""
        pace, task, now = self._pace, self._task, time.monotonic()
        if pace is None or task is None:
            return None
        if now - self._looked >= REDRAW_S:
            self._looked = now
            self._bars.update(task, completed=pace.progress)
            self._figures = Text(pace.describe(now), overflow="fold")
        return self._figures
