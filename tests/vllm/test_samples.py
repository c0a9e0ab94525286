"""Several replies to a prompt from a live server: in one request, those of single requests under the next seeds."""

import pytest
from engine_calls import GUIDED, ask, replies

from medexam.serve import build_engine
from medexam.specs import ModelSpec

pytestmark = pytest.mark.vllm
DRAWN = {"temperature": 1.5, "max_tokens": 6}


@pytest.mark.parametrize("choices", [list("1234"), None], ids=["guided", "free"])
async def test_one_request_brings_the_replies_of_several(endpoint: str, choices: list[str] | None) -> None:
    spec = ModelSpec(engine="vllm", endpoints=(endpoint,), temperature=1.5, min_p=0.01)
    engine = await build_engine(spec, GUIDED)
    assert engine.shares_prompts
    opening = "{Answer: " if choices else ""

    def name(seed: int, samples: int = 1):
        return ask("Name a bone, any bone.", opening=opening, choices=choices, seed=seed, samples=samples, **DRAWN)

    several = await engine.reply(name(11, samples=6))
    single = await replies(engine, [name(11 + n) for n in range(6)])
    await engine.aclose()
    # Other batches round otherwise, which may turn a draw between tokens that are equally likely.
    assert sum(one.reply == other.reply for one, other in zip(several, single, strict=True)) >= 5
    assert len({one.reply for one in several}) > 1
    assert [one.prompt_tokens for one in several] == [single[0].prompt_tokens, 0, 0, 0, 0, 0]
    assert all(one.completion_tokens for one in several)
