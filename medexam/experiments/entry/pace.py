"""How a run goes, in figures: what is done, how fast, what failed, and how many are right so far.

Counting is a few additions for each question; whatever costs more is found when the figures are looked at. It knows
predictions and golds; it draws nothing.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from medexam.distributions import rate_interval
from medexam.predictions import Prediction, Status

WINDOW_S = 10.0
"""Seconds that the rates look back, or to the last look where that is longer ago."""


@dataclass
class Pace:
    """The figures of one cell while it is asked."""

    is_right: Callable[[Prediction], bool] | None
    """Whether an answer is right; None if answers are more or less right, so that there is no accuracy to show."""
    total: int
    """Questions of the cell."""
    progress: int
    """Questions that need not be asked any more, those of earlier invocations included, and those that failed now."""
    right: int
    """Right answers, those of earlier invocations included."""
    failed: int = 0
    """Questions that failed in this invocation."""
    in_flight: int = 0
    later: int = 0
    """Questions of the cells that are asked after this one."""
    tokens: int = 0
    """Of this invocation, prompts and replies, as far as the engine reports them."""
    _looks: deque[tuple[float, int, int]] = field(default_factory=deque)

    def asked(self) -> None:
        """Note that one question is in flight from now on."""
        self.in_flight += 1

    def answered(self, prediction: Prediction) -> None:
        """Note that one question is done."""
        self.in_flight -= 1
        self.progress += 1
        self.tokens += (prediction.prompt_tokens or 0) + (prediction.completion_tokens or 0)
        if prediction.status is Status.FAILED:
            self.failed += 1
        elif self.is_right is not None:
            self.right += self.is_right(prediction)

    def describe(self, now: float, *, time_left: bool = False) -> str:
        """Describe questions and tokens a second, in flight, failed, `time_left`, and accuracy with its 95 % interval.

        `now` is in seconds on a clock of the caller's; the rates are those since the looks before. What is not known
        yet is left out: the time left, until as many questions are done as are in flight.
        """
        speed, tokens = self._rates(now)
        parts = []
        if speed:
            parts.append(f"{_rate(speed)} questions/s" if speed >= 0.1 else f"{60 * speed:.1f} questions/min")
        if tokens:
            parts.append(f"{_rate(tokens)} tokens/s")
        parts.append(f"{self.in_flight} in flight")
        if self.failed:
            parts.append(f"{self.failed} failed")
        if time_left and speed and self.in_flight <= self.progress < self.total:
            parts.append(f"{timedelta(seconds=round((self.total - self.progress) / speed))} left")
        if self.later and speed and self.in_flight <= self.progress:
            remaining = self.total - self.progress + self.later
            parts.append(f"all cells: {timedelta(seconds=round(remaining / speed))} left")
        scored = self.progress - self.failed
        interval = None if self.is_right is None else rate_interval(self.right, scored)
        if interval is not None:
            low, high = interval
            parts.append(f"accuracy {100 * self.right / scored:.1f} % [{100 * low:.1f}, {100 * high:.1f}]")
        return " · ".join(parts)

    def _rates(self, now: float) -> tuple[float, float]:
        """Return questions and tokens a second since the oldest look within the window; 0 at the first look."""
        looks = self._looks
        looks.append((now, self.progress, self.tokens))
        while len(looks) > 2 and looks[1][0] <= now - WINDOW_S:
            looks.popleft()
        look_s, look_progress, tokens = looks[0]
        span_s = now - look_s
        return ((self.progress - look_progress) / span_s, (self.tokens - tokens) / span_s) if span_s > 0 else (0.0, 0.0)


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
