"""Several replies to one prompt are one request, if the server gives several."""

import asyncio

import pytest
from engine_calls import CHAT, COMPLETIONS, GUIDED, ask, reaching
from wire_server import Wire, serving


@pytest.mark.parametrize("wire", [Wire(), Wire(tokenize=False)], ids=["completions", "chat"])
@pytest.mark.parametrize("choices", [["1", "2", "3", "4"], None], ids=["guided", "free"])
async def test_a_server_is_asked_once_for_several_replies(wire: Wire, choices: list[str] | None) -> None:
    drawn = {"temperature": 0.9, "seed": 5, "samples": 3, "opening": "{Answer: " if choices else ""}
    with serving(wire):
        async with reaching(wire, needs=GUIDED, temperature=0.9) as engine:
            assert engine.shares_prompts
            asked = [ask("x" * n, choices=choices, **drawn) for n in (1, 2)]
            found = await asyncio.gather(*(engine.reply(dialogue) for dialogue in asked))
    bodies = [*wire.bodies(COMPLETIONS), *wire.bodies(CHAT)]
    assert all((body["n"], body["seed"], "samples" in body) == (3, 5, False) for body in bodies)
    assert len(bodies) <= 2
    for n, several in enumerate(found, start=1):
        assert len(several) == 3
        assert len({one.reply for one in several}) == 1
        assert [bool(one.prompt_tokens) for one in several] == [True, False, False]
        if choices and wire.tokenize:
            assert several[0].reply == choices[len(f"<u>{'x' * n}\n<a>{{Answer: ") % 4]


async def test_behind_a_gateway_that_drops_lists_each_prompt_has_a_request() -> None:
    with serving(Wire(lists=False)) as wire:
        async with reaching(wire, needs=GUIDED) as engine:
            asked = [ask("x" * n, choices=["1", "2", "3", "4"], opening="{Answer: ") for n in (1, 2, 3)]
            found = await asyncio.gather(*(engine.reply(dialogue) for dialogue in asked))
    assert [one.reply for (one,) in found] == [str(1 + len(f"<u>{'x' * n}\n<a>{{Answer: ") % 4) for n in (1, 2, 3)]
    assert len(wire.bodies(COMPLETIONS)) == 3


async def test_behind_a_gateway_that_drops_n_replies_share_no_request() -> None:
    with serving(Wire(several=False)) as wire:
        async with reaching(wire) as engine:
            assert not engine.shares_prompts
