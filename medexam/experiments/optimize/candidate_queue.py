"""Programs that are asked one after the other, the next as soon as the model has nearly run out of questions.

So the model is kept busy, and whatever interrupts an optimization finds most of what was begun whole.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from medexam.experiments.run.scheduler import QuestionObserver
from medexam.predictions import Prediction


class Turn:
    """One program's turn; it hears what is asked and passes it on."""

    def __init__(self, turns: "Turns", questions: int) -> None:
        self._turns = turns
        self.left = questions
        """Questions that are not answered yet."""

    def asked(self) -> None:
        """One question is in flight from now on."""
        self._turns.observer.asked()

    def answered(self, prediction: Prediction) -> None:
        """One question is done."""
        self.left -= 1
        self._turns.answered(1)
        self._turns.observer.answered(prediction)

    def stopping(self, in_flight: int) -> None:
        """Ctrl-C came."""
        self._turns.observer.stopping(in_flight)


class Turns:
    """Hands out turns in the order in which they are asked for; it belongs to the loop it is used on."""

    def __init__(self, observer: QuestionObserver, in_flight: Callable[[], int]) -> None:
        """`in_flight` tells how many questions keep the model busy; it may change."""
        self.observer = observer
        self._in_flight = in_flight
        self._pending = 0
        self._active = 0
        self._room = asyncio.Event()

    @asynccontextmanager
    async def taking(self, questions: int) -> AsyncIterator[Turn]:
        """A turn of so many questions, as soon as there is room for it."""
        while self._pending >= self._in_flight():
            self._room.clear()
            await self._room.wait()
        turn = Turn(self, questions)
        self._pending += questions
        self._active += 1
        try:
            yield turn
        finally:
            self._active -= 1
            self.answered(turn.left)

    def share(self) -> int:
        """How many questions of one turn may be in flight."""
        return math.ceil(self._in_flight() / max(1, self._active))

    def answered(self, questions: int) -> None:
        """So many questions are pending no more."""
        self._pending -= questions
        if self._pending < self._in_flight():
            self._room.set()
