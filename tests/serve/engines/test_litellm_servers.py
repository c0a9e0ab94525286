"""The engine litellm at servers of one's own: how a choice is held, and what is refused before anything is asked."""

import pytest
from engine_calls import CHAT, GUIDED, ask, reaching, reply
from other_servers import wire_of
from wire_server import Wire, serving

from medexam.errors import UnsupportedFeatureError
from table_cases import read_table

CHOICE = ask(system="Be", opening="{Answer: ", choices=["1", "2", "3", "4"])
"""The servers here choose the last one where a schema holds them."""


@pytest.mark.parametrize(*read_table("held_choices"))
async def test_a_choice_is_held_by_the_schema_that_the_server_takes(server: dict, name: str, form: str) -> None:
    with serving(wire_of(server)) as wire:
        async with reaching(wire, engine="litellm", name=name, needs=GUIDED) as engine:
            assert (await reply(engine, CHOICE)).text == "4"
            assert engine.info().guided_by == "structured_outputs"
    (body,) = wire.bodies(CHAT)
    assert form in body["response_format"]
    assert body["messages"][-1] == {"role": "assistant", "content": "{Answer: "}


async def test_free_replies_arrive_and_opening_words_are_refused() -> None:
    with serving(Wire(tokenize=False)) as wire:
        async with reaching(wire, engine="litellm") as engine:
            assert (await reply(engine, ask())).text == "hello"
            with pytest.raises(UnsupportedFeatureError, match="continue given words"):
                await reply(engine, ask(opening="{Answer: "))


async def test_the_usual_key_is_not_sent_to_another_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "mine")
    with serving(Wire(key="EMPTY")) as wire:
        async with reaching(wire, engine="litellm") as engine:
            assert (await reply(engine, ask())).text == "hello"
    assert set(wire.keys) == {"Bearer EMPTY"}
