"""The questions of a cell on their way through the workers: who gets which, and what becomes of a lost worker's.

Workers are given questions a little ahead of what they ask, so that none is idle and a slow one gets fewer. Answers
come back in batches, for the progress alone: they count once they lie in the worker's shard of the run's folder.
"""

import asyncio
import math
from collections import deque
from collections.abc import Sequence
from typing import Any

from medexam.errors import EngineError
from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.run.scheduler import GRACE_S, QuestionObserver
from medexam.experiments.run.spending import Spending
from medexam.experiments.run.workers.messages import WorkerReport
from medexam.experiments.run.workers.remote import RemoteWorker, WorkerLostError, ask_all
from medexam.experiments.run.workers.worker import Worker
from medexam.experiments.store.prediction_lines import check_own, scan_predictions
from medexam.experiments.store.shards import shard_path
from medexam.predictions import Prediction
from medexam.text import count_of

AHEAD = 2
"""How many questions wait at a worker, as a multiple of those in flight."""
_LAST_WRITE_S = 2.0
"""Seconds that workers get to put their answers on the disk after a second Ctrl-C."""


class Dispatcher:
    """Has workers ask the questions of one cell."""

    def __init__(
        self, planned: AnyCell, workers: Sequence[RemoteWorker], observer: QuestionObserver, spending: Spending
    ) -> None:
        self._planned = planned
        self._workers = workers
        self._observer = observer
        self._spending = spending
        self._queue = deque(planned.pending)
        self._answered_keys: set[str] = set()
        """Keys of the questions that are done."""
        self._begun_by_lost = 0
        """Questions that lost workers had begun: the observer knows of them, and must not hear of them again."""
        self._stopping = False
        self._changed = asyncio.Event()

    @property
    def _active(self) -> list[RemoteWorker]:
        """Those that still ask."""
        return [worker for worker in self._workers if not worker.over and not worker.lost]

    async def run(self) -> None:
        """Ask until all is asked or nobody asks any more.

        Raises what a worker raised, and `EngineError` where all are lost. Cancelling stops the workers as it stops a
        local run.
        """
        drivers = [asyncio.create_task(self._drive(worker)) for worker in self._workers]
        try:
            await asyncio.wait(drivers, return_when=asyncio.FIRST_EXCEPTION)
        except asyncio.CancelledError:
            self._observer.stopping(sum(worker.in_flight for worker in self._active))
            await self._halt()
            raise
        else:
            # One raised: the others are stopped in order, for what they have in flight is paid for.
            if any(driver.done() and driver.exception() for driver in drivers):
                await self._halt()
        finally:
            for task in drivers:
                task.cancel()
            outcomes = await asyncio.gather(*drivers, return_exceptions=True)
        for fault in outcomes:
            if isinstance(fault, Exception):
                raise fault
        if self._queue and all(worker.lost for worker in self._workers):
            raise EngineError(
                f"{self._planned.run_id}: every worker has stopped; "
                f"{count_of(len(self._queue), 'question')} still pending: run the same command again"
            )

    def hear(self, worker: RemoteWorker, report: WorkerReport) -> None:
        """Take in what a worker reports; raises `RunFolderError` where an answer is of another run."""
        repeats = min(self._begun_by_lost, report.starts)
        self._begun_by_lost -= repeats
        for _ in range(report.starts - repeats):
            self._observer.asked()
        worker.in_flight += report.starts
        for prediction in map(Prediction.model_validate_json, report.lines):
            check_own(prediction, self._planned.spec_digest, f"an answer of the worker on {worker.host}")
            self._count(worker, prediction)
        worker.waiting, worker.concurrency = report.waiting, report.concurrency
        self._wake()

    async def _halt(self) -> None:
        """Have all workers begin nothing more, and wait for what is in flight; a second Ctrl-C does not wait."""
        self._stopping = True
        halting = asyncio.create_task(self._stop_all(GRACE_S))
        try:
            # Shielded: a cancelled call would drop the workers' last reports, and with them answers from the progress.
            await asyncio.shield(halting)
        except asyncio.CancelledError:
            # Workers whose grace is cut short still write what they have; without this wait the driver would merge
            # their shards before that.
            await asyncio.wait([asyncio.create_task(self._stop_all(0.0)), halting], timeout=_LAST_WRITE_S)
            raise

    async def _stop_all(self, grace_s: float | None) -> None:
        for worker, report in await ask_all(self._active, lambda asker: asker.handle.call(Worker.stop, grace_s)):
            if isinstance(report, WorkerReport):
                self.hear(worker, report)
                worker.over = True
        self._wake()

    async def _drive(self, worker: RemoteWorker) -> None:
        """Keep one worker supplied until nothing is left to ask."""
        try:
            while not worker.over:
                chunk = self._next_questions(worker)
                if not chunk and not worker.questions:
                    if not await self._find_work(worker):
                        return
                    continue
                report = await worker.handle.call(Worker.exchange, chunk, bool(self._queue) and not self._stopping)
                self.hear(worker, report)
                if report.fault is not None:
                    raise report.fault
                if report.over:
                    self._retire(worker)
                elif self._spending.exhausted and not self._stopping:
                    self._stopping = True
                    await self._stop_all(None)
        except WorkerLostError:
            await self._replace_lost(worker)
        finally:
            # Others wait for work that this worker may have returned, or for it to end.
            self._wake()

    def _next_questions(self, worker: RemoteWorker) -> list[Any]:
        """Take what a worker is given now: it keeps two chunks ahead, and towards the end all get equal shares."""
        if self._stopping:
            return []
        room = AHEAD * worker.concurrency - worker.waiting
        # Half of an equal share: the rest of the queue goes to the fastest workers.
        share = math.ceil(len(self._queue) / (2 * len(self._active)))
        chunk = [self._queue.popleft() for _ in range(min(room, share))]
        worker.questions |= {question.key: question for question in chunk}
        worker.waiting += len(chunk)
        return chunk

    async def _find_work(self, worker: RemoteWorker) -> bool:
        """Take questions from the worker with most for one that has none, or wait; False where nothing can come."""
        others = [peer for peer in self._active if peer is not worker and peer.questions]
        if self._stopping or not (others or self._queue):
            return False
        fullest = max(others, key=lambda peer: peer.waiting, default=None)
        if fullest is not None and fullest.waiting > 1:
            number = fullest.waiting // 2
            # Subtracted before the reply: a second idle worker would otherwise ask the same one for the same questions.
            fullest.waiting -= number
            try:
                keys = await fullest.handle.call(Worker.take_back, number)
            except WorkerLostError:
                # The other one died, not this one: its own driving task replaces it.
                keys = []
            # What it was given may be in the queue already, if it was retired or lost meanwhile.
            self._queue.extendleft(fullest.questions.pop(key) for key in keys if key in fullest.questions)
        else:
            # Only if nothing was awaited since the look above: a change in between would be waited for in vain.
            await self._changed.wait()
        return True

    def _count(self, worker: RemoteWorker, prediction: Prediction) -> None:
        worker.questions.pop(prediction.question, None)
        # A lost worker's shard holds answers that it had reported too.
        if prediction.question in self._answered_keys:
            return
        self._answered_keys.add(prediction.question)
        worker.in_flight -= 1
        worker.question_count += 1
        self._spending.add(prediction)
        self._observer.answered(prediction)

    def _retire(self, worker: RemoteWorker) -> None:
        """Let a worker ask no more: what it has not done is for the others."""
        worker.over = True
        self._queue.extendleft(reversed(worker.questions.values()))
        worker.questions = {}

    async def _replace_lost(self, worker: RemoteWorker) -> None:
        """Replace a worker that died: what lies in its shard is done, and the others get the rest of its questions."""
        worker.lose("while it asked; the other workers take its pending questions")
        path, digest = shard_path(self._planned.folder.path, worker.name), self._planned.spec_digest
        for prediction in await asyncio.to_thread(lambda: [answer for _, answer in scan_predictions(path, digest)]):
            self._count(worker, prediction)
        self._begun_by_lost += worker.in_flight
        self._retire(worker)

    def _wake(self) -> None:
        """End all current waits; a later wait ends at the next change."""
        self._changed.set()
        self._changed = asyncio.Event()
