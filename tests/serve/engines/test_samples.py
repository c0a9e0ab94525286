"""Several replies to one prompt: one request where the engine reads it once, with the replies of as many requests."""

import asyncio
from typing import Any

import pytest
from dspy.lm15 import Config, Message, Request
from wire_server import Wire, serving

from asked import complete, complete_blocking
from medexam.dspy_requests import CHOICE, read_dialogue, split_samples
from medexam.model_calls import SAMPLES
from medexam.serve import EmbeddedEngine, build_engine
from medexam.specs import EngineNeeds, ModelSpec

CHOICES = ["1", "2", "3", "4"]


def ask(text: str = "Which?", *, samples: int = 1, choices: bool = False, **config: Any) -> Request:
    extensions = {**({CHOICE: CHOICES} if choices else {}), **({SAMPLES: samples} if samples > 1 else {})}
    settings = {"temperature": 0.9, "max_tokens": 8, "seed": 5, **config, "extensions": extensions or None}
    messages = [Message.user(text), *([Message.assistant("{Answer: ")] if choices else [])]
    return Request(model="m", messages=tuple(messages), config=Config(**settings))


@pytest.mark.parametrize("wire", [Wire(), Wire(tokenize=False)], ids=["completions", "chat"])
@pytest.mark.parametrize("choices", [True, False], ids=["guided", "free"])
async def test_a_server_is_asked_once_for_several_replies(wire: Wire, choices: bool) -> None:
    with serving(wire):
        engine = await build_engine(ModelSpec(engine="vllm", endpoints=(wire.address,)), EngineNeeds(guided=choices))
        assert engine.shares_prompts
        wire.requests.clear()
        asked = [ask("x" * n, samples=3, choices=choices) for n in (1, 2)]
        replies = await asyncio.gather(*(complete(engine, request) for request in asked))
        await engine.aclose()
    bodies = [*wire.bodies("/v1/completions"), *wire.bodies("/v1/chat/completions")]
    assert all((body["n"], body["seed"], SAMPLES in body) == (3, 5, False) for body in bodies)
    assert len(bodies) <= 2
    for reply in replies:
        first, *others = split_samples(reply)
        assert len(others) == 2
        assert {one.text for one in others} == {first.text}
        assert first.usage.input_tokens
        assert [one.usage.input_tokens for one in others] == [0, 0]


async def test_a_server_without_n_is_not_asked_for_it() -> None:
    with serving(Wire(several=False)) as wire:
        engine = await build_engine(ModelSpec(engine="vllm", endpoints=(wire.address,)), EngineNeeds())
        assert not engine.shares_prompts
        await engine.aclose()


@pytest.mark.parametrize("choices", [True, False], ids=["guided", "free"])
def test_the_embedded_engine_draws_the_replies_of_single_requests(tiny_engine: EmbeddedEngine, choices: bool) -> None:
    questions = ["Sing!", "Name a bone of the hand, please.", "Heads?"]
    asked = [ask(question, samples=3, choices=choices, temperature=2.0) for question in questions]
    futures = [tiny_engine.submit(read_dialogue(request)) for request in asked]
    together = [[generation.reply for generation in future.result()] for future in futures]
    alone = (ask(one, choices=choices, temperature=2.0, seed=seed) for one in questions for seed in (5, 6, 7))
    replies = [complete_blocking(tiny_engine, request).text for request in alone]
    single = [replies[first : first + 3] for first in (0, 3, 6)]
    assert together == single
    assert len({text for replies in together for text in replies}) > 2


def test_a_reply_alone_is_as_it_was(tiny_engine: EmbeddedEngine) -> None:
    response = complete_blocking(tiny_engine, ask())
    assert split_samples(response) == [response]
