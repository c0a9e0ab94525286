"""What an optimization may ask: calls, tokens and minutes, none of which is ever exceeded.

It knows nothing of DSPy.
"""

import asyncio
import time

from medexam.specs.optimizer import OptimizerSpec


class StoppedError(BaseException):
    """The optimization ends here, with the best so far.

    No `Exception`: DSPy's optimizers count those as failures of a program and continue.
    """


class Budget:
    """Counts what is spent; it belongs to the loop that it is used on."""

    def __init__(self, limits: OptimizerSpec, *, calls: int, tokens: int, seconds: float) -> None:
        """Take up the counts; `calls`, `tokens` and `seconds` were spent before."""
        self.limits = limits
        """Its `max_calls`, `max_tokens` and `max_minutes`."""
        self.calls = calls
        self.tokens = tokens
        self.stop_reason: str | None = None
        """Why nothing more may be asked; None while something may."""
        self._start = time.monotonic() - seconds
        self._in_flight = 0
        self._tokens_in_flight = 0
        """The most that the calls in flight can take."""
        self._reserved = 0
        self._call_ended = asyncio.Condition()

    @property
    def seconds(self) -> float:
        """Seconds of asking so far."""
        return time.monotonic() - self._start

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the last minute is over; None without a limit."""
        return None if self.limits.max_minutes is None else 60 * self.limits.max_minutes - self.seconds

    @property
    def calls_left(self) -> int | None:
        """Calls that may still begin and are not reserved; None without a limit."""
        return None if self.limits.max_calls is None else self.limits.max_calls - self.calls - self._reserved

    def stop(self, reason: str) -> None:
        """Let no further call begin."""
        self.stop_reason = self.stop_reason or reason

    def check(self) -> None:
        """Raise `StoppedError` if nothing more may be asked."""
        seconds_left = self.seconds_left
        if seconds_left is not None and seconds_left <= 0:
            self.stop(f"{self.limits.max_minutes:g} minutes are over")
        if self.stop_reason is not None:
            raise StoppedError(self.stop_reason)

    def reserve(self, calls: int) -> bool:
        """Keep calls for one trial, so that none is begun that cannot end; False if fewer are left."""
        calls_left = self.calls_left
        if calls_left is not None and calls_left < calls:
            return False
        self._reserved += calls
        return True

    def release(self, calls: int) -> None:
        """Give back reserved calls that were not made."""
        self._reserved -= calls

    async def begin(self, most_tokens: int, *, reserved: bool) -> None:
        """Begin one call that takes `most_tokens` at most; `reserved` if a reserved one is used up.

        Raises `StoppedError` if the budget does not allow it.
        """
        async with self._call_ended:
            # What a call takes is known only when it is over. Until then it counts with the most that it can take, so
            # the limit holds whatever the calls in flight turn out to cost. One that does not fit waits for them: they
            # mostly take less. With none in flight, waiting would change nothing.
            while not self._fits(most_tokens):
                if not self._in_flight:
                    self.stop(f"{self.limits.max_tokens} tokens are too few for another call")
                self.check()
                await self._call_ended.wait()
            self.check()
            if reserved:
                self._reserved -= 1
            elif self.calls_left is not None and self.calls_left <= 0:
                # Reserved calls may still begin, so this call fails and the optimization is not stopped.
                raise StoppedError(f"all {self.limits.max_calls} calls of the budget are used")
            self.calls += 1
            self._in_flight += 1
            self._tokens_in_flight += most_tokens

    async def end(self, most_tokens: int, tokens: int) -> None:
        """End the call that could take `most_tokens` and took `tokens`."""
        async with self._call_ended:
            self._in_flight -= 1
            self._tokens_in_flight -= most_tokens
            self.tokens += tokens
            self._call_ended.notify_all()

    def _fits(self, tokens: int) -> bool:
        return self.limits.max_tokens is None or self.tokens + self._tokens_in_flight + tokens <= self.limits.max_tokens
