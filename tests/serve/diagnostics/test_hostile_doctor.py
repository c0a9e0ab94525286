"""`medexam doctor` against servers that answer without end, sense or measure: one line, and within a stated time."""

import asyncio
import time

import pytest
from hostile_server import HostileWire
from wire_server import serving

from generated.commands import call
from medexam.serve import TIMING
from medexam.serve.network import connections
from medexam.serve.pool.prefix_cache import count_prefixes
from waiting import BACKSTOP_S


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TIMING, "attempts", 1)
    monkeypatch.setattr(connections, "MOST_BYTES", 4_000_000)


@pytest.mark.parametrize("path", ["/v1/models", "/version", "/tokenize", "/v1/completions"])
@pytest.mark.parametrize("how", ["deep", "list", "null", "large id", "huge", "bomb"])
def test_what_a_server_says_of_itself_is_taken_or_refused_in_one_line(how: str, path: str) -> None:
    with serving(HostileWire(how=how, paths=(path,), megabytes=20)) as wire:
        ended = call("doctor", wire.address, "--burst", "0")
    assert ended.err.count("\n") <= 1
    assert ended.code == 0 or "medexam: " in ended.err


@pytest.mark.parametrize("how", ["choices", "places"])
def test_replies_of_another_form_are_taken_or_refused_in_one_line(how: str) -> None:
    with serving(HostileWire(how=how)) as wire:
        ended = call("doctor", wire.address, "--burst", "0")
    assert ended.code in {0, 2}
    assert ended.err.count("\n") <= 1
    assert "Traceback" not in ended.err


def test_a_server_that_drips_is_given_up_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TIMING, "probe_deadline_s", 1.0)
    monkeypatch.setattr(TIMING, "probe_deadline_s", 2.0)
    with serving(HostileWire(how="drip", paths=("/tokenize",))) as wire:
        begun = time.monotonic()
        ended = call("doctor", wire.address, "--burst", "0")
    assert time.monotonic() - begun < BACKSTOP_S
    assert ended.code == 2
    assert "did not answer all requests within 1 s" in ended.err


@pytest.mark.parametrize("how", ["drip", "huge", "bomb"])
def test_counters_without_end_are_none(how: str) -> None:
    with serving(HostileWire(how=how, paths=("/metrics",), megabytes=20)) as wire:
        begun = time.monotonic()
        assert asyncio.run(count_prefixes([wire.address])) is None
    assert time.monotonic() - begun < BACKSTOP_S
