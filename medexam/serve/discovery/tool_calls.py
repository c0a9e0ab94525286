"""Whether a server takes tools and JSON schemas in OpenAI's form, and whether its model is held to them.

A server may ignore what it does not know, and still answer: so both are asked for with a word that no model says.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from medexam.serve.choice_schema import IMPOSSIBLE, SCHEMA_TOKENS, choice_fields, parse_guided_choice

TOOL_PARAMS = ("tools", "tool_choice", "parallel_tool_calls")
"""OpenAI's fields of tools."""


class NativeForms(NamedTuple):
    """What a server takes in OpenAI's form."""

    takes_tools: bool
    """A tool that must be called is called, and one that may be is not refused."""
    takes_schema: bool
    """A reply is held to a JSON schema."""


async def find_native_forms(ask: Callable[[dict[str, Any]], Awaitable[Mapping[str, Any]]]) -> NativeForms:
    """Find out by at most three short requests; `ask` sends the body of a chat request and returns the reply.

    An empty reply is a refusal.
    """
    body = {"messages": [{"role": "user", "content": "Say hello."}], "temperature": 0, "max_tokens": SCHEMA_TOKENS}
    tools = choice_fields(IMPOSSIBLE, "tool_choice")
    forced = _message(await ask({**body, **tools}))
    takes_tools = bool(forced.get("tool_calls")) and bool(_message(await ask({**body, **tools, "tool_choice": "auto"})))
    text = _message(await ask({**body, **choice_fields(IMPOSSIBLE, "json_schema")})).get("content")
    return NativeForms(takes_tools, isinstance(text, str) and parse_guided_choice(text, IMPOSSIBLE) is not None)


def _message(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = reply.get("choices") or [{}]
    return choices[0].get("message") or {}
