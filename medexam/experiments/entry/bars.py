"""Bars on standard error, drawn alike by every command, and the one for passages that are being encoded."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from importlib.util import find_spec
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.text import Text

from medexam.experiments.entry.terminal import Terminal
from medexam.specs import ModelSpec
from medexam.specs.names import short_name
from medexam.text import count_of

BAR = 16
"""Characters of a bar: beside it a name and two times fit into 80."""


class _Times(ProgressColumn):
    """How long a task takes so far, and how much longer it will; both named."""

    def render(self, task: Task) -> Text:
        """Render `0:00:12 elapsed`, and `0:01:05 left` as soon as anything is done."""
        if task.finished:
            return Text(f"took {_clock(task.finished_time)}", style="progress.elapsed")
        text = f"{_clock(task.elapsed)} elapsed"
        if task.time_remaining is not None:
            text += f", {_clock(task.time_remaining)} left"
        return Text(text, style="progress.remaining")


def _clock(seconds: float | None) -> str:
    return str(timedelta(seconds=round(seconds or 0)))


class _Bars(Progress):
    """Bars with one more line below them."""

    def __init__(self, console: Terminal, below: Callable[[], RenderableType | None]) -> None:
        self._below = below
        super().__init__(
            # It turns while nothing is done yet, so that a first wave of slow answers is not taken for a standstill.
            SpinnerColumn(finished_text=" "),
            TextColumn("{task.description}"),
            BarColumn(bar_width=BAR),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            _Times(),
            console=console,
            disable=not draws(console),
        )

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return the bars, then the line if there is one."""
        line = self._below()
        yield from super().get_renderables()
        if line is not None:
            yield line


def draws(console: Console) -> bool:
    """Return whether bars are drawn: on a terminal, and in a notebook that has widgets."""
    return console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)


def open_bars(below: Callable[[], RenderableType | None] = lambda: None, *, disable: bool = False) -> Progress:
    """Open bars on standard error; where none are drawn their lines alone are written, and nothing with `disable`.

    `below` gives a line to stand below them, None for none; it is called ten times a second by the thread that draws.
    """
    return _Bars(Terminal(stderr=True, quiet=disable), below)


class WorkProgress:
    """Bars that are drawn while a `with` block lasts: what the observers of runs and optimizations share.

    `below` and `disable` are those of `open_bars`.
    """

    def __init__(self, below: Callable[[], RenderableType | None], *, disable: bool) -> None:
        self._bars = open_bars(below, disable=disable)
        self._console = self._bars.console
        self._draws = draws(self._bars.console)

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

    def _say(self, line: str) -> None:
        write_line(self._console, line)


def write_line(console: Console, line: str) -> None:
    """Write a line as it is, above the bars if there are any."""
    console.print(line, highlight=False, markup=False, soft_wrap=True)


class EncodingProgress:
    """Called with the number of passages encoded so far: a bar, or one line without a terminal.

    An index that is complete at the first call shows nothing.
    """

    def __init__(self, bars: Progress, label: str, total: int) -> None:
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
                write_line(self._bars.console, f"{self._label}: {self._total:,} passages{note} ...")
        self._bars.update(self._task, completed=count)
