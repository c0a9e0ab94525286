"""A choice in the forms in which models are held to it: a JSON schema, a tool's argument, JSON mode, or words alone.

This module knows fields and words; who is asked is the engine's business.
"""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, get_args

SchemaForm = Literal["json_schema", "json_object", "json_object with value"]
"""OpenAI's own form, that of llama.cpp's Python server with the schema beside it, and that of TGI with a `value`."""
SCHEMA_FORMS: tuple[SchemaForm, ...] = get_args(SchemaForm)
ChoiceForm = SchemaForm | Literal["tool_choice", "json_mode", "words"]
"""`tool_choice`: the argument of a tool that must be called. `json_mode`: any JSON, and `words`: any reply; both name
the choices in words, which the model may not heed."""
CHOICE_FORMS: tuple[ChoiceForm, ...] = (*SCHEMA_FORMS, "tool_choice", "json_mode", "words")
"""From the form that holds a model best to the one that holds it least."""
IMPOSSIBLE = ("zyzzyva", "syzygy")
"""Choices that no model makes unless it is held to them."""
SCHEMA_TOKENS = 64
"""Room for the JSON around a choice, beyond the reply's own budget."""
_FIELD = "answer"
_TOOL = "answer"
_INSTRUCTIONS: Mapping[ChoiceForm, str] = MappingProxyType(
    {
        "json_mode": f'Reply with a JSON object whose only field "{_FIELD}" is one of these strings: {{choices}}.',
        "words": "Reply with one of these and with nothing else: {choices}.",
    }
)
_AROUND = " \n\t\"'`.{}"
"""What models write around a choice that they name in words."""


def response_format(choices: Sequence[str], form: SchemaForm) -> dict[str, Any]:
    """Build the field `response_format` that holds a reply to one of the choices."""
    schema = _schema(choices)
    if form != "json_schema":
        return {"type": "json_object", "value" if form.endswith("value") else "schema": schema}
    return {"type": form, "json_schema": {"name": "choice", "schema": schema, "strict": True}}


def choice_fields(choices: Sequence[str], form: ChoiceForm) -> dict[str, Any]:
    """Return the fields of a chat request that hold its reply to one of the choices; none for `words`."""
    match form:
        case "tool_choice":
            function = {"name": _TOOL, "description": "Give the answer.", "parameters": _schema(choices)}
            # There is one tool, and not every provider takes its name here.
            return {"tools": [{"type": "function", "function": function}], "tool_choice": "required"}
        case "json_mode":
            return {"response_format": {"type": "json_object"}}
        case "words":
            return {}
        case _:
            return {"response_format": response_format(choices, form)}


def choice_words(choices: Sequence[str], form: ChoiceForm) -> str:
    """Return what a request must say of the choices in words; empty where its fields say it."""
    return _INSTRUCTIONS.get(form, "").format(
        choices=", ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
    )


def parse_guided_choice(text: str | None, choices: Sequence[str]) -> str | None:
    """Parse the choice that a reply makes; None if it is no such JSON, or makes another."""
    try:
        choice = json.loads(text or "")[_FIELD]
    except (ValueError, TypeError, KeyError):
        return None
    return choice if choice in choices else None


def parse_guided_word(text: str | None, choices: Sequence[str]) -> str | None:
    """Return the choice that a reply in words is; None if it says more, or another."""
    words = (text or "").strip(_AROUND)
    return next((choice for choice in choices if choice.strip(_AROUND) == words), None)


def _schema(choices: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {_FIELD: {"type": "string", "enum": list(choices)}},
        "required": [_FIELD],
        "additionalProperties": False,
    }
