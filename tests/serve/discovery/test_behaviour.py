"""What a server shows of its model, and that a server which comes back as another is asked nothing more."""

from dataclasses import dataclass
from typing import Any

import pytest
from engine_calls import ask, reaching, reply, spec_of
from wire_server import Wire, is_identifying, serving

from medexam.errors import CallError, EndpointUnreachableError
from medexam.serve import Endpoint, build_engine, probe_endpoint

ASKED = ask("Hello", max_tokens=5)


async def identify(wire: Wire) -> Any:
    return (await probe_endpoint(Endpoint(wire.address, "EMPTY"), None)).identity


async def test_two_looks_at_one_server_agree_and_cost_three_requests_each() -> None:
    with serving(Wire()) as wire:
        first, second = await identify(wire), await identify(wire)
    assert first.differences(second) == []
    assert first.print == second.print
    assert len([body for _, body in wire.requests if is_identifying(body)]) == 6
    assert first.behaviour.noise == 0.0
    assert len(first.behaviour.logprobs) == len(first.behaviour.tokens) - 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Wire(drift=0.3), "0.300 nats a token"),
        (Wire(echo=False), "its log-probabilities are no longer available"),
        (Wire(tokenize=False), "chat template and tokenizer untold"),
    ],
)
async def test_what_tells_servers_apart(change: Wire, said: str) -> None:
    with serving(Wire()) as wire, serving(change) as other:
        (found,) = (await identify(wire)).differences(await identify(other))
    assert said in found


@dataclass
class Swapped(Wire):
    """Loses its connections at the first question, and is another model from then on."""

    then: float = 0.3
    garbles: int = 0
    """Looks at its model that it answers without sense."""
    lost: bool = False

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        asked = 5 in (body.get("max_tokens"), body.get("max_completion_tokens"))
        if not self.lost and asked and not is_identifying(body):
            self.lost, self.drift = True, self.then
            raise ConnectionResetError
        if self.lost and self.garbles and is_identifying(body):
            self.garbles -= 1
            return 200, {"choices": 7}
        return super().reply(path, body)


async def test_a_server_that_comes_back_as_another_ends_the_run() -> None:
    with serving(Swapped()) as wire:
        async with reaching(wire) as engine:
            with pytest.raises(CallError, match=r"since it is back: .* 0\.300 nats a token"):
                await reply(engine, ASKED)


@pytest.mark.parametrize("garbles", [0, 1])
async def test_a_server_that_comes_back_as_it_was_goes_on(garbles: int) -> None:
    with serving(Swapped(then=0.0, garbles=garbles)) as wire:
        async with reaching(wire) as engine:
            assert (await reply(engine, ASKED)).text == "hello"
            assert (wire.lost, wire.garbles) == (True, 0)


async def test_a_server_that_does_not_fit_the_first_is_refused_at_the_start() -> None:
    with serving(Wire()) as wire, serving(Wire(drift=0.3)) as other, pytest.raises(EndpointUnreachableError):
        await build_engine(spec_of(wire, other))
