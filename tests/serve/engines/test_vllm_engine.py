"""What a server is sent, what comes back as which answer, and what goes wrong."""

import asyncio
from typing import Any

import pytest
from engine_calls import (
    CHAT,
    COMPLETIONS,
    GUIDED,
    ask,
    prompts,
    reaching,
    replies,
    reply,
)
from wire_server import HeldWire, Wire, serving

from medexam.errors import (
    AuthError,
    CallError,
    ContextLengthError,
    InvalidRequestError,
    RateLimitError,
    ServerError,
    TransportError,
    UnsupportedModelError,
)
from medexam.model_calls import Dialogue, Generation
from medexam.serve import TIMING
from medexam.specs import EngineNeeds
from waiting import soon

CHOICES = ["1", "2", "3", "4"]
FREE = ask()


def choose(text: str = "Which?", choices: list[str] = CHOICES) -> Dialogue:
    return ask(text, system="Be", opening="{Answer: ", choices=choices)


def prompt_of(text: str) -> str:
    """What the model reads of `choose(text)`."""
    return f"<s>Be\n<u>{text}\n<a>{{Answer: "


def chosen(text: str, choices: list[str] = CHOICES) -> str:
    """The choice that the server makes: another one for each length of a prompt."""
    return choices[len(prompt_of(text)) % len(choices)]


@pytest.mark.parametrize("token_ids", [True, False], ids=["token ids", "read as text"])
async def test_choices_travel_together_as_next_tokens_and_each_finds_its_question(token_ids: bool) -> None:
    kinds = [CHOICES, [*CHOICES, "5"]]
    asked = [("x" * n, kinds[n % 2]) for n in range(1, 31)]
    with serving(Wire(token_ids=token_ids)) as wire:
        async with reaching(wire, needs=GUIDED) as engine:
            answers = await replies(engine, [choose(*one) for one in asked])
            info = engine.info()
    assert [answer.text for answer in answers] == [chosen(*one) for one in asked]
    assert all(answer.finish_reason == "stop" for answer in answers)
    # A server that gives no token ids counts all prompts of a request together.
    assert not token_ids or [one.prompt_tokens for one in answers] == [len(prompt_of(text)) for text, _ in asked]
    bodies = wire.bodies(COMPLETIONS)
    assert len(bodies) < 30
    assert sorted(one for body in bodies for one in prompts(body)) == sorted(prompt_of(text) for text, _ in asked)
    for body in bodies:
        # A text of odd length has five choices, one of even length four; they are never mixed.
        odd = {(len(prompt) - len(prompt_of(""))) % 2 for prompt in prompts(body)}
        assert odd == {len(body["allowed_token_ids"]) % 2}
        sent = {key: body[key] for key in ("max_tokens", "add_special_tokens", "temperature")}
        assert sent == {"max_tokens": 1, "add_special_tokens": False, "temperature": 0}
        assert body["allowed_token_ids"] in ([49, 50, 51, 52], [49, 50, 51, 52, 53])
    assert (info.guided_by, info.system_turn, info.model) == ("prefill", "kept", "tiny")


@pytest.mark.parametrize(
    ("wire", "choices"),
    [(Wire(allowed=False), CHOICES), (Wire(), ["yes", "no"]), (Wire(tokenize=False), CHOICES)],
    ids=["ignores allowed_token_ids", "choices of several tokens", "gateway without tokenize"],
)
async def test_a_schema_stands_in_where_next_tokens_cannot(wire: Wire, choices: list[str]) -> None:
    with serving(wire):
        async with reaching(wire, needs=GUIDED) as engine:
            answer = await reply(engine, choose(choices=choices))
            assert engine.info().guided_by == "structured_outputs"
    assert (answer.text in choices, answer.finish_reason) == (True, "stop")


ZERO_SHOT = ask(turns=[{"role": role, "content": text} for role, text in (("system", ""), *[("user", "U")] * 2)])
"""The turns of the paper's figure 6."""
MERGED = ask(turns=[{"role": role, "content": text} for role, text in (("system", "Be"), ("user", "U"), ("user", "V"))])


@pytest.mark.parametrize(
    ("wire", "asked", "prompt", "recorded"),
    [
        (Wire(), ZERO_SHOT, "<s>\n<u>U\n<u>U\n<a>", ("kept", "kept", "kept")),
        (Wire(empty=False), ZERO_SHOT, "<u>U\n<u>U\n<a>", ("kept", "kept", "left out")),
        (Wire(repeats=False), ZERO_SHOT, "<s>\n<u>U\n\nU\n<a>", ("kept", "merged", "kept")),
        (Wire(system=False, repeats=False), ZERO_SHOT, "<u>U\n\nU\n<a>", ("merged", "merged", "left out")),
        (Wire(system=False), MERGED, "<u>Be\n\nU\n<u>V\n<a>", ("merged", "kept", "left out")),
    ],
)
async def test_turns_that_a_template_refuses_are_joined_and_recorded(
    wire: Wire, asked: Dialogue, prompt: str, recorded: tuple[str, ...]
) -> None:
    with serving(wire):
        async with reaching(wire) as built:
            await reply(built, asked)
            info = built.info()
    (read,) = (wire.render(body["messages"]) for body in wire.bodies(CHAT))
    assert read == prompt
    assert (info.details["repeated_turns"], info.details["empty_system_turn"]) == recorded[1:]
    assert info.system_turn == recorded[0]


async def test_a_base_model_continues_plain_text_and_is_asked_no_dialogue() -> None:
    texts = ["Spanish:\nUno.\nEnglish:", "Spanish:\nDos.\nEnglish:"]
    with serving(Wire(chat=False)) as wire:
        async with reaching(wire, needs=EngineNeeds(plain=True)) as engine:
            asked = [ask(text, stop=("\nSpanish:",), more={"plain": True}) for text in texts]
            answers = await replies(engine, asked)
    bodies = wire.bodies(COMPLETIONS)
    assert {one for body in bodies for one in prompts(body)} == set(texts)
    assert {(*body["stop"], body["add_special_tokens"], body["max_tokens"]) for body in bodies} == {
        ("\nSpanish:", True, 8)
    }
    assert [answer.text for answer in answers] == ["x", "x"]


async def test_free_replies_use_the_chat_endpoint_and_keep_reasoning_apart() -> None:
    with serving(Wire(reasoning="Let me see.")) as wire:
        async with reaching(wire) as engine:
            answer = await reply(engine, FREE)
    assert (answer.words, answer.thinking) == ("hello", "Let me see.")
    assert answer.text == "<think>\nLet me see.\n</think>\n\nhello"
    (body,) = wire.bodies(CHAT)
    assert (body["temperature"], body["model"]) == (0, "tiny")
    assert body["max_tokens"] == 8 + 4096 // 2, "a model that thinks unasked has room for it"


async def test_a_free_reply_goes_on_from_opening_words_exactly() -> None:
    with serving(Wire()) as wire:
        async with reaching(wire) as engine:
            answer = await reply(engine, ask(system="Be", opening="{Answer: "))
    assert (answer.text, answer.finish_reason) == ("x", "length")
    assert wire.bodies(COMPLETIONS)[-1]["prompt"] == prompt_of("Which?")


async def test_one_prompt_that_is_too_long_does_not_spoil_the_others() -> None:
    with serving(Wire(context=100)) as wire:
        async with reaching(wire, needs=GUIDED) as engine:
            asked = (reply(engine, choose(text)) for text in ("short", "x" * 200, "brief"))
            first, second, third = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(second, ContextLengthError)
    assert isinstance(first, Generation)
    assert isinstance(third, Generation)
    assert [first.text, third.text] == [chosen("short"), chosen("brief")]


@pytest.mark.parametrize(
    ("status", "error", "attempts"),
    [
        (429, RateLimitError, TIMING.attempts),
        (500, ServerError, TIMING.attempts),
        (503, ServerError, TIMING.attempts),
        (400, InvalidRequestError, 1),
        (401, AuthError, 1),
        (404, UnsupportedModelError, 1),
        (None, TransportError, TIMING.attempts),
    ],
)
@pytest.mark.parametrize("asked", [choose(), FREE], ids=["guided", "free"])
async def test_faults_have_their_kind_and_only_those_that_may_pass_are_asked_again(
    status: int | None, error: type[CallError], attempts: int, asked: Dialogue
) -> None:
    path = COMPLETIONS if asked.choices else CHAT
    with serving(Wire()) as wire:
        async with reaching(wire, needs=GUIDED) as engine:
            wire.drop = status is None
            wire.refuse = {} if status is None else {path: status}
            with pytest.raises(error):
                await reply(engine, asked)
    # A server whose connection was lost is looked at before it is asked again.
    assert len(wire.bodies(path)) == attempts if status else wire.bodies(path)


async def test_a_fault_that_passes_costs_no_answer() -> None:
    class Refusing(Wire):
        refusals = 0

        def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            if path == COMPLETIONS and self.refusals:
                self.refusals -= 1
                return 503, {}
            return super().reply(path, body)

    texts = ["x" * n for n in range(1, 9)]
    with serving(Refusing()) as wire:
        async with reaching(wire, needs=GUIDED) as engine:
            wire.refusals = 3
            answers = await replies(engine, list(map(choose, texts)))
    assert [answer.text for answer in answers] == list(map(chosen, texts))


async def test_two_servers_share_the_work_and_a_failing_one_rests() -> None:
    with serving(HeldWire()) as one, serving(HeldWire()) as two:
        async with reaching(one) as engine:
            alone = engine.concurrency
        async with reaching(one, two) as engine:
            assert engine.concurrency == 2 * alone
            for wire in (one, two):
                wire.free.clear()
            asked = [asyncio.create_task(reply(engine, FREE)) for _ in range(10)]
            await soon(lambda: [len(wire.bodies(CHAT)) for wire in (one, two)] == [5, 5])
            for wire in (one, two):
                wire.free.set()
            await asyncio.gather(*asked)
            one.refuse[CHAT] = 503
            answers = [await reply(engine, FREE) for _ in range(6)]
            assert len(one.bodies(CHAT)) <= 6
    assert [answer.words for answer in answers] == ["hello"] * 6


async def test_behind_a_gateway_that_drops_lists_each_prompt_has_a_request() -> None:
    texts = ["x" * n for n in (1, 2, 3)]
    with serving(Wire(lists=False)) as wire:
        async with reaching(wire, needs=GUIDED) as engine:
            assert [one.text for one in await replies(engine, [*map(choose, texts)])] == [*map(chosen, texts)]
    assert len(wire.bodies(COMPLETIONS)) == 3
