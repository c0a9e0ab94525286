"""What commands show on standard error meanwhile: bars with a line of figures below, or lines where none are drawn."""

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from importlib.util import find_spec

from rich.console import RenderableType
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
from rich.text import Text

from medexam.distributions import rate_interval
from medexam.experiments.entry.terminal import Terminal
from medexam.experiments.plan.cells import PlannedCell
from medexam.experiments.store.stored_run import StoredRun
from medexam.predictions import Prediction, Status
from medexam.specs import ModelSpec
from medexam.specs.names import short_name
from medexam.text import count_of

_REPEAT_S = 30.0
"""Seconds between two lines of figures without bars."""


class Bars(Progress):
    """Bars on standard error with a line of figures below them; `disable` is true where only lines are written."""

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

    def figures(self) -> str:
        """Return the line below the bars, empty for none; called ten times a second by the thread that draws."""
        return ""

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return the bars, then the line if there is one."""
        figures = self.figures()
        yield from super().get_renderables()
        if figures:
            yield Text(figures, overflow="fold")

    def say(self, line: str) -> None:
        """Write a line as it is, above the bars if there are any."""
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def engine_starts(self, model: ModelSpec) -> None:
        """Say that a model is being loaded or a server probed."""
        place = f" at {', '.join(model.endpoints)}" if model.endpoints else ""
        has_name = model.engine == "embedded" or model.name or model.profile
        engine_label = f"{model.label} ({model.engine})" if has_name else f"engine {short_name(model.engine)}"
        self.say(f"Preparing {engine_label}{place} ...")

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
        self._cells = [planned for planned in cells if planned.pending]
        self._bar_of: dict[str, TaskID] = {}
        """Id of a run -> its bar, in the order of beginning; a run that is asked in blocks keeps one."""
        self._encoded: Callable[[int], None] = lambda _: None
        self._planned: PlannedCell | None = None
        self._is_right: Callable[[Prediction], bool] | None = None
        self._in_flight = self._failed = self._right = self._tokens = 0
        self._began = self._wrote = 0.0
        super().__init__(disable=disable)

    def retrieval_starts(self, planned: PlannedCell) -> None:
        """Say that passages are being looked up."""
        self.say(f"Looking up passages for {planned.label} ...")
        if planned.retrieval is not None and planned.retrieval.size is not None:
            self._encoded = self.encoding("Encoding the corpus", planned.retrieval.size)

    def passages_encoded(self, planned: PlannedCell, count: int) -> None:
        """Move the bar of the index that is being made."""
        if planned.retrieval is not None:
            self._encoded(count)

    def cell_starts(self, planned: PlannedCell) -> None:
        """Open a bar for the cell, or go on with its own."""
        self._is_right, self._right = planned.is_right, planned.right
        self._in_flight = self._failed = self._tokens = 0
        self._began = self._wrote = time.monotonic()
        if planned.run_id not in self._bar_of:
            # Like prompts follow each other, so cells are numbered as they begin.
            number = f"cell {len(self._bar_of) + 1} of {len(self._cells)}: " if len(self._cells) > 1 else ""
            label, total = f"{number}{planned.label}", len(planned.question_set.questions)
            task = self.add_task(label, total=total, completed=total - len(planned.pending), note="")
            self._bar_of[planned.run_id] = task
            if self.disable and planned.pending:
                self.say(f"{label}: asking {len(planned.pending):,} of {total:,} questions ...")
        # Last: from now on the thread that draws reads the figures.
        self._planned = planned

    def asked(self) -> None:
        """Count a question as in flight."""
        self._in_flight += 1

    def answered(self, prediction: Prediction) -> None:
        """Count the answer; without bars, say now and then how it goes."""
        planned = self._planned
        if planned is None:
            return
        self._in_flight -= 1
        self._tokens += (prediction.prompt_tokens or 0) + (prediction.completion_tokens or 0)
        if prediction.status is Status.FAILED:
            self._failed += 1
        elif self._is_right is not None:
            self._right += self._is_right(prediction)
        self.advance(self._bar_of[planned.run_id])
        if self.disable and (now := time.monotonic()) - self._wrote >= _REPEAT_S:
            self._wrote = now
            task = self.tasks[self._bar_of[planned.run_id]]
            elapsed = timedelta(seconds=round(now - self._began))
            progress = f"{task.completed:,.0f} of {task.total or 0:,.0f} questions"
            self.say(f"{task.description}: {progress} · {elapsed} elapsed · {self.figures()}")

    def cell_ends(self, run: StoredRun) -> None:
        """Close the cell's bar; without bars, say that the run is on disk."""
        self._planned = None
        if self.disable:
            self.say(f"{run.record.run_id}: {run.metrics.n} of {len(run.record.questions)} questions")

    def figures(self) -> str:
        """Write the speed, what is in flight, failed and left, and the accuracy with its 95 % interval."""
        planned = self._planned
        if planned is None:
            return ""
        task = self.tasks[self._bar_of[planned.run_id]]
        speed, parts = task.speed or 0.0, []
        if speed:
            parts.append(f"{speed:,.1f} questions/s" if speed >= 0.1 else f"{60 * speed:.1f} questions/min")
        if self._tokens:
            parts.append(f"{self._tokens / max(time.monotonic() - self._began, 0.1):,.0f} tokens/s")
        parts.append(f"{self._in_flight} in flight")
        if self._failed:
            parts.append(f"{self._failed} failed")
        later = sum(len(cell.pending) for cell in self._cells if cell.run_id not in self._bar_of)
        # The first wave of answers says nothing of the speed.
        if speed and self._in_flight <= task.completed and (later or self.disable):
            remaining = timedelta(seconds=round(((task.remaining or 0) + later) / speed))
            parts.append(f"{'all cells: ' if later else ''}{remaining} left")
        scored = int(task.completed) - self._failed
        interval = None if self._is_right is None else rate_interval(self._right, scored)
        if interval is not None:
            low, high = interval
            parts.append(f"accuracy {100 * self._right / scored:.1f} % [{100 * low:.1f}, {100 * high:.1f}]")
        return " · ".join(parts)
