"""Runs over servers that reset, refuse, stall and garble: every question is answered once, and as without faults."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from wire_server import Wire, serving

from chaos.faulty_proxy import FAULTS, Proxy, proxying
from medexam.errors import EngineError
from medexam.experiments import Runner, plan_spec
from medexam.predictions import Prediction, Status
from medexam.serve import TIMING
from watching import Silent

ONE = {"name": "headqa_sample", "language": "en", "limit": 1}
CLOSED = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults are asked again almost at once, and servers rest briefly."""
    monkeypatch.setattr(TIMING, "first_wait_s", 0.01)
    monkeypatch.setattr(TIMING, "cooldown_s", 0.2)
    monkeypatch.setattr(TIMING, "poll_s", 0.2)


@pytest.fixture
def run(tmp_path: Path):
    """`run(endpoints, dataset, name, observer=, **program)` -> the stored run; `name` is its own folder of runs."""

    def start(endpoints, dataset, name, observer=None, timeout_s=5.0, **program) -> Any:
        document = {
            "name": "chaos",
            "dataset": dataset,
            "model": {"engine": "vllm", "endpoints": endpoints, "timeout_s": timeout_s},
            "program": {"kind": "zero_shot", **program},
        }
        plan = plan_spec(document, {}, runs_dir=tmp_path / name)
        (stored,), stop = Runner(plan, observer or Silent()).run()
        assert stop is None
        return stored

    return start


def kept(run: Any) -> list[Prediction]:
    """Every line on disk."""
    lines = (run.folder.path / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    return [Prediction.model_validate_json(line) for line in lines]


def said(run: Any) -> dict[str, object]:
    """What was answered, by question."""
    return {one.question: (one.status, one.answer, one.reply, one.option_scores) for one in kept(run)}


def scores(run: Any) -> dict[str, object]:
    """The metrics, without how long it took."""
    return {name: value for name, value in run.metrics.model_dump().items() if not name.endswith(("_s", "latency"))}


class Meets(Silent):
    """Changes the proxy when the engine was built and the asking begins."""

    def __init__(self, change) -> None:
        self._change = change

    def cell_starts(self, planned) -> None:
        self._change()


# anyio leaves the socket of a connect that is cancelled to the garbage collector.
@pytest.mark.filterwarnings("ignore:Exception ignored in.*socket:pytest.PytestUnraisableExceptionWarning")
def test_a_run_over_faulty_servers_ends_as_one_without_faults(run, caplog, monkeypatch) -> None:
    # A call meets a fault, or the check behind it does, in two of five attempts: eight in a row happen in such a run.
    monkeypatch.setattr(TIMING, "attempts", 30)
    monkeypatch.setattr(TIMING, "patience_s", 300.0)
    dataset = {"name": "headqa_sample", "language": "en", "limit": 60}
    with serving(Wire(lists=False)) as wire:
        plain = run([wire.address], dataset, "plain", timeout_s=30.0, answer_format="guided")
        proxies = [
            Proxy(wire.address, faults={}, seed=1, stall_s=6.0),
            Proxy(wire.address, faults={}, seed=2, dies_after=25),
        ]
        with proxying(*proxies):
            endpoints = [CLOSED, *(proxy.address for proxy in proxies)]
            broken = Meets(lambda: breaks(proxies, FAULTS, tuple(FAULTS)))
            chaotic = run(endpoints, dataset, "chaotic", broken, timeout_s=5.0, answer_format="guided")
    assert "no server answers at http://127.0.0.1:9/v1" in caplog.text
    assert chaotic.complete
    assert len(kept(chaotic)) == len(said(chaotic)) == len(chaotic.record.questions)
    assert {one.status for one in kept(chaotic)} == {Status.ANSWERED}
    assert said(chaotic) == said(plain)
    assert scores(chaotic) == scores(plain)
    assert proxies[1].dead
    done = proxies[0].done + proxies[1].done
    assert set(done) >= {*FAULTS}, done


def breaks(proxies: Sequence[Proxy], faults: Mapping[str, float], certain: Sequence[str]) -> None:
    """From now on completions meet these faults by chance; the first ones at each proxy meet those of `certain`."""
    for proxy in proxies:
        proxy.faults, proxy.certain = faults, [*certain]


@pytest.mark.parametrize(
    ("fault", "kind", "message", "answer_format"),
    [
        ("stall", "LMTimeoutError", "no reply within 8 s", "guided"),
        ("reset", "LMTransportError", "the connection failed", "free"),
        ("503", "LMServerError", "overloaded", "guided"),
        ("truncated", "LMServerError", "", "free"),
        ("empty", "LMServerError", "", "guided"),
        ("no choices", "LMServerError", "", "free"),
        ("not an object", "LMServerError", "", "guided"),
        ("short", "LMServerError", "", "free"),
        ("twice", "LMServerError", "", "guided"),
    ],
)
def test_a_fault_that_stays_is_recorded_and_pending(run, fault, kind, message, answer_format, monkeypatch) -> None:
    # A stall is waited for in full, and a probe of a busy machine takes seconds.
    timeout_s, attempts = (8.0, 1) if fault == "stall" else (30.0, 2)
    monkeypatch.setattr(TIMING, "attempts", attempts)
    with serving(Wire()) as wire:
        proxy = Proxy(wire.address, faults={}, stall_s=60.0)
        with proxying(proxy):
            broken = Meets(lambda: setattr(proxy, "faults", {fault: 1.0}))
            stored = run([proxy.address], ONE, "runs", broken, timeout_s=timeout_s, answer_format=answer_format)
            (prediction,) = kept(stored)
    assert (stored.metrics.failed, stored.complete) == (1, False)
    assert prediction.failure is not None
    assert (prediction.status, prediction.failure.kind) == (Status.FAILED, kind)
    assert message in prediction.failure.message


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refused_key_or_model_ends_the_run(run, status) -> None:
    with serving(Wire()) as wire:
        refusing = Meets(lambda: wire.refuse.update({"/v1/completions": status}))
        with pytest.raises(EngineError, match=f"refused with {status}"):
            run([wire.address], ONE, "runs", refusing, answer_format="guided")


def test_a_log_probability_that_is_no_number_is_a_failure(run) -> None:
    with serving(Wire()) as wire:
        garbled = Meets(lambda: setattr(wire, "garble", "nan"))
        (prediction,) = kept(run([wire.address], ONE, "runs", garbled, kind="likelihood"))
    assert prediction.status is Status.FAILED
    assert "nan" in (prediction.failure.message if prediction.failure else "")


def test_a_server_that_was_not_there_takes_part_when_it_answers(run) -> None:
    dataset = {"name": "headqa_sample", "language": "en", "limit": 40}
    with serving(Wire(lists=False)) as wire:
        late, there = Proxy(wire.address, faults={}, dead=True), Proxy(wire.address, faults={})
        with proxying(late, there):

            def wake() -> None:
                late.dead, there.faults, there.retry_after = False, {"503": 1.0}, "2"

            begun = time.monotonic()
            stored = run([late.address, there.address], dataset, "runs", Meets(wake))
            pauses = (time.monotonic() - begun) / 2
    assert stored.complete
    assert late.done["passed"] > 0
    assert there.done["503"] <= (1 + pauses) * 40, "the pause that the server asks for is kept"
    assert stored.environment["engine"]["endpoints"] == [there.address, late.address]


def test_log_probabilities_over_faulty_servers_are_those_without_faults(run) -> None:
    dataset = {"name": "headqa_sample", "language": "en", "limit": 8}
    with serving(Wire()) as wire:
        plain = run([wire.address], dataset, "plain", kind="likelihood")
        proxies = [Proxy(wire.address, faults={}, seed=3), Proxy(wire.address, faults={}, seed=4)]
        with proxying(*proxies):
            # A probe of a busy machine takes seconds: no call may be cut short, so none stalls.
            broken = Meets(lambda: breaks(proxies, {**FAULTS, "stall": 0.0}, ("reset",)))
            endpoints = [proxy.address for proxy in proxies]
            chaotic = run(endpoints, dataset, "chaotic", broken, timeout_s=30.0, kind="likelihood")
    assert chaotic.complete
    assert said(chaotic) == said(plain)
    assert sum((proxies[0].done + proxies[1].done).values()) > proxies[0].done["passed"] + proxies[1].done["passed"]
