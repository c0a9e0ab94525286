"""The queue of candidate programs: the next is asked as soon as the model has nearly run out of questions.

So the model is kept busy, and whatever interrupts an optimization finds most of what was begun whole.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from medexam.experiments.run.scheduler import QuestionObserver
from medexam.predictions import Prediction


class QueuedCandidate:
    """One program that is being asked; a `QuestionObserver` that counts for its queue."""

    def __init__(self, queue: "CandidateQueue", questions: int) -> None:
        self._queue = queue
        self.pending = questions
        """Questions that are not answered yet."""

    def asked(self) -> None:
        """Count one question that is in flight from now on."""
        self._queue.observer.asked()

    def answered(self, prediction: Prediction) -> None:
        """Count one question that is done."""
        self.pending -= 1
        self._queue.settle(1)
        self._queue.observer.answered(prediction)

    def stopping(self, in_flight: int) -> None:
        """Pass on that Ctrl-C came."""
        self._queue.observer.stopping(in_flight)


class CandidateQueue:
    """Admits candidates in the order in which they come; it belongs to the loop that it is used on."""

    def __init__(self, observer: QuestionObserver, concurrency: Callable[[], int]) -> None:
        """`concurrency` returns how many questions keep the model busy; it may change."""
        self.observer = observer
        self._concurrency = concurrency
        self._pending = 0
        self._active = 0
        self._free = asyncio.Event()

    @asynccontextmanager
    async def admit(self, questions: int) -> AsyncIterator[QueuedCandidate]:
        """Wait until the model may be asked a candidate's questions; for the block, the candidate."""
        # Asked again after each wait: a candidate that waited as well may have been admitted first.
        while self._pending >= self._concurrency():
            self._free.clear()
            await self._free.wait()
        candidate = QueuedCandidate(self, questions)
        self._pending += questions
        self._active += 1
        try:
            yield candidate
        finally:
            self._active -= 1
            # Of a candidate that was cut off, the questions without an answer are not pending any more either.
            self.settle(candidate.pending)

    def share(self) -> int:
        """Return how many questions of one candidate may be in flight."""
        return math.ceil(self._concurrency() / max(1, self._active))

    def settle(self, questions: int) -> None:
        """Count questions as pending no more."""
        self._pending -= questions
        if self._pending < self._concurrency():
            self._free.set()
