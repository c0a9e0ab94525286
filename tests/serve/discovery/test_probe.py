"""The probe believes what it sees, and says what to do about the rest."""

import time
from dataclasses import dataclass
from typing import Any

import pytest
from engine_calls import spec_of
from wire_server import Wire, serving

from medexam.errors import EndpointSilentError, EndpointUnreachableError, SpecError
from medexam.serve import Endpoint, build_engine, normalise_address, probe_endpoint
from table_cases import read_table


async def probe(wire: Wire, name: str | None = None, **limits: Any) -> Any:
    return await probe_endpoint(Endpoint(wire.address, "EMPTY"), name, **limits)


async def test_nobody_there() -> None:
    with pytest.raises(EndpointUnreachableError, match=r"no server answers at http://127.0.0.1:9/v1 .*medexam serve"):
        await probe_endpoint(Endpoint("http://127.0.0.1:9/v1", "EMPTY"), None)


async def test_endpoints_must_serve_one_model() -> None:
    with serving(Wire()) as one, serving(Wire(models=("other",))) as two:
        with pytest.raises(EndpointUnreachableError, match="different models"):
            await build_engine(spec_of(one, two))
        with pytest.raises(EndpointUnreachableError, match="serves other, not tiny"):
            await build_engine(spec_of(one, two, name="tiny"))


SILENCE_S = 1.5
"""Longer than a busy machine takes for any other reply."""


@dataclass
class Slow(Wire):
    """Its first reply takes longer than a server may be silent."""

    slept: bool = False

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path == "/v1/completions" and not self.slept:
            self.slept = True
            time.sleep(1.5 * SILENCE_S)
        return super().reply(path, body)


@pytest.mark.parametrize("wait_s", [60.0, 0.0])
async def test_a_reply_of_the_model_is_waited_for_as_long_as_the_spec_says(wait_s: float) -> None:
    with serving(Slow()) as wire:
        if wait_s:
            assert (await probe(wire, timeout_s=SILENCE_S, wait_s=wait_s)).guided_by == "prefill"
        else:
            with pytest.raises(EndpointSilentError, match="answered, then stopped answering"):
                await probe(wire, timeout_s=SILENCE_S, wait_s=wait_s)


@pytest.mark.parametrize(*read_table("addresses"))
def test_one_address_is_written_in_many_ways(written: str, address: str) -> None:
    assert normalise_address(written) == address


@pytest.mark.parametrize(*read_table("refused_addresses"))
def test_addresses_that_are_none(address: str, message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        normalise_address(address)
    assert "secret" not in str(caught.value)
