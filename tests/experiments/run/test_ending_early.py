"""A run that ends before everything is asked: Ctrl-C, a server that is gone, and limits of what may be spent."""

import asyncio
import os
import signal
import time
from threading import Thread

import pytest

import medexam
from medexam.errors import SpecError
from medexam.serve import ScriptedEngine
from scripted_engines import LAST_MADE, MADE
from table_cases import read_table
from waiting import until


@pytest.fixture
def meanwhile():
    """`meanwhile(act)`: do it in a thread, which has ended when the test has."""
    threads = []

    def start(act):
        threads.append(Thread(target=act))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join()


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_keeps_every_answer_and_the_run_is_resumed(ask, spec, replies, asked, meanwhile, resume) -> None:
    spec = spec | {"model": replies({"*": {"text": "{Answer: 1}", "wait_s": 0.5}})}
    spec["dataset"]["limit"] = 110

    @meanwhile
    def press_once() -> None:
        until(lambda: len(asked.prompts) >= 5, "5 prompts")
        press()

    runs = ask(spec)
    (run,) = runs
    kept = len(asked.take())
    assert (runs.stop, run.complete, len(run.predictions), run.n) == ("interrupted", False, kept, kept)
    assert 5 <= kept < 110
    resumed = resume(run)
    assert (len(asked.prompts), resumed.n, resumed.complete) == (110 - kept, 110, True)


class Interrupted(ScriptedEngine):
    """An engine that presses Ctrl-C twice within one turn of its loop, and notes when a reply is given up."""

    pressed = given_up = 0.0

    async def reply(self, dialogue):
        if not self.pressed:
            for _ in range(2):
                press()
                time.sleep(0.5)  # the main thread hears them
            self.pressed = time.monotonic()
        try:
            return await super().reply(dialogue)
        except asyncio.CancelledError:
            self.given_up = time.monotonic()
            raise


def test_a_second_ctrl_c_does_not_wait_for_what_is_in_flight(ask, spec) -> None:
    MADE.append(Interrupted({"*": {"wait_s": 300}}))
    runs = ask(spec | {"model": {"engine": LAST_MADE}})
    assert (runs.stop, len(runs[0].predictions)) == ("interrupted", 0)
    assert 0 < MADE[-1].given_up - MADE[-1].pressed < 4, "one Ctrl-C waits for 5 seconds"


def test_after_many_failures_in_a_row_the_rest_stays_pending(ask, spec, asked, failing, replies) -> None:
    spec["dataset"]["limit"] = 110
    failing("")
    (run,) = ask(spec)
    failed = len(asked.take())
    assert 32 <= failed < 110
    assert (run.n, run.metrics.failed, run.complete) == (0, failed, False)
    replies({"*": [{"error": "server"}, "{Answer: 1}"]})
    (run,) = ask(spec)
    assert (run.metrics.failed, len(asked.take()), run.complete) == (55, 110, False), "no 32 of them in a row"
    replies()
    (run,) = ask(spec)
    assert (run.n, len(asked.prompts), run.complete) == (110, 55, True)


def test_as_many_failures_as_are_allowed_stop_the_cells_that_follow(ask, spec, failing, tmp_path) -> None:
    failing("")
    runs = ask(spec, program=["zero_shot", "few_shot", "chain_of_thought"], limits=medexam.Limits(failures=13))
    assert (runs.stop, [run.metrics.failed for run in runs]) == ("failures", [12, 12])
    assert (runs[1].folder / "report.md").is_file()
    assert len(list((tmp_path / "runs").glob("*/spec.json"))) == 2


def test_a_question_that_stays_unanswered_is_no_failure(ask, spec, replies) -> None:
    spec["dataset"]["limit"] = 110
    runs = ask(spec | {"model": replies({"*": {"error": "context"}})}, limits=medexam.Limits(failures=1))
    assert (runs.stop, runs[0].n) == (None, 110)


def test_as_many_calls_as_are_allowed_end_it(ask, spec) -> None:
    runs = ask(spec, program=["zero_shot", "few_shot"], limits=medexam.Limits(calls=5))
    assert (runs.stop, [run.n for run in runs]) == ("calls", [5])


@pytest.mark.parametrize(*read_table("unpriced_models"))
def test_a_limit_of_dollars_needs_a_price_before_anything_is_asked(model, ask, spec, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with pytest.raises(SpecError, match="--price IN,OUT"):
        ask(spec | {"model": model}, limits=medexam.Limits(cost=1.0))
    assert not list((tmp_path / "runs").glob("*/predictions.jsonl"))
