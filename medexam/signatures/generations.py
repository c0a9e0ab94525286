"""What the adapters share: the settings of a request, and a reply as the engine gave it."""

from dataclasses import dataclass
from typing import Any

from dspy.lm15 import Config, Response, TextPart, ThinkingPart

from medexam.signatures.single_call import Fields
from medexam.signatures.thinking import join_thinking

_CONFIG = ("max_tokens", "temperature", "top_p", "seed", "stop")


@dataclass(frozen=True)
class Generation:
    """One reply as the engine gave it."""

    reply: str | None
    """All that the assistant's turn holds, prefilled text included; thinking stands in its block. None where
    nothing was written, only read."""
    finish_reason: str
    """`stop`, or `length` where the reply was cut off at its budget."""
    model: str
    """The model as the server named it."""
    prompt_tokens: int | None
    completion_tokens: int | None


def build_config(settings: Fields, extensions: dict[str, Any]) -> Config:
    """A request's settings from those of the language model; `extensions` are what engines alone understand."""
    config = {key: settings[key] for key in _CONFIG if settings.get(key) is not None}
    return Config(**config, extensions=extensions) if extensions else Config(**config)


def read_generation(response: Response, said: str = "") -> Generation:
    """The reply of a response, behind `said`, which was put into the assistant's mouth."""
    return Generation(
        reply=said + _reply(response),
        finish_reason=response.finish_reason,
        model=response.model,
        prompt_tokens=response.usage.input_tokens,
        completion_tokens=response.usage.output_tokens,
    )


def _reply(response: Response) -> str:
    said = "".join(part.text for part in response.message.parts if isinstance(part, TextPart))
    thinking = "".join(part.text for part in response.message.parts if isinstance(part, ThinkingPart))
    return join_thinking(thinking, said) if thinking else said
