"""litellm, imported late, kept quiet, and with its errors turned into ours.

litellm and the clients below it try once; `serve/network/retry.py` retries. This module knows litellm and its errors,
and no engine.
"""

import asyncio
import logging
import os
import re
import warnings
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import httpx
from dspy.lm15 import response_from_openai_chat

from medexam.dspy_internals import read_litellm_error
from medexam.dspy_requests import read_generation
from medexam.errors import AuthError, CallError, CallTimeoutError, InvalidRequestError, ServerError, TransportError
from medexam.model_calls import Ending, Generation, read_ending
from medexam.serve.engines.token_usage import read_usage
from medexam.serve.network.connections import causes, redirect_fault
from medexam.serve.network.fault_words import read_pause, refine
from medexam.serve.network.http_calls import MISFORMED, retry_after_s
from medexam.serve.waits import note_discarded
from medexam.text import hide_secrets, writable

_log = logging.getLogger(__name__)
_LONGEST_REASON = 60
_FAULT_REASON = re.compile(r"error|abort|cancel|interrupt|overload|timeout|malformed|unavailable", re.IGNORECASE)
"""What reasons say that end a reply in the middle."""
LONGEST_MESSAGE = 2000
"""Characters of an error that are kept."""
_NO_CREDENTIALS = re.compile(
    r"credentials (were not found|could not be)|(missing|unable to locate|no) credentials"
    r"|must provide one of|cannot configure default credentials",
    re.IGNORECASE,
)
"""What the clients of Azure, Google's cloud and AWS say where the environment lacks a key or an address."""
_ONE_ATTEMPT: dict[str, Any] = {
    "num_retries": 0,
    "max_retries": 0,
    "cache": {"no-cache": True, "no-store": True},
}
"""Fields of every litellm call: it neither retries nor caches."""


@cache
def get_litellm() -> Any:
    """Import litellm without its downloads of lists and without its advertisements."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
    os.environ.setdefault("LITELLM_LOG", "ERROR")
    # With this switch on, litellm would leave out the clients that it is given, and follow redirects with its own.
    os.environ["EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER"] = "false"
    import litellm

    litellm.telemetry = False
    litellm.cache = None
    litellm.suppress_debug_info = True
    logging.getLogger("LiteLLM").addFilter(_is_shown)
    # It makes its coroutine in a thread; a call whose time is over before that is done leaves it behind, to no harm.
    warnings.filterwarnings("ignore", r"coroutine '.*acompletion' was never awaited", RuntimeWarning)
    # It prints what a server writes into fields of the wrong type.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    return litellm


def _is_shown(record: logging.LogRecord) -> bool:
    """Warn in one line of a callback of the user's that fails; hide the rest, which are errors that are raised too."""
    text = record.getMessage()
    if "LoggingError" in text:
        lines = text.strip().splitlines()
        _warn_of_callback(str(record.exc_info[1]) if record.exc_info else lines[-1])
    return False


@cache
def _warn_of_callback(fault: str) -> None:
    _log.warning("medexam: warning: a callback of litellm's failed: %s", _one_line(hide_secrets(fault)))


async def call_litellm(function: str, model: str, *, timeout_s: float, **fields: Any) -> Any:
    """Call `litellm.<function>` once; raises `CallError`s, after `timeout_s` seconds at the latest."""
    async with call_errors(model, timeout_s), asyncio.timeout(timeout_s):
        litellm = await load_litellm()
        return await getattr(litellm, function)(model=model, **fields, **_ONE_ATTEMPT, timeout=timeout_s)


async def load_litellm() -> Any:
    """Import litellm in a thread if it is not imported yet: that takes more than a second, and the loop carries all
    calls.
    """
    return get_litellm() if get_litellm.cache_info().currsize else await asyncio.to_thread(get_litellm)


@asynccontextmanager
async def call_errors(model: str, timeout_s: float) -> AsyncIterator[None]:
    """Turn litellm's errors into `CallError`s; any other is one of a reply that cannot be read.

    None of them contains a key.
    """
    try:
        yield
    except Exception as error:
        replies = _replies(error)
        fault = (
            _missing_credentials(error)
            or _transport_fault(error, timeout_s)
            or _redirect(replies)
            or read_litellm_error(error, model)
        )
        if fault is error and isinstance(error, CallError | Warning | ImportError):
            raise
        if fault is error:
            fault = ServerError(f"the reply cannot be read: {error}")
        if isinstance(fault, CallError):
            fault.message = _one_line(fault.message)
            fault = refine(fault)
            if fault.retry_after is None:
                # litellm drops the server's `Retry-After`.
                pauses = (retry_after_s(reply.headers.get("retry-after")) for reply in replies)
                fault.retry_after = next((pause for pause in pauses if pause is not None), read_pause(fault.message))
        # A server may quote the key in its reply. The cause is cut off then, because a traceback would print it.
        quoted = any(hide_secrets(str(link)) != str(link) for link in causes(error))
        raise fault from None if quoted else error


@contextmanager
def reading_reply() -> Iterator[None]:
    """Raise `ServerError` where a field of a reply has no value that it can have, such as an infinite number."""
    try:
        yield
    except MISFORMED as error:
        raise ServerError(f"the reply cannot be read: {error}") from error


def _one_line(message: str) -> str:
    """Shorten the message to a length that a table can show, without a traceback of litellm's."""
    text = writable(message.partition("Traceback (most recent call last)")[0].strip())
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]} [...]"


def read_replies(raw: Any, model: str, samples: int = 1) -> list[Generation]:
    """Read each choice of a chat reply of litellm's; raises `ServerError` unless all `samples` are there.

    What the server counts, it counts for all of them: the first one carries it.
    """
    # Fields of another type than the protocol's are read as they are, and judged there.
    return read_chat(raw.model_dump(warnings=False), model, samples)


def read_chat(reply: dict[str, Any], model: str, samples: int = 1) -> list[Generation]:
    """Read a reply's body as it came over the wire, as `read_replies` does."""
    body = writable(reply)
    choices = body.get("choices") or ()
    if len(choices) != samples:
        raise ServerError(f"the reply holds {len(choices)} choices instead of {samples}")
    for choice in choices:
        message = choice.get("message")
        if not isinstance(message, dict):
            raise ServerError("the reply has no message")
        extras = message.get("provider_specific_fields") or {}
        thoughts = message.get("reasoning_content") or message.get("reasoning") or extras.get("reasoning")
        if thoughts:
            message["reasoning_content"] = thoughts
        if extras.get("refusal"):
            message.setdefault("refusal", extras["refusal"])
        if isinstance(message.get("content"), list):
            _join_parts(message)
    usage = read_usage(body.get("usage"), wrote=any(_has_words(choice["message"]) for choice in choices))
    try:
        reasons = [_finish_reason(choice) for choice in choices]
    except ServerError:
        note_discarded(usage.get("prompt_tokens"), usage.get("completion_tokens"))
        raise
    parts = ({**body, "choices": [choice], "usage": None if place else usage} for place, choice in enumerate(choices))
    first, *others = (read_generation(response_from_openai_chat(part, model=model)) for part in parts)
    generations = [first, *(replace(other, prompt_tokens=0) for other in others)]
    return [
        generation if reason is None else replace(generation, finish_reason=reason)
        for generation, reason in zip(generations, reasons, strict=True)
    ]


def _has_words(message: Mapping[str, Any]) -> bool:
    """Return whether a message says, thinks or refuses something."""
    return any(message.get(field) for field in ("content", "reasoning_content", "refusal", "tool_calls"))


def _join_parts(message: dict[str, Any]) -> None:
    """Write a message of parts, such as Magistral's, as its words and what was thought before them."""
    parts = [part for part in message["content"] if isinstance(part, Mapping)]
    thoughts = "".join(_part_text(part.get("thinking")) for part in parts)
    message["content"] = "".join(_part_text(part.get("text")) for part in parts)
    if thoughts and not message.get("reasoning_content"):
        message["reasoning_content"] = thoughts


def _part_text(part: Any) -> str:
    if isinstance(part, list):
        return "".join(_part_text(item.get("text")) for item in part if isinstance(item, Mapping))
    return part if isinstance(part, str) else ""


def _finish_reason(choice: Mapping[str, Any]) -> str | None:
    """Return why a choice ended, as the server wrote it, or the model's provider behind a gateway.

    The provider's word counts, unless no API documents it, the reply has words, and it names no fault. Raises
    `ServerError` for a reply that was broken off.
    """
    # Where litellm does not know a server's word, it writes one of its own and keeps the server's here.
    reason = (choice.get("provider_specific_fields") or {}).get("native_finish_reason") or choice.get("finish_reason")
    native = choice.get("native_finish_reason")
    if not isinstance(native, str) or not native:
        return check_ending(reason)
    unknown = read_ending(native) is Ending.ABORTED
    if unknown and _FAULT_REASON.search(native) is None and _has_words(choice["message"]):
        return check_ending(reason)
    return check_ending(native)


def check_ending(reason: Any) -> str | None:
    """Return a finish reason that a reply can be read with; raises `ServerError` for any other."""
    if reason is not None and not isinstance(reason, str):
        raise TypeError(f"a finish reason of type {type(reason).__name__}")
    if read_ending(reason) is Ending.ABORTED:
        raise ServerError(f"the reply was interrupted: finish_reason {writable(str(reason))[:_LONGEST_REASON]!r}")
    return reason or None


def _missing_credentials(error: Exception) -> CallError | None:
    """Recognise a cloud's client without credentials, which litellm calls a lost connection or a server's fault."""
    words = (str(link) for link in causes(error))
    return next((AuthError(message) for message in words if _NO_CREDENTIALS.search(message)), None)


def _transport_fault(error: Exception, timeout_s: float) -> CallError | None:
    """Recognise a lost connection or a timeout, which litellm may report as the server's own HTTP 500."""
    import openai

    timeouts, losses = (openai.APITimeoutError, TimeoutError), (openai.APIConnectionError, httpx.ConnectTimeout)
    links = [link for link in causes(error) if isinstance(link, (*timeouts, *losses))]
    # Over aiohttp a connection that is lost is a `ConnectTimeout` too, behind what openai calls a timeout.
    link = next((link for link in links if isinstance(link, httpx.ConnectTimeout)), links[0] if links else None)
    if isinstance(link, timeouts):
        return CallTimeoutError(f"no reply within {timeout_s:g} s")
    return None if link is None else TransportError(f"the connection failed: {link.__cause__ or link}")


def _redirect(replies: list[httpx.Response]) -> CallError | None:
    """Recognise a redirect, which litellm calls an error of the provider's."""
    redirects = ((redirect_fault(reply), reply.status_code) for reply in replies)
    return next((InvalidRequestError(fault, status=status) for fault, status in redirects if fault is not None), None)


def _replies(error: Exception) -> list[httpx.Response]:
    """Collect the HTTP replies of the error and its causes."""
    import openai

    # litellm's own errors are openai's too, with a response that it made up, or with none.
    statuses = [link for link in causes(error) if isinstance(link, openai.APIStatusError)]
    return [link.response for link in statuses if hasattr(link, "response")]
