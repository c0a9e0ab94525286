"""Questions on their way through workers that tests play: who gets which, and what becomes of a lost worker's."""

import asyncio
from types import SimpleNamespace

import pytest
from ray.exceptions import RayActorError

from medexam.errors import EngineError
from medexam.experiments.run.ray.dispatcher import Dispatcher, RemoteWorker
from medexam.experiments.run.ray.messages import WorkerReport
from medexam.experiments.run.spending import Spending
from medexam.experiments.store.run_folder import RunFolder
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
    """Does one question for each exchange, once it is released; a dead one raises as Ray does."""

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

    def release(self) -> None:
        self._released.set()

    async def exchange(self, questions, more):
        self.waiting += questions
        await self._released.wait()
        if self.dead:
            raise RayActorError
        done = [self.waiting.pop(0).key] if self.waiting else []
        self.asked += done
        answers = [
            Prediction(question=key, program="p", spec_digest="d", status=Status.ANSWERED, answer=1) for key in done
        ]
        return WorkerReport(
            len(done), tuple(answers), len(self.waiting), 2, over=self._fault is not None, fault=self._fault
        )

    async def take_back(self, number):
        if self._dies_when_asked_back:
            self.dead = True
            self.release()
            raise RayActorError
        return [self.waiting.pop().key for _ in range(min(number, len(self.waiting)))]

    async def stop(self, grace_s):
        self.stopped = True
        self.release()
        return WorkerReport(0, (), len(self.waiting), 2, over=True)


@pytest.fixture
def dispatch(tmp_path, monkeypatch):
    """`dispatch(*played)` -> the workers as the driver sees them, and what the observer heard."""
    monkeypatch.setattr("ray.kill", lambda actor: None)

    async def start(*played):
        calls = [
            {name: SimpleNamespace(remote=getattr(one, name)) for name in ("exchange", "take_back", "stop")}
            for one in played
        ]
        workers = [
            RemoteWorker(f"w{n}", None, SimpleNamespace(**each), host=f"host{n}") for n, each in enumerate(calls)
        ]
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
    assert (observer.begun, fast.asked) == (len(QUESTIONS), len(QUESTIONS))


async def test_without_any_worker_left_the_rest_stays_pending(dispatch) -> None:
    dead = Played()
    dead.dead = True
    with pytest.raises(EngineError, match="every worker of the Ray cluster is gone; 40 questions are still pending"):
        await dispatch(dead)


async def test_a_fault_of_one_worker_stops_the_others_and_is_raised(dispatch) -> None:
    broken, other = Played(fault=EngineError("refused with 401")), Played(held=True)
    with pytest.raises(EngineError, match="refused with 401"):
        await dispatch(broken, other)
    assert other.stopped
