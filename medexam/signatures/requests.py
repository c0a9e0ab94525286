"""A dialogue as DSPy's request, and DSPy's response as the replies to it."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from dspy.lm15 import (
    Config,
    ImagePart,
    Message,
    RefusalPart,
    Request,
    Response,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    Usage,
)

from medexam.model_calls import (
    CONTINUATIONS,
    DRAWN_SEED,
    FINISH_REASON,
    SAMPLES,
    UNSEEDED,
    ContinuationLogprobs,
    Dialogue,
    Generation,
    ToolCall,
)
from medexam.signatures.thinking import join_thinking

MOST_TOKENS = 10**9
"""More than any context holds: a larger count of tokens is a server's fault, and counts as not reported."""


def build_request(model: str, dialogue: Dialogue) -> Request:
    """Build DSPy's request of a dialogue; what engines alone understand stands in its extensions.

    An empty system turn is a part without words: a request takes no empty text for it.
    """
    turns = [*dialogue.messages, *([{"role": "assistant", "content": dialogue.opening}] if dialogue.opening else [])]
    system = next((turn["content"] for turn in turns if turn["role"] == "system"), None)
    messages = [_message(turn["role"], turn["content"]) for turn in turns if turn["role"] != "system"]
    if dialogue.picture is not None:
        last = max(place for place, message in enumerate(messages) if message.role == "user")
        messages[last] = Message.user([_image(dialogue.picture), *messages[last].parts])
    extensions: dict[str, Any] = {} if dialogue.choices is None else {"choice": list(dialogue.choices)}
    if dialogue.continuations is not None:
        extensions[CONTINUATIONS] = dialogue.continuations.model_dump(mode="json")
    if dialogue.plain:
        extensions["plain"] = True
    if dialogue.sampling.samples > 1:
        extensions[SAMPLES] = dialogue.sampling.samples
    return Request(
        model=model,
        system=[TextPart("")] if system == "" else system,
        messages=tuple(messages),
        config=Config(**dialogue.sampling.fields(), extensions=extensions or None),
    )


# Instructions and demonstrations stand in every request of a run.
@lru_cache(maxsize=128)
def _message(role: str, content: str) -> Message:
    return {"user": Message.user, "assistant": Message.assistant}[role](content)


def _image(data_url: str) -> ImagePart:
    kind, _, data = data_url.removeprefix("data:").partition(";base64,")
    return ImagePart(media_type=kind, data=data)


def drawn_seed(settings: Mapping[str, Any]) -> int | None:
    """Return the seed under which the first reply is drawn; None where nothing is drawn."""
    return settings.get("seed") if settings.get("temperature") else None


def read_generations(response: Response, dialogue: Dialogue, settings: Mapping[str, Any]) -> list[Generation]:
    """Read the replies to a dialogue under a model's settings; those that were drawn have their seeds."""
    extras = response.provider_data or {}
    reading = ContinuationLogprobs.model_validate(extras[CONTINUATIONS]) if dialogue.continuations else None
    seed = None if extras.get(UNSEEDED) else extras.get(DRAWN_SEED, drawn_seed(settings))
    return [
        replace(read_generation(sample), reading=reading, seed=None if seed is None else seed + number)
        for number, sample in enumerate(split_samples(response))
    ]


def split_samples(response: Response) -> list[Response]:
    """Split a response into its replies, each as a response; those that shared the first one's prompt read none."""
    others = (response.provider_data or {}).get(SAMPLES) or ()
    return [response, *(_one_sample(response, data) for data in others)]


def _one_sample(first: Response, data: Mapping[str, Any]) -> Response:
    thinking = [ThinkingPart(data["thinking"])] if data["thinking"] else []
    usage = Usage(input_tokens=0, output_tokens=data["completion_tokens"], reasoning_tokens=data["thinking_tokens"])
    refusal = [RefusalPart(data["refusal"])] if data.get("refusal") else []
    message = Message.assistant([*thinking, TextPart(data["text"]), *refusal])
    provider_data = {FINISH_REASON: data.get("written_reason")}
    return replace(
        first, message=message, finish_reason=data["finish_reason"], usage=usage, provider_data=provider_data
    )


def read_generation(response: Response) -> Generation:
    """Read the reply of a response."""
    text = "".join(part.text for part in response.message.parts if isinstance(part, TextPart))
    thinking = "".join(part.text for part in response.message.parts if isinstance(part, ThinkingPart))
    refusal = "".join(part.text for part in response.message.parts if isinstance(part, RefusalPart))
    return Generation(
        reply=join_thinking(thinking, text or refusal) if thinking else text or refusal,
        finish_reason=(response.provider_data or {}).get(FINISH_REASON) or response.finish_reason,
        model=response.model,
        prompt_tokens=_count(response.usage.input_tokens),
        completion_tokens=_count(response.usage.output_tokens),
        thinking_tokens=_count(response.usage.reasoning_tokens),
        refused=bool(refusal),
        text=text if thinking or refusal else None,
        tool_calls=tuple(
            ToolCall(id=part.id, name=part.name, args=part.input)
            for part in response.message.parts
            if isinstance(part, ToolCallPart)
        ),
    )


def _count(tokens: int | None) -> int | None:
    """Return the number of tokens that a server reports; None where it reports none, or one that cannot be."""
    return tokens if isinstance(tokens, int) and 0 <= tokens <= MOST_TOKENS else None
