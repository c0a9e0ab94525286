"""The fields of vLLM's requests and replies, written from dialogues and read into generations.

Pure functions; this module opens no connection and decides nothing.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from medexam.errors import ProviderError, ServerError
from medexam.model_calls import Generation
from medexam.serve.engines.litellm_calls import check_ending
from medexam.serve.engines.token_usage import read_usage
from medexam.text import writable

PLAIN_FIELDS = {
    "max_tokens",
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "stop",
    "frequency_penalty",
    "presence_penalty",
}
"""Fields that mean the same on the chat and the completions endpoint, so that either can answer."""

_GRAMMAR_TOKENS = 64
"""Room for a choice of several tokens; the grammar ends the reply."""


@dataclass(frozen=True)
class Completion:
    """One completion."""

    model: str
    text: str
    tokens: tuple[int, ...] | None
    """Ids of the reply's tokens; None if the server does not return them."""
    finish_reason: str
    prompt_tokens: int | None
    """0 for a reply that shared the prompt of the one before it; None if the server does not count."""
    completion_tokens: int | None


def order_choices(raw: Mapping[str, Any], expected: int) -> list[dict[str, Any]]:
    """Sort the choices of a completions reply in the order of its prompts; raises `ServerError` unless each has one."""
    entries = raw.get("choices") or ()
    choices = {choice["index"]: choice for choice in entries if choice.get("text") is not None}
    if len(entries) != expected or set(choices) != set(range(expected)):
        raise ServerError(f"{expected} prompts were sent and replies to {sorted(choices)} came back")
    return [choices[index] for index in range(expected)]


def read_completions(raw: Mapping[str, Any], model: str, expected: int, samples: int) -> list[list[Completion]]:
    """Read the `samples` replies to each prompt of a request, in their order; raises `ServerError` unless all are
    there.

    Raises `TypeError` for a text or token ids of another type than the protocol's. Tokens are counted per prompt if the
    server returns their ids; its own totals are for the whole request. A prompt's own are counted with its first reply.
    """
    replies = []
    for place, choice in enumerate(order_choices(raw, expected * samples)):
        tokens, prompt = _token_ids(choice.get("token_ids")), _listed(choice.get("prompt_token_ids"))
        text = choice["text"]
        if not isinstance(text, str):
            raise TypeError(f"a text of type {type(text).__name__}")
        if tokens is not None and prompt is not None:
            counts = {"prompt_tokens": 0 if place % samples else len(prompt), "completion_tokens": len(tokens)}
        elif expected == samples == 1:
            counts = read_usage(raw.get("usage"), wrote=bool(text))
        else:
            counts = {}
        replies.append(
            Completion(
                model=writable(str(raw.get("model") or model)),
                text=writable(text),
                tokens=tokens,
                finish_reason=check_ending(choice.get("finish_reason")) or "stop",
                prompt_tokens=counts.get("prompt_tokens"),
                completion_tokens=counts.get("completion_tokens"),
            )
        )
    return [replies[start : start + samples] for start in range(0, len(replies), samples)]


def _token_ids(raw_ids: Any) -> tuple[int, ...] | None:
    ids = _listed(raw_ids)
    if ids is None:
        return None
    if {*map(type, ids)} - {int}:
        raise TypeError("token ids that are not whole numbers")
    return tuple(ids)


def _listed(raw_ids: Any) -> list[Any] | None:
    """Return the ids as they were told: those of a prompt are counted alone."""
    if raw_ids is not None and not isinstance(raw_ids, list):
        raise TypeError("token ids that are not a list")
    return raw_ids


def build_generation(reply: Completion, text: str, finish_reason: str) -> Generation:
    """Build a generation with this text from a completion."""
    return Generation(text, finish_reason, reply.model, reply.prompt_tokens, reply.completion_tokens)


# A run has as many bodies as numbers of options.
@lru_cache(maxsize=1024)
def choice_body(fields: str, choices: tuple[str, ...], ids: tuple[int, ...] | None) -> str:
    """Build a request for one of the choices, as JSON: one of their tokens `ids`, or by a grammar if that is None.

    `fields` are its other fields, as JSON.
    """
    if ids is not None:
        constraint = {"max_tokens": 1, "allowed_token_ids": ids}
    else:
        constraint = {"max_tokens": _GRAMMAR_TOKENS, "structured_outputs": {"choice": choices}}
    return json.dumps({**json.loads(fields), **constraint}, sort_keys=True)


def match_choice(text: str, choices: Sequence[str]) -> str | None:
    """Find the choice that a text is, however the server spaced it."""
    if text in choices:
        return text
    return next((choice for choice in choices if choice.strip() == text.strip()), None)


def chosen_text(reply: Completion, choices: Sequence[str], ids: Sequence[int] | None) -> str:
    """Return the choice that a reply is; `ids` are the choices' tokens, None if one of them is several.

    Raises `ProviderError` if it is none.
    """
    if ids is not None and reply.tokens:
        choice = dict(zip(ids, choices, strict=True)).get(reply.tokens[0])
    else:
        choice = match_choice(reply.text, choices)
    if choice is None:
        raise ProviderError(f"the server replied {reply.text!r}, which is not one of {list(choices)}")
    return choice


def chosen_in_chat(generation: Generation, prefill: str, choices: Sequence[str]) -> Generation:
    """Return a chat reply as the choice that it is behind `prefill`; raises `ProviderError` if it is none."""
    if generation.withheld:
        return generation
    text = generation.words
    choice = match_choice(text[len(prefill) :], choices) if text.startswith(prefill) else None
    if choice is None:
        raise ProviderError(f"the server replied {text!r}, which is not {prefill!r} and one of {list(choices)}")
    return become_choice(generation, choice)


def become_choice(generation: Generation, choice: str) -> Generation:
    """Return the generation with this choice as all that it says."""
    return replace(generation, reply=choice, text=None, thinking=None, tool_calls=(), source=None)


def escape_pattern(text: str) -> str:
    """Escape the text as a pattern; `re.escape` would also escape spaces, which grammar engines refuse."""
    return re.sub(r"([\\.^$*+?{}\[\]|()/-])", r"\\\1", text)
