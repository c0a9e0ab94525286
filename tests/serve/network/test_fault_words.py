"""What providers say in words, as their documentation and their users' reports quote them."""

import pytest
from dspy.lm15 import Config, Message, Request
from provider_wire import serve_provider
from provider_wires import Mistral, OpenAI
from wire_server import Wire, serving

from asked import complete
from medexam.errors import (
    AuthError,
    BillingError,
    CallError,
    ContextLengthError,
    FilteredError,
    InvalidRequestError,
    RateLimitError,
    ServerError,
)
from medexam.serve import build_engine
from medexam.serve.network.fault_words import refine
from medexam.specs import EngineNeeds, ModelSpec

HELLO = Request(model="m", messages=(Message.user("Hello"),), config=Config(temperature=0.0, max_tokens=8))


@pytest.mark.parametrize(
    ("said", "fault", "meant"),
    [
        ("Prompt contains 40 tokens, too large for model with 32 maximum context length", 400, ContextLengthError),
        (
            "Trying to keep the first 5044 tokens when context the overflows. However, the model is loaded with "
            "context length of only 4096 tokens, which is not enough.",
            400,
            ContextLengthError,
        ),
        ("The number of tokens to keep from the initial prompt is greater than the context", 400, ContextLengthError),
        ("the request exceeds the available context size, try increasing it", 400, ContextLengthError),
        ("Requested tokens (2055) exceed context window of 2048", 500, ContextLengthError),
        ("prompt is too long: 208310 tokens > 200000 maximum", 400, ContextLengthError),
        ("The input token count (1048577) exceeds the maximum number of tokens allowed", 400, ContextLengthError),
        ("litellm.ContentPolicyViolationError: Azure OpenAI's content management policy", 400, FilteredError),
        ("code: content_filter", 400, FilteredError),
        ("API key not valid. Please pass a valid API key.", 400, AuthError),
        ("Your credit balance is too low to access the Anthropic API.", 400, BillingError),
        ("You exceeded your current quota, please check your plan and billing details.", 429, BillingError),
        ("You exceeded your current quota. Please retry in 34.07s.", 429, RateLimitError),
        ("Rate limit reached for requests", 429, RateLimitError),
        ("Your team has used all available credits", 429, BillingError),
        ("Authentication Fails", 401, AuthError),
        ("Insufficient Balance", 402, BillingError),
        ("temperature must be below 2", 400, InvalidRequestError),
        ("something broke", 500, ServerError),
    ],
)
def test_words_say_what_a_status_does_not(said: str, fault: int, meant: type[CallError]) -> None:
    kind = {429: RateLimitError, 500: ServerError}.get(fault, InvalidRequestError)
    refined = refine(kind(said, status=fault))
    assert type(refined) is meant
    assert refined.status == fault


async def test_a_prompt_that_is_too_long_for_mistral() -> None:
    with serve_provider(Mistral()) as wire:
        engine = await build_engine(ModelSpec(engine="litellm", name=wire.model_name), EngineNeeds(chat=True))
        wire.fault = "context"
        with pytest.raises(ContextLengthError, match="too large for model"):
            await complete(engine, HELLO)
        await engine.aclose()


async def test_a_reply_that_a_filter_withholds_is_one_without_words() -> None:
    with serve_provider(OpenAI()) as wire:
        engine = await build_engine(ModelSpec(engine="litellm", name=wire.model_name), EngineNeeds(chat=True))
        wire.fault = "filter"
        wire.requests.clear()
        reply = await complete(engine, HELLO)
        await engine.aclose()
    assert (reply.text or "", reply.finish_reason) == ("", "content_filter")
    assert len(wire.requests) == 1


async def test_a_server_behind_a_filter() -> None:
    class Filtering(Wire):
        def _refusal(self, body):
            return (400, {"error": {"message": "blocked", "code": "content_filter"}}) if self.drawn else None

        drawn = False

    with serving(Filtering(tokenize=False)) as wire:
        spec = ModelSpec(engine="vllm", endpoints=(wire.address,))
        engine = await build_engine(spec, EngineNeeds(chat=True))
        wire.drawn = True
        reply = await complete(engine, HELLO)
        await engine.aclose()
    assert (reply.text or "", reply.finish_reason) == ("", "content_filter")
