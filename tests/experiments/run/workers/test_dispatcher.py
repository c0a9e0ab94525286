"""Questions on their way through workers that tests play: who gets which, and what becomes of a lost worker's."""

import asyncio
from types import SimpleNamespace

import pytest

from medexam.errors import EngineError
from medexam.experiments import RunFolder, Spending
from medexam.experiments.run.workers.dispatcher import Dispatcher
from medexam.experiments.run.workers.messages import WorkerReport
from medexam.experiments.run.workers.remote import RemoteWorker, WorkerLostError
from medexam.predictions import Prediction, Status
from watching import Silent

QUESTIONS = [SimpleNamespace(key=f"q{number}") for number in range(40)]
TIMEOUT_S = 60.0
"""Nothing here takes a second on an idle machine; what never ends fails after this."""


class Counting(Silent):
    def __init__(self) -> None:
        self.begun = 0
        self.answers: list[str] = []

    def asked(self) -> None:
        self.begun += 1

    def answered(self, prediction) -> None:
        self.answers.append(prediction.question)


class Played:
    """A worker and its handle: does one question for each exchange, once it is released."""

    def __init__(
        self, *, held: bool = False, dies_when_asked_back: bool = False, fault: Exception | None = None
    ) -> None:
        self.waiting: list = []
        self.asked: list[str] = []
        self.stopped = self.dead = False
        self._dies_when_asked_back, self._fault = dies_when_asked_back, fault
        self._released = asyncio.Event()
        if not held:
            self._released.set()

    async def call(self, method, *arguments):
        return await getattr(self, method.__name__)(*arguments)

    def kill(self) -> None:
        self.dead = True

    def release(self) -> None:
        self._released.set()

    async def exchange(self, questions, more):
        self.waiting += questions
        await self._released.wait()
        if self.dead:
            raise WorkerLostError
        done = [self.waiting.pop(0).key] if self.waiting else []
        self.asked += done
        answers = [
            Prediction(question=key, program="p", spec_digest="d", status=Status.ANSWERED, answer=1) for key in done
        ]
        return WorkerReport(
            len(done),
            tuple(one.to_line() for one in answers),
            len(self.waiting),
            2,
            over=self._fault is not None,
            fault=self._fault,
        )

    async def take_back(self, number):
        if self._dies_when_asked_back:
            self.dead = True
            self.release()
            raise WorkerLostError
        return [self.waiting.pop().key for _ in range(min(number, len(self.waiting)))]

    async def stop(self, grace_s):
        self.stopped = True
        self.release()
        return WorkerReport(0, (), len(self.waiting), 2, over=True)


@pytest.fixture
def dispatch(tmp_path):
    """`dispatch(*played)` -> the workers as the driver sees them, and what the observer heard."""

    async def start(*played):
        workers = [RemoteWorker(f"w{n}", f"host{n}", one) for n, one in enumerate(played)]
        planned = SimpleNamespace(pending=QUESTIONS, spec_digest="d", run_id="run", folder=RunFolder(tmp_path, "d"))
        observer = Counting()
        async with asyncio.timeout(TIMEOUT_S):
            await Dispatcher(planned, workers, observer, Spending()).run()
        return workers, observer

    return start


async def test_an_idle_worker_takes_from_the_one_with_most(dispatch) -> None:
    slow, fast = Played(held=True), Played()
    kept = asyncio.create_task(dispatch(slow, fast))
    while len(fast.asked) < len(QUESTIONS) - 2:
        assert not kept.done()
        await asyncio.sleep(0)
    slow.release()
    _, observer = await kept
    assert sorted(observer.answers) == sorted(question.key for question in QUESTIONS)
    assert not set(slow.asked) & set(fast.asked)


async def test_a_worker_that_dies_while_another_takes_from_it_is_the_only_one_lost(dispatch) -> None:
    (slow, fast), observer = await dispatch(Played(held=True, dies_when_asked_back=True), Played())
    assert (slow.lost, fast.lost) == (True, False)
    assert sorted(observer.answers) == sorted(question.key for question in QUESTIONS)
    assert (observer.begun, fast.question_count) == (len(QUESTIONS), len(QUESTIONS))


async def test_without_any_worker_left_the_rest_stays_pending(dispatch) -> None:
    dead = Played()
    dead.dead = True
    with pytest.raises(EngineError, match="every worker has stopped; 40 questions still pending"):
        await dispatch(dead)


async def test_a_fault_of_one_worker_stops_the_others_and_is_raised(dispatch) -> None:
    broken, other = Played(fault=EngineError("refused with 401")), Played(held=True)
    with pytest.raises(EngineError, match="refused with 401"):
        await dispatch(broken, other)
    assert other.stopped
