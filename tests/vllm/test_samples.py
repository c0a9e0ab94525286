"""Several replies to a prompt from a live server: in one request, those of single requests under the next seeds."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from dspy.lm15 import Config, Message, Request

from asked import complete
from medexam.dspy_requests import CHOICE, split_samples
from medexam.model_calls import SAMPLES
from medexam.serve import VLLMEngine, build_engine
from medexam.specs import EngineNeeds, ModelSpec

pytestmark = pytest.mark.vllm


@pytest.fixture
async def engine(endpoint: str) -> AsyncIterator[VLLMEngine]:
    spec = ModelSpec(engine="vllm", endpoints=(endpoint,), temperature=1.5, min_p=0.01)
    built = await build_engine(spec, EngineNeeds(guided=True))
    yield built
    await built.aclose()


def ask(seed: int, samples: int, *, choices: bool) -> Request:
    extensions = {**({CHOICE: list("1234")} if choices else {}), **({SAMPLES: samples} if samples > 1 else {})}
    messages = [Message.user("Name a bone, any bone."), *([Message.assistant("{Answer: ")] if choices else [])]
    config = Config(temperature=1.5, max_tokens=6, seed=seed, extensions=extensions or None)
    return Request(model="m", messages=tuple(messages), config=config)


@pytest.mark.parametrize("choices", [True, False], ids=["guided", "free"])
async def test_one_request_brings_the_replies_of_several(engine: VLLMEngine, choices: bool) -> None:
    assert engine.shares_prompts
    replies = split_samples(await complete(engine, ask(11, 6, choices=choices)))
    single = await asyncio.gather(*(complete(engine, ask(11 + n, 1, choices=choices)) for n in range(6)))
    # Other batches round otherwise, which may turn a draw between tokens that are equally likely.
    assert sum(one.text == other.text for one, other in zip(replies, single, strict=True)) >= 5
    assert len({reply.text for reply in replies}) > 1
    assert [reply.usage.input_tokens for reply in replies] == [single[0].usage.input_tokens, 0, 0, 0, 0, 0]
    assert all(reply.usage.output_tokens for reply in replies)
