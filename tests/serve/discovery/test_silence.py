"""The probe gives up a server that falls silent, and waits for one whose counters show that it computes."""

import time
from dataclasses import dataclass
from typing import Any

import pytest
from wire_server import Wire, serving

from medexam.errors import EndpointSilentError
from medexam.serve import NO_KEY, Endpoint, probe_endpoint

SILENCE_S = 0.3
COUNTERS = 'vllm:num_requests_running{{engine="0"}} {}\nvllm:num_requests_waiting{{engine="0"}} {}\n'


@dataclass
class Slow(Wire):
    """Its first reply takes longer than a server may be silent."""

    slept: bool = False

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path == "/v1/completions" and not self.slept:
            self.slept = True
            time.sleep(4 * SILENCE_S)
        return super().reply(path, body)


@pytest.mark.parametrize(("running", "waiting"), [("1.0", "0.0"), ("0.0", "12.0")])
async def test_a_server_that_computes_is_waited_for(running: str, waiting: str) -> None:
    with serving(Slow(metrics=COUNTERS.format(running, waiting))) as wire:
        seen = await probe_endpoint(Endpoint(wire.address, NO_KEY), None, timeout_s=SILENCE_S)
    assert seen.guided_by == "prefill"


@pytest.mark.parametrize("metrics", [None, "", COUNTERS.format("0.0", "0.0"), "vllm:num_requests_running many"])
async def test_a_server_that_says_nothing_is_given_up(metrics: str | None) -> None:
    told = "answered, then stopped answering"
    with serving(Slow(metrics=metrics)) as wire, pytest.raises(EndpointSilentError, match=told):
        await probe_endpoint(Endpoint(wire.address, NO_KEY), None, timeout_s=SILENCE_S)
