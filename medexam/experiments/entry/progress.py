"""What commands show on standard error meanwhile: bars, or lines where none are drawn."""

import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from medexam.experiments.plan.cells import PlannedCell
from medexam.experiments.report.shown import Terminal
from medexam.experiments.store.stored_run import StoredRun
from medexam.predictions import Prediction, Status
from medexam.specs import ModelSpec
from medexam.specs.base import short_name
from medexam.text import count_of

_REPEAT_S = 30.0
"""Seconds between two lines of figures without bars."""


class Bars(Progress):
    """Bars on standard error; `disable` is true where only lines are written."""

    def __init__(self, *, disable: bool = False) -> None:
        """With `disable`, nothing is shown at all."""
        console = Terminal(stderr=True, quiet=disable)
        super().__init__(
            # It turns while nothing is done yet, so that a first wave of slow answers is not taken for a standstill.
            SpinnerColumn(finished_text=" "),
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            TextColumn("elapsed,"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=console,
            disable=not (console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)),
        )

    def say(self, line: str) -> None:
        """Write a line as it is, above the bars if there are any."""
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def engine_starts(self, model: ModelSpec) -> None:
        """Say that a model is being loaded or a server probed."""
        place = f" at {', '.join(model.endpoints)}" if model.endpoints else ""
        self.say(f"Preparing {model.label} ({short_name(model.engine)}){place} ...")

    def stopping(self, in_flight: int) -> None:
        """Say that Ctrl-C was heard."""
        what = count_of(in_flight, "question") if in_flight else "what is"
        self.say(f"Stopping: waiting a few seconds for {what} in flight; the next interrupt (Ctrl-C) stops at once.")

    def encoding(self, label: str, total: int) -> Callable[[int], None]:
        """Return what is called with the number of passages encoded so far, and draws a bar or writes one line.

        An index that is complete at the first call shows nothing.
        """
        tasks: list[TaskID] = []

        def encoded(count: int) -> None:
            if not tasks and count < total:
                tasks.append(self.add_task(label, total=total, note="passages"))
                if self.disable:
                    note = f", {count:,} of which are encoded already" if count else ""
                    self.say(f"{label}: {total:,} passages{note} ...")
            for task in tasks:
                self.update(task, completed=count)

        return encoded


class RunProgress(Bars):
    """The progress of a run on standard error; without bars it writes a line now and then."""

    def __init__(self, cells: Sequence[PlannedCell] = (), *, disable: bool = False) -> None:
        """`cells` are all that are asked; with `disable` nothing is shown."""
        self._cells = sum(bool(planned.pending) for planned in cells)
        self._bar: TaskID | None = None
        self._begun = self._done = self._failed = 0
        self._began = self._wrote = 0.0
        super().__init__(disable=disable)

    def retrieval_starts(self, planned: PlannedCell) -> Callable[[int], None]:
        """Say that passages are being looked up; return what moves the bar of the index that is being made."""
        self.say(f"Looking up passages for {planned.label} ...")
        retriever = planned.retrieval and planned.retrieval.planned
        return self.encoding("Encoding the corpus", retriever.size if retriever else 0)

    def cell_starts(self, planned: PlannedCell) -> None:
        """Open a bar for the cell."""
        self._begun, self._done, self._failed = self._begun + 1, 0, 0
        self._began = self._wrote = time.monotonic()
        number = f"cell {self._begun} of {self._cells}: " if self._cells > 1 else ""
        label, total = f"{number}{planned.label}", len(planned.question_set.questions)
        self._bar = self.add_task(label, total=total, completed=total - len(planned.pending), note="")
        if self.disable and planned.pending:
            self.say(f"{label}: asking {len(planned.pending):,} of {total:,} questions ...")

    def answered(self, prediction: Prediction) -> None:
        """Count the answer; without bars, say now and then how it goes."""
        if self._bar is None:
            return
        self._done += 1
        self._failed += prediction.status is Status.FAILED
        now, failed = time.monotonic(), f" · {self._failed:,} failed" if self._failed else ""
        note = f"{self._done / max(now - self._began, 0.1):,.1f} questions/s{failed}"
        self.update(self._bar, advance=1, note=note)
        if self.disable and now - self._wrote >= _REPEAT_S:
            self._wrote, task = now, self.tasks[self._bar]
            self.say(f"{task.description}: {task.completed:,.0f} of {task.total or 0:,.0f} questions · {note}")

    def cell_ends(self, run: StoredRun) -> None:
        """Without bars, say that the run is on disk."""
        if self.disable:
            self.say(f"{run.record.run_id}: {run.metrics.n} of {len(run.record.questions)} questions")
