"""What commands show on standard error meanwhile: bars with a line of figures below, or lines where none are drawn."""

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from importlib.util import find_spec
from types import TracebackType
from typing import Self

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
from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.store.stored_run import StoredRun
from medexam.predictions import Prediction, Status
from medexam.specs import ModelSpec
from medexam.specs.names import short_name
from medexam.text import count_of

REPEAT_S = 30.0
"""Seconds between two lines of figures without bars."""


class _Bars(Progress):
    """Bars on standard error with one more line below them; `disable` is true where only lines are written."""

    def __init__(self, below: Callable[[], RenderableType | None], *, quiet: bool) -> None:
        self._below = below
        console = Terminal(stderr=True, quiet=quiet)
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

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return the bars, then the line if there is one."""
        line = self._below()
        yield from super().get_renderables()
        if line is not None:
            yield line

    def say(self, line: str) -> None:
        """Write a line as it is, above the bars if there are any."""
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)


def open_bars(below: Callable[[], RenderableType | None] = lambda: None, *, disable: bool = False) -> _Bars:
    """Open bars on standard error; where none are drawn their lines alone are written, and nothing with `disable`.

    `below` gives a line to stand below them, None for none; it is called ten times a second by the thread that draws.
    """
    return _Bars(below, quiet=disable)


class WorkProgress:
    """Bars that are drawn while a `with` block lasts: what the observers of runs and optimizations share.

    `below` and `disable` are those of `open_bars`.
    """

    def __init__(self, below: Callable[[], RenderableType | None], *, disable: bool) -> None:
        self._bars = open_bars(below, disable=disable)
        self._say = self._bars.say

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def engine_starts(self, model: ModelSpec) -> None:
        """Say that a model is being loaded or a server probed."""
        place = f" at {', '.join(model.endpoints)}" if model.endpoints else ""
        has_name = model.loads_weights or model.name or model.profile
        engine_label = f"{model.label} ({model.engine})" if has_name else f"engine {short_name(model.engine)}"
        self._say(f"Preparing {engine_label}{place} ...")

    def stopping(self, in_flight: int) -> None:
        """Say that Ctrl-C was heard."""
        what = count_of(in_flight, "question") if in_flight else "what is"
        self._say(f"Stopping: waiting a few seconds for {what} in flight; the next interrupt (Ctrl-C) stops at once.")


class EncodingProgress:
    """Called with the number of passages encoded so far: a bar, or one line without a terminal.

    An index that is complete at the first call shows nothing.
    """

    def __init__(self, bars: _Bars, label: str, total: int) -> None:
        self._bars = bars
        self._label = label
        self._total = total
        self._task: TaskID | None = None

    def __call__(self, count: int) -> None:
        """Note that `count` passages are encoded, those of earlier calls included."""
        if self._task is None:
            if count >= self._total:
                return
            self._task = self._bars.add_task(self._label, total=self._total, note="passages")
            if self._bars.disable:
                note = f", {count:,} of which are encoded already" if count else ""
                self._bars.say(f"{self._label}: {self._total:,} passages{note} ...")
        self._bars.update(self._task, completed=count)


class RunProgress(WorkProgress):
    """The progress of a run on standard error; without bars it writes a line now and then."""

    def __init__(self, cells: Sequence[AnyCell] = (), *, disable: bool = False) -> None:
        """`cells` are all that are asked; with `disable` nothing is shown."""
        self._cells = [planned for planned in cells if planned.pending]
        self._tasks: dict[str, TaskID] = {}
        """Id of a run -> its bar, in the order of beginning; a run that is asked in blocks keeps one."""
        self._encoding: EncodingProgress | None = None
        self._planned: AnyCell | None = None
        self._is_right: Callable[[Prediction], bool] | None = None
        self._in_flight = self._failed = self._right = self._tokens = 0
        self._began = self._wrote = 0.0
        super().__init__(
            lambda: None if self._planned is None else Text(self._figures(), overflow="fold"), disable=disable
        )

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
        self._is_right, self._right = planned.is_right, planned.right
        self._in_flight = self._failed = self._tokens = 0
        self._began = self._wrote = time.monotonic()
        if planned.run_id not in self._tasks:
            # Like prompts follow each other, so cells are numbered as they begin.
            number = f"cell {len(self._tasks) + 1} of {len(self._cells)}: " if len(self._cells) > 1 else ""
            label = f"{number}{planned.label}"
            task = self._bars.add_task(label, total=planned.total, completed=planned.done, note="")
            self._tasks[planned.run_id] = task
            if self._bars.disable and planned.pending:
                self._say(f"{label}: asking {len(planned.pending):,} of {planned.total:,} questions ...")
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
        self._bars.advance(self._tasks[planned.run_id])
        if self._bars.disable and (now := time.monotonic()) - self._wrote >= REPEAT_S:
            self._wrote = now
            task = self._bars.tasks[self._tasks[planned.run_id]]
            elapsed = timedelta(seconds=round(now - self._began))
            progress = f"{task.completed:,.0f} of {task.total or 0:,.0f} questions"
            self._say(f"{task.description}: {progress} · {elapsed} elapsed · {self._figures()}")

    def cell_ends(self, run: StoredRun) -> None:
        """Close the cell's bar; without bars, say that the run is on disk."""
        self._planned = None
        if self._bars.disable:
            self._say(f"{run.record.run_id}: {run.metrics.n} of {len(run.record.questions)} questions")

    def _figures(self) -> str:
        """Write the speed, what is in flight, failed and left, and the accuracy with its 95 % interval."""
        planned = self._planned
        if planned is None:
            return ""
        task = self._bars.tasks[self._tasks[planned.run_id]]
        speed, parts = task.speed or 0.0, []
        if speed:
            parts.append(f"{speed:,.1f} questions/s" if speed >= 0.1 else f"{60 * speed:.1f} questions/min")
        if self._tokens:
            parts.append(f"{self._tokens / max(time.monotonic() - self._began, 0.1):,.0f} tokens/s")
        parts.append(f"{self._in_flight} in flight")
        if self._failed:
            parts.append(f"{self._failed} failed")
        later = sum(len(cell.pending) for cell in self._cells if cell.run_id not in self._tasks)
        # The first wave of answers says nothing of the speed.
        if speed and self._in_flight <= task.completed and (later or self._bars.disable):
            remaining = timedelta(seconds=round(((task.remaining or 0) + later) / speed))
            parts.append(f"{'all cells: ' if later else ''}{remaining} left")
        scored = int(task.completed) - self._failed
        interval = None if self._is_right is None else rate_interval(self._right, scored)
        if interval is not None:
            low, high = interval
            parts.append(f"accuracy {100 * self._right / scored:.1f} % [{100 * low:.1f}, {100 * high:.1f}]")
        return " · ".join(parts)
