"""litellm, which carries every request: imported late, kept quiet, asked once, and its errors turned into ours.

litellm calls the user's callbacks and sends the user's headers. A reply of a user's own server is read as it came over
the wire, since litellm rewrites parts of it; of a provider's reply only litellm's copy is there. This module knows no
engine.
"""

import asyncio
import json
import logging
import os
import warnings
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import cache, lru_cache, partial
from types import SimpleNamespace
from typing import Any

import httpx
from dspy.lm15 import response_from_openai_chat

from medexam.dspy_internals import read_litellm_error
from medexam.dspy_requests import read_generation
from medexam.errors import AuthError, CallError, CallTimeoutError, ProviderError, ServerError, TransportError
from medexam.files import load_json
from medexam.model_calls import Ending, Generation, read_ending
from medexam.process import background_loop
from medexam.serve.discovery.requests import is_count, join_texts, read_thoughts
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.network.http_calls import (
    MISFORMED,
    causes,
    find_words,
    http_error,
    raise_reported,
    read_pause,
    reading_reply,
    refine,
    reply_object,
)
from medexam.serve.network.retry import note_discarded
from medexam.text import hide_secrets, writable

_LONGEST_REASON = 60
_LONGEST_MESSAGE = 2000
"""Characters of an error that are kept."""
LIST_COST = "list_cost_usd"
"""Key of a reply's object: its cost by litellm's list, where some of its prompt may have been cached."""
_ONE_ATTEMPT: Mapping[str, Any] = {"num_retries": 0, "max_retries": 0, "cache": {"no-cache": True, "no-store": True}}
"""Fields of every call: litellm neither retries nor caches."""
_UNTOLD = dict.fromkeys(("token_ids", "prompt_token_ids", "logprobs"))
"""Fields of a choice that litellm and its callbacks do not get, since they are large."""
_OUTCOMES: ContextVar[list[Any] | None] = ContextVar("outcomes", default=None)
"""What came of the requests of a call; None outside of any."""


PASS_ON: ContextVar[Callable[[Any], Awaitable[None]] | None] = ContextVar("pass_on", default=None)
"""Takes each chunk of the replies, which are asked for as streams then; None: nobody does."""


async def keep_reply(outcome: Any) -> None:
    """Keep what came over the wire, for the call around; a hook of clients too."""
    if (outcomes := _OUTCOMES.get()) is not None:
        outcomes.append(outcome)


class ModelClient:
    """What litellm asks a user's own server by: it stands for an `AsyncOpenAI`, and reads each reply once."""

    def __init__(self, endpoint: Endpoint, http: httpx.AsyncClient) -> None:
        """Send over these connections, on the network loop."""
        self.api_key, self._base_url, self._http = endpoint.key, httpx.URL(endpoint.base), http
        self.completions = self._open_route(f"{endpoint.base}/completions")
        self.chat = SimpleNamespace(completions=self._open_route(f"{endpoint.base}/chat/completions"))
        background_loop().close_at_exit(self)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def _open_route(self, address: str) -> Any:
        return SimpleNamespace(with_raw_response=SimpleNamespace(create=partial(self._send, address)))

    async def _send(self, address: str, *, extra_body: Any = None, extra_headers: Any = None, **body: Any) -> Any:
        """Send a request as OpenAI's client does; what comes of it is kept for the call around."""
        import openai

        outcome: dict[str, Any] | CallError
        limit = body.pop("timeout", self._http.timeout)
        try:
            if body.get("stream"):
                client = openai.AsyncOpenAI(
                    base_url=self._base_url, api_key=self.api_key, max_retries=0, http_client=self._http
                )
                create = client.chat.completions.with_raw_response.create
                return await create(extra_body=extra_body, extra_headers=extra_headers, timeout=limit, **body)
            whole = {**body, **(extra_body or {})}
            text = json.dumps(whole, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
            own = {"Content-Type": "application/json", "User-Agent": f"AsyncOpenAI/Python {openai.__version__}"}
            headers = {**own, **(extra_headers or {})}
            outcome = await reply_object(self._http.post(address, content=text, headers=headers, timeout=limit))
        except openai.APIStatusError as error:
            outcome = http_error(error.response)
        except CallError as fault:
            outcome = fault
        await keep_reply(outcome)
        if isinstance(outcome, CallError):
            # litellm's callbacks are told a fault by this name of its status.
            vars(outcome)["status_code"] = outcome.status or 500
            raise outcome
        return _Parsed(outcome)


class _Parsed:
    """A reply in the forms in which litellm reads it, without tokens and log-probabilities."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def parse(self) -> "_Parsed":
        return self

    def model_dump(self) -> dict[str, Any]:
        choices = self._document.get("choices") or ()
        return {**self._document, "choices": [{**choice, **_UNTOLD} for choice in choices]}


@cache
def get_litellm() -> Any:
    """Import litellm without its downloads of lists and without its advertisements."""
    os.environ.setdefault("LITELLM_LOG", "ERROR")
    # With this switch on, litellm would leave out the clients that it is given, and follow redirects with its own.
    os.environ["EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER"] = "false"
    import litellm

    litellm.telemetry = False
    litellm.cache = None
    litellm.suppress_debug_info = True
    # Its errors are raised too.
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    # It makes its coroutine in a thread; a call whose time is over before that is done leaves it behind, to no harm.
    warnings.filterwarnings("ignore", r"coroutine '.*acompletion' was never awaited", RuntimeWarning)
    # It prints what a server writes into fields of the wrong type.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    return litellm


async def call_litellm(function: str, model: str, *, timeout_s: float, own: bool, **fields: Any) -> dict[str, Any]:
    """Call `litellm.<function>` once and return the reply's object; raises `CallError`s.

    They come after `timeout_s` seconds at the latest. `own`: the client among `fields` is one of ours, whose replies
    are read as they came.
    """
    raw: Any = None
    replies, chunks, streams = list[Any](), list[Any](), bool(fields.get("stream"))
    token = _OUTCOMES.set(replies)
    try:
        async with asyncio.timeout(timeout_s):
            # Importing takes more than a second, and this loop carries all calls.
            litellm = get_litellm() if get_litellm.cache_info().currsize else await asyncio.to_thread(get_litellm)
            # Of a call for completions litellm sends no headers by itself.
            headers = {"extra_headers": litellm.headers} if litellm.headers else {}
            call = {"model": model, **headers, **fields, **_ONE_ATTEMPT, "timeout": timeout_s}
            raw = await getattr(litellm, function)(**call)
            if streams:
                async for chunk in raw:
                    chunks.append(chunk)
                    if pass_on := PASS_ON.get():
                        await pass_on(chunk)
                raw = litellm.stream_chunk_builder(chunks)
    except Exception as error:
        if chunks and PASS_ON.get():
            # Asked again, it would be passed on twice.
            raise ProviderError(f"the stream broke off: {error}") from error
        # What came of our own connections counts, whatever litellm makes of it.
        outcome = replies[-1] if own and replies and not isinstance(error, TimeoutError) else None
        if isinstance(outcome, CallError):
            raise _shorten(outcome) from None
        if outcome is None:
            fault = _read_fault(error, model, timeout_s)
            # A server may quote the key. The cause is cut off then, because a traceback would print it.
            quoted = any(hide_secrets(str(link)) != str(link) for link in causes(error))
            raise fault from None if quoted or fault is error else error
    finally:
        _OUTCOMES.reset(token)
    if own and not streams:
        document: dict[str, Any] = replies[-1]
        return document
    # Fields of another type than the protocol's are read as they are, and judged there.
    document = raw.model_dump(warnings=False)
    details = (document.get("usage") or {}).get("prompt_tokens_details") or {}
    if details.get("cached_tokens") is not None:
        # Cached tokens are cheaper, and litellm knows by how much, unless its list lacks the model.
        with suppress(Exception):
            document[LIST_COST] = get_litellm().completion_cost(raw, model=model)
    if replies and not own:
        # litellm's reason of an end may mean something else than the one that Anthropic gave.
        with suppress(*MISFORMED, RecursionError):
            reason, choice = load_json(replies[-1].content)["stop_reason"], document["choices"][0]
            if read_ending(reason) is not read_ending(choice["finish_reason"]):
                choice["provider_specific_fields"] = {"native_finish_reason": reason}
    return document


def _read_fault(error: Exception, model: str, timeout_s: float) -> Exception:
    """Return the `CallError` that one of litellm's is; any other means a reply that cannot be read."""
    if isinstance(error, CallError | Warning | ImportError):
        return error
    links = list(causes(error))
    if lacking := next((str(link) for link in links if find_words("no_credentials", str(link))), None):
        # litellm calls it a lost connection or a server's fault.
        return _shorten(AuthError(lacking))
    fault = _find_transport_fault(links, timeout_s) or read_litellm_error(error, model)
    if fault is error:
        fault = ServerError(f"the reply cannot be read: {error}")
    if not isinstance(fault, CallError):
        return fault
    if fault.retry_after is None:
        # litellm drops the provider's `Retry-After`.
        replies = (getattr(link, "response", None) for link in links)
        pauses = (read_pause(reply) for reply in replies if isinstance(reply, httpx.Response))
        fault.retry_after = next((pause for pause in pauses if pause is not None), None)
    return _shorten(fault)


def _find_transport_fault(links: list[BaseException], timeout_s: float) -> CallError | None:
    """Find a lost connection or a timeout, which litellm may report as the server's own HTTP 500."""
    import openai

    timeouts, losses = (openai.APITimeoutError, TimeoutError), (openai.APIConnectionError, httpx.ConnectTimeout)
    links = [link for link in links if isinstance(link, (*timeouts, *losses))]
    # Over aiohttp a connection that is lost is a `ConnectTimeout` too, behind what openai calls a timeout.
    link = next((link for link in links if isinstance(link, httpx.ConnectTimeout)), links[0] if links else None)
    if isinstance(link, timeouts):
        return CallTimeoutError(f"no reply within {timeout_s:g} s")
    return None if link is None else TransportError(f"the connection failed: {link.__cause__ or link}")


def _shorten(fault: CallError) -> CallError:
    """Return what a fault's words say that it is, as long as a table can show, without a traceback of litellm's."""
    text = writable(fault.message.partition("Traceback (most recent call last)")[0].strip())
    fault.message = text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]} [...]"
    return refine(fault)


def read_chat(reply: dict[str, Any], model: str) -> Generation:
    """Read a chat reply; raises `ServerError` unless it has one choice and can be read."""
    with reading_reply():
        body = writable(reply)
        choices = body.get("choices") or []
        if len(choices) != 1:
            # Without a choice, what else stands there says why.
            details = "" if choices else f": {body}"
            raise _shorten(ServerError(f"the reply holds {len(choices)} choices instead of 1{details}"))
        (choice,) = choices
        _tidy_message(choice)
        usage = read_usage(body.get("usage"), wrote=_has_words(choice["message"]))
        try:
            # litellm keeps fields of a choice that it does not know apart.
            raise_reported({**(choice.get("provider_specific_fields") or {}), **choice})
            reason = _finish_reason(choice)
        except CallError:
            note_discarded(usage.get("prompt_tokens"), usage.get("completion_tokens"))
            raise
        generation = read_generation(response_from_openai_chat({**body, "usage": usage}, model=model))
        return generation if reason is None else replace(generation, finish_reason=reason)


def _tidy_message(choice: Mapping[str, Any]) -> None:
    """Write a choice's message as its words and what was thought before them, which servers write in several ways."""
    message = choice.get("message")
    if not isinstance(message, dict):
        raise ServerError("the reply has no message")
    extras = message.get("provider_specific_fields") or {}
    thoughts: str | None = read_thoughts(message)
    if extras.get("refusal"):
        message.setdefault("refusal", extras["refusal"])
    content = message.get("content")
    if isinstance(content, list):
        # Parts, such as Magistral's.
        parts = [part if isinstance(part, Mapping) else {"text": part} for part in content]
        message["content"] = "".join(
            join_texts(part.get("text")) for part in parts if part.get("type") in (None, "text", "output_text")
        )
    elif (
        isinstance(content, str)
        and content.startswith("<")
        and message.keys().isdisjoint(("reasoning", "reasoning_content"))
    ):
        from litellm.litellm_core_utils.prompt_templates.common_utils import parse_content_for_reasoning

        thoughts, message["content"] = parse_content_for_reasoning(content)
    if thoughts:
        message["reasoning_content"] = thoughts


def _has_words(message: Mapping[str, Any]) -> bool:
    return any(message.get(field) for field in ("content", "reasoning_content", "refusal", "tool_calls"))


def _finish_reason(choice: Mapping[str, Any]) -> str | None:
    """Return why a choice ended, as the server wrote it, or the model's provider behind a gateway.

    The provider's word counts, unless no API documents it, the reply has words, and it names no fault. Raises
    `ServerError` for a reply that was broken off.
    """
    # Where litellm does not know a server's word, it writes one of its own and keeps the server's here.
    reason = (choice.get("provider_specific_fields") or {}).get("native_finish_reason") or choice.get("finish_reason")
    native = choice.get("native_finish_reason")
    if not isinstance(native, str) or native.lower() in ("", "null", "none"):
        return check_ending(reason)
    is_known = read_ending(native) is not Ending.ABORTED
    counts = is_known or find_words("broken_off", native) or not _has_words(choice["message"])
    return check_ending(native if counts else reason)


@lru_cache(maxsize=64)
def check_ending(reason: Any) -> str | None:
    """Return a finish reason that a reply can be read with; raises `ServerError` for any other."""
    if reason is not None and not isinstance(reason, str):
        raise TypeError(f"a finish reason of type {type(reason).__name__}")
    if read_ending(reason) is Ending.ABORTED:
        raise ServerError(f"the reply was interrupted: finish_reason {writable(str(reason))[:_LONGEST_REASON]!r}")
    return reason or None


def read_usage(usage: Any, *, wrote: bool) -> dict[str, Any]:
    """Return the counts in an OpenAI `usage` that can be true; empty if it tells nothing.

    What it does not say stays unknown and is never zero: servers leave it out, fill it with nulls or zeros, or give a
    total alone. A prompt has at least one token, and so has a reply with words, which `wrote` says.
    """
    if not isinstance(usage, Mapping):
        return {}
    nested = {key: read_usage(value, wrote=False) for key, value in usage.items() if isinstance(value, Mapping)}
    counts = nested | {key: value for key, value in usage.items() if is_count(value)}
    prompt, completion = counts.get("prompt_tokens") or None, counts.get("completion_tokens") or None
    total = counts.get("total_tokens") or 0
    if prompt is None and completion is not None and total > completion:
        prompt = total - completion
    elif completion is None and prompt is not None and total > prompt:
        completion = total - prompt
    elif completion is None and prompt is not None and not wrote and "completion_tokens" in counts:
        completion = 0
    totals = {"prompt_tokens": prompt, "completion_tokens": completion}
    details = {key: value for key, value in counts.items() if key not in (*totals, "total_tokens")}
    return {**details, **{key: value for key, value in totals.items() if value is not None}}
