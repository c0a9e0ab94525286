"""What a server shows of its model, and that a server which comes back as another is asked nothing more."""

from dataclasses import dataclass

import pytest
from dspy.lm15 import Config, Message, Request
from wire_server import Wire, is_identifying, serving

from asked import complete
from medexam.errors import CallError, EndpointUnreachableError
from medexam.serve import Endpoint, build_engine, probe_endpoint
from medexam.serve.discovery.behaviour import hash_dialogue, read_behaviour
from medexam.specs import ModelSpec

ASKED = Request(model="m", messages=(Message.user("Hello"),), config=Config(max_tokens=5, temperature=0.0))


async def identify(wire: Wire):
    return (await probe_endpoint(Endpoint(wire.address, "EMPTY"), None)).identity


async def test_two_looks_at_one_server_agree_and_cost_three_requests() -> None:
    with serving(Wire()) as wire:
        first, second = await identify(wire), await identify(wire)
        asked = [body for _, body in wire.requests if is_identifying(body)]
    assert first.differences(second) == []
    assert first.print == second.print
    assert len(asked) == 6
    assert first.behaviour is not None
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


@pytest.mark.parametrize("day", ["22 Nov 2026", "2026-11-22", "November 22, 2026", "22/11/2026", "1 December 2026"])
def test_a_day_in_the_template_is_no_other_template(day: str) -> None:
    def rendered(words: str) -> str | None:
        return hash_dialogue({"token_strs": [f"ĠToday:Ġ{words.replace(' ', 'Ġ')}", "ĊHello"]})

    assert rendered(day) == rendered("3 Jan 2020")
    assert rendered(day) != rendered("never")


def test_a_server_that_shows_nothing_has_no_behaviour() -> None:
    assert read_behaviour([{}, {}]) is None
    assert hash_dialogue({}) is None


@dataclass
class Swapped(Wire):
    """Loses its connections at the first question, and is another model from then on."""

    then: float = 0.3
    lost: bool = False

    def reply(self, path, body):
        if (
            not self.lost
            and 5 in (body.get("max_tokens"), body.get("max_completion_tokens"))
            and not is_identifying(body)
        ):
            self.lost, self.drift = True, self.then
            raise ConnectionResetError
        return super().reply(path, body)


async def ask(*wires: Wire) -> str:
    spec = ModelSpec(engine="vllm", endpoints=tuple(wire.address for wire in wires), timeout_s=120)
    engine = await build_engine(spec)
    try:
        return (await complete(engine, ASKED)).text or ""
    finally:
        await engine.aclose()


async def test_a_server_that_comes_back_as_another_ends_the_run() -> None:
    with (
        serving(Swapped()) as wire,
        pytest.raises(CallError, match=r"since it is back: .* 0\.300 nats a token"),
    ):
        await ask(wire)


async def test_a_server_that_comes_back_as_it_was_goes_on() -> None:
    with serving(Swapped(then=0.0)) as wire:
        assert await ask(wire)
        assert wire.lost


async def test_a_server_that_does_not_fit_the_first_is_refused_at_the_start() -> None:
    with serving(Wire()) as wire, serving(Wire(drift=0.3)) as other, pytest.raises(EndpointUnreachableError):
        await ask(wire, other)
