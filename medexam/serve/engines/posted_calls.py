"""Calls of a user's own endpoint: by litellm where it has callbacks, else without it.

litellm would send the same by the same client. Then it makes five copies of the reply, prices and logs it: a guided
question takes 0.36 ms of processor time instead of 0.25, a free one 0.39 instead of 0.25 (`bench/client_capacity.py`,
64 prompts a request). So without callbacks only its reading of errors and of thinking is used.
"""

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

import httpx

from medexam.inputs import load_json
from medexam.serve.engines.litellm_calls import call_errors, call_litellm, get_litellm, load_litellm, reading_reply
from medexam.serve.network.connections import keep_replies

_UNSENT = ("allowed_openai_params", "extra_body")
"""Fields that tell litellm something, and no server."""
CALLBACK_LISTS = (
    "callbacks",
    "input_callback",
    "success_callback",
    "failure_callback",
    "_async_input_callback",
    "_async_success_callback",
    "_async_failure_callback",
)
"""litellm's lists of what is told of its calls."""
_UNPROCESSABLE = httpx.codes.UNPROCESSABLE_ENTITY
"""What litellm takes an error without a status for."""


async def post_completions(client: Any, model: str, body: Mapping[str, Any], *, timeout_s: float) -> dict[str, Any]:
    """Return the reply of a client's completions endpoint to `body`, with the errors of `call_litellm`."""
    return await _post(client, "/completions", "text-completion-openai", {"model": model, **body}, timeout_s)


async def post_chat(client: Any, model: str, fields: Mapping[str, Any], *, timeout_s: float) -> dict[str, Any]:
    """Return the reply of a client's chat endpoint to what `litellm.acompletion` would send for `fields`.

    `model` is the name that the server knows. What a message thinks stands in its `reasoning_content`. Raises the
    errors of `call_litellm`.
    """
    sent_fields = {name: value for name, value in fields.items() if name not in _UNSENT}
    if not sent_fields.get("tools"):
        sent_fields.pop("tool_choice", None)
    body = {"model": model, **sent_fields, **(fields.get("extra_body") or {})}
    reply = await _post(client, "/chat/completions", "openai", body, timeout_s)
    with reading_reply():
        for choice in reply.get("choices") or ():
            _split_thinking(choice.get("message"))
    return reply


def has_callbacks() -> bool:
    """Return whether the process has registered callbacks with litellm, which hear of litellm's own calls alone."""
    litellm = sys.modules.get("litellm")
    # litellm's own cache adds its name to the lists.
    return any(part != "cache" for name in CALLBACK_LISTS for part in getattr(litellm, name, ()))


def renames_fields(model: str) -> bool:
    """Return whether litellm asks a model of this name in other fields than it is told, wherever the model runs."""
    litellm = get_litellm()
    name_lists = (litellm.open_ai_chat_completion_models, litellm.open_ai_text_completion_models)
    return (
        any(model.removeprefix("responses/") in names for names in name_lists)
        or bool(litellm.openaiOSeriesConfig.is_model_o_series_model(model=model))
        or bool(litellm.OpenAIGPT5Config.is_model_gpt_5_model(model=model))
    )


async def _post(client: Any, path: str, provider: str, body: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
    """Return a reply's JSON object; `provider` is what litellm calls such endpoints."""
    model = body["model"]
    async with call_errors(model, timeout_s), asyncio.timeout(timeout_s):
        if has_callbacks() and "prompt" in body:
            reply = await _complete_by_litellm(client, f"{provider}/{model}", body, timeout_s)
        else:
            try:
                reply = await client.post_json(path, body)
            except Exception as error:
                raise _litellm_error(error, model, provider, await load_litellm()) from error
        with reading_reply():
            # Known fields alone are read and checked, so that it does not matter how deep the others lie.
            is_stream = "event-stream" in reply.headers.get("content-type", "")
            document = join_events(reply.text) if is_stream else load_json(reply.content)
            if not isinstance(document, dict):
                raise TypeError("it is not a JSON object")
        if (fault := _find_fault(document)) is not None:
            raise _litellm_error(fault, model, provider, await load_litellm())
        # DSPy's reader takes an empty error for one.
        document.pop("error", None)
        return document


async def _complete_by_litellm(client: Any, model: str, body: Mapping[str, Any], timeout_s: float) -> httpx.Response:
    """Have litellm send a request for completions; its own copy of the reply names another end than the server did."""
    fields = {name: value for name, value in body.items() if name not in ("model", "prompt")}
    connection = {"client": client, "api_base": str(client.base_url), "api_key": client.api_key}
    with keep_replies() as replies:
        await call_litellm(
            "atext_completion", model, prompt=body["prompt"], extra_body=fields, **connection, timeout_s=timeout_s
        )
    return replies[-1]


def join_events(text: str) -> dict[str, Any]:
    """Join the events of a streamed chat reply to the reply that they are parts of."""
    events = (line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:"))
    chunks = [chunk for event in events if event != "[DONE]" and isinstance(chunk := load_json(event.encode()), dict)]
    whole: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        whole |= {name: value for name, value in chunk.items() if name != "choices" and value is not None}
        for part in chunk.get("choices") or ():
            choice = choices.setdefault(part.get("index") or 0, {"message": {"role": "assistant", "content": ""}})
            choice |= {name: value for name, value in part.items() if name != "delta" and value is not None}
            _add_delta(choice["message"], part.get("delta") or part.get("message") or {})
    return {**whole, "object": "chat.completion", "choices": [choices[index] for index in sorted(choices)]}


def _add_delta(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add what an event says to the message; a call of a tool comes in pieces under its index."""
    for name, value in delta.items():
        if name == "tool_calls":
            calls = message.setdefault("tool_calls", [])
            for piece in value or ():
                place = piece.get("index") or 0
                while len(calls) <= place:
                    calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
                calls[place]["id"] = piece.get("id") or calls[place]["id"]
                for field, text in (piece.get("function") or {}).items():
                    calls[place]["function"][field] += text or ""
        elif isinstance(value, str | list) and name != "role":
            message[name] = message[name] + value if message.get(name) else value


class _ReportedError(Exception):
    """An error that stands in a reply of status 200, as those of OpenRouter do."""

    def __init__(self, message: str, status_code: int) -> None:
        super().__init__(message)
        self.status_code = status_code


def _find_fault(document: Mapping[str, Any]) -> _ReportedError | None:
    """Return the error that a reply reports; None for an empty one, which some servers send with each reply."""
    fault = document.get("error")
    if not isinstance(fault, dict):
        return _ReportedError(str(fault), _UNPROCESSABLE) if fault else None
    message, code = fault.get("message"), fault.get("code")
    if not message and code is None:
        return None
    if code is None:
        return _ReportedError(str(message), _UNPROCESSABLE)
    status = code if isinstance(code, int) and httpx.codes.is_error(code) else httpx.codes.INTERNAL_SERVER_ERROR
    details = f" {fault['metadata']}" if fault.get("metadata") else ""
    return _ReportedError(f"{message or 'an error without words'}{details}", status)


def _split_thinking(message: Any) -> None:
    """Move the block of thinking that opens a message's text to where litellm puts it, unless it is apart already."""
    if not isinstance(message, dict) or "reasoning_content" in message or "reasoning" in message:
        return
    text = message.get("content")
    if isinstance(text, str) and text.startswith("<"):
        from litellm.litellm_core_utils.prompt_templates.common_utils import parse_content_for_reasoning

        message["reasoning_content"], message["content"] = parse_content_for_reasoning(text)


def _litellm_error(error: Exception, model: str, provider: str, litellm: Any) -> Exception:
    """Return what litellm makes of an error of the openai client's."""
    from litellm.llms.openai.common_utils import OpenAIError

    status, response = getattr(error, "status_code", 500), getattr(error, "response", None)
    read = OpenAIError(status, getattr(error, "text", str(error)), headers=getattr(response, "headers", None))
    read.__cause__ = error
    try:
        fault: Exception = litellm.exception_type(model=model, original_exception=read, custom_llm_provider=provider)
    except Exception as raised:
        fault = raised
    return fault
