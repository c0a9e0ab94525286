"""Asking is stopped without losing what is under way, and counts what it did."""

import asyncio
import time

import dspy
import pytest
import yaml

from medexam.experiments.plan.planner import plan_experiment
from medexam.experiments.run.scheduler import GRACE_S, FailureBudget, ask
from medexam.serve.engines.scripted import ScriptedEngine
from watching import Silent

IN_FLIGHT = 4


class Slow(ScriptedEngine):
    """Takes its time for each reply."""

    def __init__(self, replies, seconds: float) -> None:
        super().__init__(replies)
        self._seconds = seconds

    async def complete(self, request):
        await asyncio.sleep(self._seconds)
        return await super().complete(request)


class Counting(Silent):
    """Knows how many questions are under way."""

    def __init__(self) -> None:
        self.in_flight = self.most = self.answers = 0
        self.waited_for: list[int] = []

    def asked(self) -> None:
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)

    def answered(self, prediction) -> None:
        self.in_flight -= 1
        self.answers += 1

    def stopping(self, in_flight) -> None:
        self.waited_for.append(in_flight)


@pytest.fixture
def planned(tmp_path):
    """A cell over twelve questions, in a folder that exists."""
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": "{Answer: 1}"}))
    document = {
        "name": "slow",
        "dataset": {"name": "headqa_sample", "limit": 12},
        "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
        "program": {"kind": "zero_shot"},
    }
    (cell,) = plan_experiment(document, {}, runs_dir=tmp_path / "runs").cells
    cell.folder.create()
    return cell


async def _ask(planned, engine, observer, *, cancel_after: tuple[float, ...] = (), failures=None) -> tuple[bool, float]:
    """Whether it was cancelled, and the seconds from the first cancelling to the end."""
    lm = dspy.LM("medexam/slow", engine=engine.sync, async_engine=engine, cache=False)
    with planned.folder.appending() as log, dspy.context(lm=lm, disable_history=True):
        asking = asyncio.create_task(
            ask(planned, log, observer, failures or FailureBudget(), concurrency=lambda: IN_FLIGHT)
        )
        begun = time.monotonic()
        for number, seconds in enumerate(cancel_after):
            await asyncio.sleep(seconds)
            begun = begun if number else time.monotonic()
            asking.cancel()
        (outcome,) = await asyncio.gather(asking, return_exceptions=True)
    assert outcome is None or isinstance(outcome, asyncio.CancelledError)
    return outcome is not None, time.monotonic() - begun


async def test_cancelling_finishes_what_is_in_flight_and_begins_nothing(planned) -> None:
    watcher, failures = Counting(), FailureBudget()
    cancelled, _ = await _ask(planned, Slow({"*": "{Answer: 1}"}, 0.3), watcher, cancel_after=(0.1,), failures=failures)
    assert cancelled
    assert watcher.waited_for == [IN_FLIGHT]
    assert (watcher.answers, watcher.most, watcher.in_flight) == (IN_FLIGHT, IN_FLIGHT, 0)
    assert (failures.asked, failures.failed) == (IN_FLIGHT, 0)
    assert len(planned.folder.read_predictions()) == IN_FLIGHT


async def test_cancelling_twice_does_not_wait(planned) -> None:
    watcher = Counting()
    cancelled, seconds = await _ask(planned, Slow({"*": "{Answer: 1}"}, 60.0), watcher, cancel_after=(0.1, 0.1))
    assert cancelled
    assert seconds < GRACE_S / 2
    assert watcher.answers == 0
    assert planned.folder.read_predictions() == {}


async def test_what_never_ends_is_waited_for_so_long_and_no_longer(planned, monkeypatch) -> None:
    monkeypatch.setattr("medexam.experiments.run.scheduler.GRACE_S", 0.2)
    cancelled, seconds = await _ask(planned, Slow({"*": "{Answer: 1}"}, 60.0), Counting(), cancel_after=(0.1,))
    assert cancelled
    assert 0.15 < seconds < 2


async def test_a_question_that_stays_unanswered_is_no_failure(planned) -> None:
    watcher, failures = Counting(), FailureBudget(max_failures=1)
    cancelled, _ = await _ask(planned, Slow({"*": {"error": "context"}}, 0.0), watcher, failures=failures)
    assert (cancelled, watcher.answers, failures.exhausted) == (False, 12, False)
