"""Calls of DSPy's as dialogues, and dialogues as requests of DSPy's, whose responses are generations.

Adapters and engines of ours know the first two alone. DSPy, and engines and models of one's own, know the others.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dspy.lm15 import (
    RefusalPart,
    Request,
    Response,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    request_from_openai_chat,
)

from medexam.dspy_internals import json_schema_format
from medexam.errors import InvalidRequestError
from medexam.model_calls import (
    SAMPLED,
    ChatMessage,
    ContinuationLogprobs,
    Dialogue,
    Generation,
    ToolCall,
    join_thinking,
    put_pictures,
    read_sampling,
)
from medexam.text import writable

CHOICE = "choice"
"""Key of `Request.config.extensions` that holds the strings the reply is chosen from."""
CONTINUATIONS = "continuations"
"""Key of `Request.config.extensions` that holds a `ContinuationRequest`, and of `Response.provider_data` that holds
the `ContinuationLogprobs` which answers it."""
PLAIN = "plain"
"""Key of `Request.config.extensions` that is true where the reply continues plain text."""

_MOST_TOKENS = 10**9
"""More than any context holds: a larger count of tokens is a server's fault, and counts as not reported."""
_ROLES = {"developer": "system"}
_OF_DSPY = frozenset({"cache", "rollout_id", "n", "num_generations", "prompt_cache"})
"""Settings of a call that are no part of its request."""


def build_request(model: str, dialogue: Dialogue) -> Request:
    """Build DSPy's request of a dialogue; what engines alone know stands in its extensions."""
    turns = dialogue.turns or put_pictures(dialogue.turns_with_opening, dialogue.pictures)
    # A request takes no empty text for the system's turn, but a part without words.
    is_silent = turns[0] == {"role": "system", "content": ""}
    body = {"model": model, "messages": turns[is_silent:], **dialogue.sampling, **dialogue.fields}
    request = request_from_openai_chat(body)
    extensions = dict(request.config.extensions or {})
    if dialogue.choices is not None:
        extensions[CHOICE] = list(dialogue.choices)
    if dialogue.continuations is not None:
        extensions[CONTINUATIONS] = dialogue.continuations.model_dump(mode="json")
    if dialogue.plain:
        extensions[PLAIN] = True
    config = replace(request.config, extensions=extensions or None)
    return replace(request, config=config, **({"system": [TextPart("")]} if is_silent else {}))


def read_dialogue(turns: list[dict[str, Any]], settings: Mapping[str, Any]) -> Dialogue:
    """Read a call of DSPy's in OpenAI's chat dialect; raises `ValueError` for text that no server takes, and
    `InvalidRequestError` if it leaves nothing to answer.
    """
    if writable(turns) != turns:
        raise ValueError("the messages contain text that is not valid Unicode, which no server takes")
    own_fields = {name: value for name, value in settings.items() if value is not None and name not in _OF_DSPY}
    if isinstance(own_fields.get("stop"), str):
        own_fields["stop"] = [own_fields["stop"]]
    sampling, fields = read_sampling(own_fields), {name: own_fields[name] for name in own_fields if name not in SAMPLED}
    if isinstance(form := fields.get("response_format"), type):
        fields["response_format"] = json_schema_format(form)
    words = [*map(_words, turns)]
    if not any(turn["role"] in ("user", "tool") for turn in words):
        raise InvalidRequestError("the request has no user turn to answer")
    if not all(len(turn) == 2 and isinstance(turn.get("content"), str) and turn["role"] != "tool" for turn in turns):
        return Dialogue(words, "", sampling, fields=fields, turns=[*turns])
    opening = words.pop()["content"] if words[-1]["role"] == "assistant" else ""
    return Dialogue(words, opening, sampling, fields=fields)


def _words(turn: Mapping[str, Any]) -> ChatMessage:
    """Return a turn as a text; a tool's call is its name and its arguments as JSON, a line each."""
    content = turn.get("content") or ""
    words = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    functions = [call["function"] for call in turn.get("tool_calls") or ()]
    calls = [f"{function['name']} {json.dumps(json.loads(function['arguments']))}" for function in functions]
    return {"role": _ROLES.get(turn["role"], turn["role"]), "content": "\n".join(filter(None, [words, *calls]))}


def read_generation(response: Response) -> Generation:
    """Read the reply of a response."""
    texts = {
        kind: "".join(part.text for part in response.message.parts if isinstance(part, kind))
        for kind in (TextPart, ThinkingPart, RefusalPart)
    }
    text, thinking, refusal = texts.values()
    reading = (response.provider_data or {}).get(CONTINUATIONS)
    return Generation(
        text=join_thinking(thinking, text or refusal) if thinking else text or refusal,
        finish_reason=response.finish_reason,
        model=response.model,
        prompt_tokens=_count(response.usage.input_tokens),
        completion_tokens=_count(response.usage.output_tokens),
        thinking_tokens=_count(response.usage.reasoning_tokens),
        refused=bool(refusal),
        content=text if thinking or refusal else None,
        thinking=thinking or None,
        tool_calls=tuple(
            ToolCall(id=part.id, name=part.name, args=part.input)
            for part in response.message.parts
            if isinstance(part, ToolCallPart)
        ),
        logprobs=ContinuationLogprobs.model_validate(reading) if reading else None,
    )


def _count(tokens: int | None) -> int | None:
    return tokens if isinstance(tokens, int) and 0 <= tokens <= _MOST_TOKENS else None
