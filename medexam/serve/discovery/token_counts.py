"""What a server's counts of tokens show: what of a prompt reaches the model, and which field ends a reply.

Servers drop messages and fields that they do not know, and still answer. This module words requests and compares
replies; how they travel is known to the probes.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Ask = Callable[[dict[str, Any]], Awaitable[Mapping[str, Any]]]
"""Sends the body of a chat request, without its model; returns the reply's object, empty if it is refused."""

LIMITS = ("max_tokens", "max_completion_tokens")
"""What OpenAI's API calls the most tokens of a reply, the name that most servers know first."""
UNLIMITED = (
    "{} ignores max_tokens and max_completion_tokens, so replies may be longer than program.max_tokens; set a limit "
    "at the server"
)
"""What is said of an endpoint for which `find_limit` finds none."""
_MOST_COUNTED = 10**9
"""Tokens of one reply; those of thousands of replies together still fit in any table."""
_COUNTED = "Count from one to fifty in words, without a word of your own."
_TOKENS = 16
"""Some providers refuse fewer."""
_MOST_CHARACTERS = 12 * _TOKENS
"""No tokenizer makes words of counting as long."""


def is_count(value: Any) -> bool:
    """Return whether a server's number of tokens can be one."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_COUNTED


def counts_more(reply: Mapping[str, Any], shorter: Mapping[str, Any]) -> bool:
    """Return whether a prompt cost more tokens than one without a part of it; a server that counts none is believed."""
    count, shorter_count = ((answer.get("usage") or {}).get("prompt_tokens") for answer in (reply, shorter))
    return not (is_count(count) and is_count(shorter_count) and count and shorter_count) or bool(count > shorter_count)


async def find_limit(ask: Ask) -> str | None:
    """Find the first of `LIMITS` at which a reply ends; None if it ends at neither. A model that refuses both shows
    nothing.

    A reply may end by itself before: then the name that it was asked by is believed.
    """
    answered = False
    for name in LIMITS:
        body = {"messages": [{"role": "user", "content": _COUNTED}], "temperature": 0, name: _TOKENS}
        reply = await ask(body)
        if reply.get("choices"):
            answered = True
            if _ends(reply):
                return name
    return None if answered else LIMITS[0]


def rename_limit(fields: Mapping[str, Any], limit: str | None) -> dict[str, Any]:
    """Return the fields of a chat request with the most tokens under the name `limit`; None changes nothing."""
    return {limit if limit and name in LIMITS else name: value for name, value in fields.items()}


def _ends(reply: Mapping[str, Any]) -> bool:
    choice = reply["choices"][0]
    count = (reply.get("usage") or {}).get("completion_tokens")
    if is_count(count) and count:
        return bool(count <= _TOKENS)
    message = choice.get("message") or {}
    thinking = message.get("reasoning_content") or message.get("reasoning") or ""
    return len(f"{thinking}{message.get('content') or ''}") <= _MOST_CHARACTERS
