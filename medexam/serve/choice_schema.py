"""A choice in the forms in which models are held to it: a JSON schema, or a tool's argument."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, get_args

from medexam.model_calls import Generation
from medexam.signatures.thinking import split_thinking

SchemaForm = Literal["json_schema", "json_object", "json_object with value"]
"""OpenAI's own form, that of llama.cpp's Python server with the schema beside it, and that of TGI with a `value`."""
SCHEMA_FORMS: tuple[SchemaForm, ...] = get_args(SchemaForm)
ChoiceForm = SchemaForm | Literal["tool_choice"]
"""`tool_choice`: the argument of a tool that must be called."""
CHOICE_FORMS: tuple[ChoiceForm, ...] = (*SCHEMA_FORMS, "tool_choice")
"""In the order in which they are tried."""
IMPOSSIBLE = ("zyzzyva", "syzygy")
"""Choices that no model makes unless it is held to them."""
OPENING = "{Answer: "
"""The opening behind which an impossible choice is asked."""
SCHEMA_TOKENS = 64
"""Room for the JSON around a choice, beyond the reply's own budget."""


def choice_fields(choices: Sequence[str], form: ChoiceForm) -> dict[str, Any]:
    """Return the fields of a chat request that hold its reply to one of the choices."""
    schema = {
        "type": "object",
        "properties": {"answer": {"type": "string", "enum": list(choices)}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    if form == "tool_choice":
        function = {"name": "answer", "description": "Give the answer.", "parameters": schema}
        # There is one tool, and not every provider takes its name here.
        return {"tools": [{"type": "function", "function": function}], "tool_choice": "required"}
    if form == "json_schema":
        return {"response_format": {"type": form, "json_schema": {"name": "choice", "schema": schema, "strict": True}}}
    return {"response_format": {"type": "json_object", "value" if form.endswith("value") else "schema": schema}}


async def find_choice_form(
    ask: Callable[[ChoiceForm, str], Awaitable[Generation | None]], openings: Sequence[str]
) -> tuple[ChoiceForm | None, bool | None]:
    """Find the form in which an impossible choice comes back, and whether an opening may stand before it.

    `ask` asks for one in a form behind one of the `openings`, and returns None if that is refused.
    """
    for form in CHOICE_FORMS:
        for opening in openings:
            if (reply := await ask(form, opening)) is not None:
                if read_choice(reply, IMPOSSIBLE) is not None:
                    return form, bool(opening)
                break
    return None, None


def read_choice(reply: Generation, choices: Sequence[str]) -> str | None:
    """Read the choice that a reply makes, as a tool's argument or as JSON; None if it makes none."""
    calls = [call.args for call in reply.tool_calls]
    return parse_guided_choice(json.dumps(calls[0]) if calls else reply.words, choices)


def parse_guided_choice(text: str | None, choices: Sequence[str]) -> str | None:
    """Parse the choice that a reply makes; None if it is no such JSON, or makes another."""
    try:
        choice = json.loads(split_thinking(text or "")[1])["answer"]
    except (ValueError, TypeError, KeyError):
        return None
    return choice if choice in choices else None
