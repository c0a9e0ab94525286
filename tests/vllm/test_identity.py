"""What a live server shows of its model is what the model's own weights say, and stays so."""

import asyncio

import pytest
from wire_server import TEXT

from medexam.serve import build_engine, smollm2_folder
from medexam.specs import ModelSpec

pytestmark = pytest.mark.vllm
SAME_NATS = 0.08
"""The mean gap of two readings of one text by one model, in nats a token, that docs/protocol.md states."""


@pytest.fixture(scope="module")
def reference() -> tuple[list[int], list[float]]:
    """Tokens of the fixed text, and the log-probabilities of all but the first, by transformers in float32."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = smollm2_folder()
    tokens = AutoTokenizer.from_pretrained(folder)(TEXT)["input_ids"]
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.inference_mode():
        scores = model(torch.tensor([tokens])).logits[0, :-1].log_softmax(-1)
    return tokens, scores.gather(1, torch.tensor(tokens[1:])[:, None])[:, 0].tolist()


def identify(endpoint: str):
    async def look():
        engine = await build_engine(ModelSpec(engine="vllm", endpoints=(endpoint,)))
        await engine.aclose()
        return engine.info().identity

    return asyncio.run(look())


def test_a_server_shows_the_log_probabilities_of_its_weights(endpoint, reference) -> None:
    behaviour = identify(endpoint).behaviour
    tokens, logprobs = reference
    assert list(behaviour.tokens) == tokens
    # A server in bfloat16 rounds more than one in float32.
    gaps = [abs(here - there) for here, there in zip(behaviour.logprobs, logprobs, strict=True)]
    assert sum(gaps) / len(gaps) < SAME_NATS
    assert behaviour.noise < SAME_NATS


def test_two_looks_at_a_live_server_are_one_model(endpoint) -> None:
    first, second = identify(endpoint), identify(endpoint)
    assert first.differences(second) == []
    assert first.dialogue is not None
    assert first.notes["version"].startswith("vllm ")
