"""Asking is stopped without losing what is in flight, follows the limit, takes more questions, and counts them."""

import asyncio
from contextlib import asynccontextmanager

import dspy
import pytest
import yaml

from medexam.errors import RunFolderError
from medexam.experiments import Spending, plan_experiment
from medexam.experiments.run.scheduler import Scheduler, Work
from medexam.experiments.run.spending import Limits
from medexam.predictions import Status
from medexam.serve import ScriptedEngine
from recorded import recorded
from watching import Silent

IN_FLIGHT = 4
TIMEOUT_S = 60.0
"""Nothing here takes a second on an idle machine; what never ends fails after this."""


class Held(ScriptedEngine):
    """Replies once it is released."""

    def __init__(self) -> None:
        super().__init__({"*": "{Answer: 1}"})
        self.released = asyncio.Event()

    async def reply(self, dialogue):
        await self.released.wait()
        return await super().reply(dialogue)


class Counting(Silent):
    """Knows how many questions are in flight; says when they are `IN_FLIGHT`, and when Ctrl-C was heard."""

    def __init__(self, heard=lambda: None) -> None:
        self.in_flight = self.most = self.answers = 0
        self.waited_for: list[int] = []
        self.full, self.stopped = asyncio.Event(), asyncio.Event()
        self._heard = heard

    def asked(self) -> None:
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        if self.in_flight == IN_FLIGHT:
            self.full.set()

    def answered(self, prediction) -> None:
        self.in_flight -= 1
        self.answers += 1

    def stopping(self, in_flight) -> None:
        self.waited_for.append(in_flight)
        self.stopped.set()
        self._heard()


@pytest.fixture
def planned(tmp_path):
    """A cell over twelve questions, in a folder that exists."""
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": "{Answer: 1}"}))
    document = {
        "name": "held",
        "dataset": {"name": "headqa_sample", "limit": 12},
        "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
        "program": {"kind": "zero_shot"},
    }
    (cell,) = plan_experiment(document, {}, runs_dir=tmp_path / "runs").cells
    cell.folder.create()
    return cell


@asynccontextmanager
async def asking(planned, engine, observer, *, failures=None, limit=lambda: IN_FLIGHT, log=None, **options):
    """A scheduler, and the task that runs it; the task has ended when the block has."""
    lm = dspy.LM("medexam/held", **recorded(engine), cache=False)
    with planned.folder.appending() as file:
        scheduler = Scheduler(Work.of(planned), log or file, observer, failures or Spending(), limit, **options)
        with dspy.context(lm=lm, disable_history=True):
            task = asyncio.create_task(scheduler.run())
        async with asyncio.timeout(TIMEOUT_S):
            yield scheduler, task
            await asyncio.wait([task])


async def test_cancelling_finishes_what_is_in_flight_and_begins_nothing(planned) -> None:
    engine, failures = Held(), Spending()
    watcher = Counting(heard=engine.released.set)
    async with asking(planned, engine, watcher, failures=failures, questions=planned.pending) as (_, task):
        await watcher.full.wait()
        task.cancel()
    assert task.cancelled()
    assert watcher.waited_for == [IN_FLIGHT]
    assert (watcher.answers, watcher.most, watcher.in_flight) == (IN_FLIGHT, IN_FLIGHT, 0)
    assert (failures.questions, failures.failed) == (IN_FLIGHT, 0)
    assert len(planned.folder.read_predictions()) == IN_FLIGHT


async def test_cancelling_twice_does_not_wait(planned, monkeypatch) -> None:
    monkeypatch.setattr("medexam.experiments.run.scheduler.GRACE_S", 2 * TIMEOUT_S)
    watcher = Counting()
    async with asking(planned, Held(), watcher, questions=planned.pending) as (_, task):
        await watcher.full.wait()
        task.cancel()
        await watcher.stopped.wait()
        task.cancel()
    assert task.cancelled()
    assert watcher.answers == 0
    assert planned.folder.read_predictions() == {}


async def test_what_never_ends_is_waited_for_so_long_and_no_longer(planned, monkeypatch) -> None:
    monkeypatch.setattr("medexam.experiments.run.scheduler.GRACE_S", 0.1)
    watcher = Counting()
    async with asking(planned, Held(), watcher, questions=planned.pending) as (_, task):
        await watcher.full.wait()
        task.cancel()
    assert task.cancelled()
    assert (watcher.waited_for, watcher.answers) == ([IN_FLIGHT], 0)


async def test_a_question_that_stays_unanswered_is_no_failure(planned) -> None:
    watcher, failures = Counting(), Spending(Limits(failures=1))
    engine = ScriptedEngine({"*": {"error": "context"}})
    async with asking(planned, engine, watcher, failures=failures, questions=planned.pending) as (_, task):
        pass
    assert (task.exception(), watcher.answers, failures.exhausted) == (None, 12, None)


async def test_as_many_are_in_flight_as_the_limit_allows_while_it_falls_and_rises(planned) -> None:
    limits = iter([4, 4, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3])
    now = [next(limits)]
    seen: list[tuple[int, int]] = []

    class Watcher(Counting):
        def asked(self) -> None:
            super().asked()
            seen.append((self.in_flight, now[0]))

        def answered(self, prediction) -> None:
            super().answered(prediction)
            now[0] = next(limits)

    async with asking(
        planned, ScriptedEngine({"*": "{Answer: 1}"}), Watcher(), limit=lambda: now[0], questions=planned.pending
    ):
        pass
    assert len(seen) == 12
    assert {limit for in_flight, limit in seen if in_flight == limit} == {4, 2, 3}
    assert all(in_flight <= limit for in_flight, limit in seen)


async def test_questions_that_come_later_are_asked_too(planned) -> None:
    engine, watcher = Held(), Counting()
    async with asking(planned, engine, watcher, open=True) as (scheduler, task):
        scheduler.supply(planned.pending[:5])
        await watcher.full.wait()
        engine.released.set()
        scheduler.supply(planned.pending[5:])
        scheduler.close()
    assert task.exception() is None
    found = planned.folder.read_predictions()
    assert {one.status for one in found.values()} == {Status.ANSWERED}
    assert set(found) == {question.key for question in planned.pending}


async def test_nothing_more_is_asked_once_answers_cannot_be_kept(planned, monkeypatch) -> None:
    monkeypatch.setattr("medexam.experiments.run.scheduler.FLUSH_S", 0.0)
    engine, watcher, failed = Held(), Counting(), asyncio.Event()

    class FullDisk:
        def append(self, prediction) -> None:
            pass

        def flush(self) -> None:
            failed.set()
            raise RunFolderError("cannot write")

    async with asking(planned, engine, watcher, log=FullDisk(), questions=planned.pending) as (_, task):
        await watcher.full.wait()
        await failed.wait()
        engine.released.set()
    assert isinstance(task.exception(), RunFolderError)
    assert watcher.answers == IN_FLIGHT


async def test_the_first_questions_are_sent_before_the_last_are_prepared(planned) -> None:
    class Noting(Silent):
        """Notes how many questions were begun when the first one's turn of the event loop was over."""

        begun = in_first_turn = 0

        def asked(self) -> None:
            self.begun += 1
            if self.begun == 1:
                asyncio.get_running_loop().call_soon(self.note)

        def note(self) -> None:
            self.in_first_turn = self.begun

    questions, noting = list(planned.pending) * 100, Noting()
    engine = ScriptedEngine({"*": "{Answer: 1}"})
    lm = dspy.LM("medexam/held", **recorded(engine), cache=False)
    with planned.folder.appending() as file, dspy.context(lm=lm):
        await Scheduler(Work.of(planned), file, noting, Spending(), lambda: len(questions), questions).run()
    assert noting.begun == len(questions)
    assert 1 <= noting.in_first_turn <= 64
