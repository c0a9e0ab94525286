"""A choice as a JSON schema with one field, in the three ways in which servers of OpenAI's API take schemas.

This module knows fields and words; who is asked is the engine's business.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal, get_args

SchemaForm = Literal["json_schema", "json_object", "json_object with value"]
"""OpenAI's own form, that of llama.cpp's Python server with the schema beside it, and that of TGI with a `value`."""
SCHEMA_FORMS: tuple[SchemaForm, ...] = get_args(SchemaForm)
IMPOSSIBLE = ("zyzzyva", "syzygy")
"""Choices that no model makes unless it is held to them."""
SCHEMA_TOKENS = 64
"""Room for the JSON around a choice, beyond the reply's own budget."""
_FIELD = "answer"


def response_format(choices: Sequence[str], form: SchemaForm) -> dict[str, Any]:
    """The field `response_format` that holds a reply to one of the choices."""
    schema = {
        "type": "object",
        "properties": {_FIELD: {"type": "string", "enum": list(choices)}},
        "required": [_FIELD],
        "additionalProperties": False,
    }
    if form != "json_schema":
        return {"type": "json_object", "value" if form.endswith("value") else "schema": schema}
    return {"type": form, "json_schema": {"name": "choice", "schema": schema, "strict": True}}


def read_choice(text: str | None, choices: Sequence[str]) -> str | None:
    """The choice that a reply makes; None if it is no such JSON, or makes another."""
    try:
        chosen = json.loads(text or "")[_FIELD]
    except (ValueError, TypeError, KeyError):
        return None
    return chosen if chosen in choices else None
