"""Dialogues and generations as DSPy's requests and responses, and back.

Adapters and engines of ours know the first two alone. DSPy, and engines and models of one's own, know the others.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from dspy.lm15 import (
    FinishReason,
    Message,
    RefusalPart,
    Request,
    Response,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    Usage,
    request_from_openai_chat,
)

from medexam.dspy_internals import chat_request_fields
from medexam.errors import InvalidRequestError
from medexam.model_calls import (
    SAMPLED,
    ChatMessage,
    ContinuationLogprobs,
    Dialogue,
    Ending,
    Generation,
    Sampling,
    ToolCall,
    join_thinking,
)

CHOICE = "choice"
"""Key of `Request.config.extensions` that holds the strings the reply is chosen from."""
CONTINUATIONS = "continuations"
"""Key of `Request.config.extensions` that holds a `ContinuationRequest`, and of `Response.provider_data` that holds
the `ContinuationLogprobs` which answers it."""
PLAIN = "plain"
"""Key of `Request.config.extensions` that is true where the reply continues plain text."""

MOST_TOKENS = 10**9
"""More than any context holds: a larger count of tokens is a server's fault, and counts as not reported."""
_ROLES = {"developer": "system"}
_REASONS: Mapping[Ending, FinishReason] = {
    Ending.COMPLETE: "stop",
    Ending.CUT: "length",
    Ending.REFUSED: "content_filter",
    Ending.FILTERED: "content_filter",
    Ending.ABORTED: "error",
}


def build_request(model: str, dialogue: Dialogue) -> Request:
    """Build DSPy's request of a dialogue; what engines alone know stands in its extensions."""
    turns = dialogue.turns or [dict[str, Any](turn) for turn in dialogue.turns_with_opening]
    if dialogue.pictures:
        shown = next(turn for turn in reversed(turns) if turn["role"] == "user")
        parts = [{"type": "image_url", "image_url": {"url": url}} for url in dialogue.pictures]
        shown["content"] = [*parts, {"type": "text", "text": shown["content"]}]
    # A request takes no empty text for the system's turn, but a part without words.
    is_silent = turns[0] == {"role": "system", "content": ""}
    body = {"model": model, "messages": turns[is_silent:], **dialogue.sampling.fields(), **dialogue.fields}
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


def read_dialogue(request: Request, turns: list[dict[str, Any]] | None = None) -> Dialogue:
    """Read what a request asks; raises `InvalidRequestError` if it leaves nothing to answer.

    `turns` are its messages in OpenAI's chat dialect as DSPy was given them: its own writer of that dialect takes no
    files.
    """
    chat = chat_request_fields(replace(request, system=None, messages=(Message.user("."),)) if turns else request)
    turns = turns or chat["messages"]
    sampling = Sampling.of({name: getattr(request.config, name) for name in SAMPLED})
    fields = {name: chat[name] for name in chat.keys() - SAMPLED - {"messages", "max_completion_tokens"}}
    words = [*map(_words, turns)]
    if not any(turn["role"] in ("user", "tool") for turn in words):
        raise InvalidRequestError("the request has no user turn to answer")
    if is_words(turns):
        return Dialogue.of(words, sampling, fields=fields)
    return Dialogue(words, "", sampling, fields=fields, turns=turns)


def is_words(turns: list[dict[str, Any]]) -> bool:
    """Return whether messages in OpenAI's chat dialect are texts alone."""
    return all(len(turn) == 2 and isinstance(turn.get("content"), str) and turn["role"] != "tool" for turn in turns)


def _words(turn: Mapping[str, Any]) -> ChatMessage:
    """Return a turn as a text; a tool's call is its name and its arguments as JSON, a line each."""
    content = turn.get("content") or ""
    words = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    functions = [call["function"] for call in turn.get("tool_calls") or ()]
    calls = [f"{function['name']} {json.dumps(json.loads(function['arguments']))}" for function in functions]
    return {"role": _ROLES.get(turn["role"], turn["role"]), "content": "\n".join(filter(None, [words, *calls]))}


def write_response(generation: Generation) -> Response:
    """Write a reply as DSPy's response."""
    if isinstance(generation.source, Response):
        usage = replace(generation.source.usage, reasoning_tokens=generation.thinking_tokens)
        return replace(generation.source, model=generation.model, usage=usage)
    thinking = [ThinkingPart(generation.thinking)] if generation.thinking else []
    calls = [ToolCallPart(call.id, call.name, call.args) for call in generation.tool_calls]
    refusal = [RefusalPart(generation.reply or "")] if generation.refused else []
    words = [TextPart(generation.words)] if generation.words or not (calls or refusal) else []
    return Response(
        id=None,
        model=generation.model,
        message=Message.assistant(cast("Any", [*thinking, *words, *calls, *refusal])),
        finish_reason=_REASONS[generation.ending],
        usage=Usage(
            input_tokens=generation.prompt_tokens,
            output_tokens=generation.completion_tokens,
            reasoning_tokens=generation.thinking_tokens,
        ),
    )


def read_generation(response: Response) -> Generation:
    """Read the reply of a response."""
    texts = {
        kind: "".join(part.text for part in response.message.parts if isinstance(part, kind))
        for kind in (TextPart, ThinkingPart, RefusalPart)
    }
    text, thinking, refusal = texts.values()
    reading = (response.provider_data or {}).get(CONTINUATIONS)
    return Generation(
        reply=join_thinking(thinking, text or refusal) if thinking else text or refusal,
        finish_reason=response.finish_reason,
        model=response.model,
        prompt_tokens=_count(response.usage.input_tokens),
        completion_tokens=_count(response.usage.output_tokens),
        thinking_tokens=_count(response.usage.reasoning_tokens),
        refused=bool(refusal),
        text=text if thinking or refusal else None,
        thinking=thinking or None,
        tool_calls=tuple(
            ToolCall(id=part.id, name=part.name, args=part.input)
            for part in response.message.parts
            if isinstance(part, ToolCallPart)
        ),
        reading=ContinuationLogprobs.model_validate(reading) if reading else None,
        source=response,
    )


def _count(tokens: int | None) -> int | None:
    """Return the number of tokens that a server reports; None where it reports none, or one that cannot be."""
    return tokens if isinstance(tokens, int) and 0 <= tokens <= MOST_TOKENS else None
