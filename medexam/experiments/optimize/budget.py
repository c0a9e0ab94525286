"""What an optimization may ask: calls, tokens and minutes, none of which is ever exceeded.

What a call will take is known only when it is over, so each holds the most that it can take until then; a call that
does not fit waits for those in flight, and ends the optimization where none is. It knows nothing of DSPy.
"""

import asyncio
import time
from dataclasses import dataclass


class StoppedError(BaseException):
    """The optimization ends here, with the best so far.

    No `Exception`: DSPy's optimizers count those as failures of a program and go on.
    """


@dataclass(frozen=True)
class Limits:
    """None sets no limit."""

    calls: int | None = None
    tokens: int | None = None
    minutes: float | None = None


class Budget:
    """Counts what is spent; it belongs to the loop that it is used on."""

    def __init__(self, limits: Limits, *, calls: int = 0, tokens: int = 0, seconds: float = 0.0) -> None:
        """`calls`, `tokens` and `seconds` were spent before."""
        self.limits = limits
        self.calls = calls
        self.tokens = tokens
        self.stopped: str | None = None
        """Why nothing more may be asked; None while something may."""
        self._begun = time.monotonic() - seconds
        self._in_flight = 0
        self._held = 0
        self._promised = 0
        self._freed = asyncio.Condition()

    @property
    def seconds(self) -> float:
        """Seconds of asking so far."""
        return time.monotonic() - self._begun

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the last minute is over; None without a limit."""
        return None if self.limits.minutes is None else 60 * self.limits.minutes - self.seconds

    @property
    def calls_left(self) -> int | None:
        """Calls that may still begin and are promised to nobody; None without a limit."""
        return None if self.limits.calls is None else self.limits.calls - self.calls - self._promised

    def stop(self, why: str) -> None:
        """Let no further call begin."""
        self.stopped = self.stopped or why

    def check(self) -> None:
        """Raises `StoppedError` where nothing more may be asked."""
        left = self.seconds_left
        if left is not None and left <= 0:
            self.stop(f"{self.limits.minutes:g} minutes are over")
        if self.stopped is not None:
            raise StoppedError(self.stopped)

    def promise(self, calls: int) -> bool:
        """Keep so many calls for one purpose; whether there are so many."""
        left = self.calls_left
        if left is not None and left < calls:
            return False
        self._promised += calls
        return True

    def release(self, calls: int) -> None:
        """Give back what was promised and not taken."""
        self._promised -= calls

    async def begin(self, most_tokens: int, *, promised: bool) -> None:
        """One call begins, which takes `most_tokens` at most; `promised` takes it from what was promised.

        Raises `StoppedError` where the budget does not allow it.
        """
        async with self._freed:
            while not self._fits(most_tokens):
                if not self._in_flight:
                    self.stop(f"{self.limits.tokens} tokens do not suffice for another call")
                self.check()
                await self._freed.wait()
            self.check()
            if promised:
                self._promised -= 1
            elif self.calls_left is not None and self.calls_left <= 0:
                raise StoppedError(f"{self.limits.calls} calls are spent")
            self.calls += 1
            self._in_flight += 1
            self._held += most_tokens

    async def end(self, most_tokens: int, tokens: int | None) -> None:
        """The call took so many tokens; None, where that is unknown, counts as the most."""
        async with self._freed:
            self._in_flight -= 1
            self._held -= most_tokens
            self.tokens += most_tokens if tokens is None else tokens
            self._freed.notify_all()

    def _fits(self, tokens: int) -> bool:
        return self.limits.tokens is None or self.tokens + self._held + tokens <= self.limits.tokens
