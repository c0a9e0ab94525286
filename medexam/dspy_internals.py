"""Where DSPy is met: its errors, and what it does not document. Another minor version may break this module alone.

`tests/test_dspy_internals.py` says which part is gone. All other modules use what `dspy`, `dspy.lm15`,
`dspy.teleprompt` and `dspy.utils` offer.
"""

import asyncio
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, wraps
from types import FunctionType
from typing import Any, Self
from urllib.request import getproxies

import dspy
from dspy import lm15
from dspy.clients import costs
from dspy.clients.errors import error_boundary
from dspy.dsp.utils.settings import main_thread_config, thread_local_overrides
from dspy.lm15 import LMRouter, Request
from dspy.utils.callback import with_callbacks
from dspy.utils.exceptions import is_retryable_lm_error

from medexam.errors import (
    AuthError,
    BillingError,
    CallError,
    CallTimeoutError,
    ConfigurationError,
    ContextLengthError,
    InvalidRequestError,
    ProviderError,
    RateLimitError,
    ServerError,
    TransportError,
    UnsupportedFeatureError,
    UnsupportedModelError,
)

_GUIDANCE = "\n\n  To fix:"
"""Opens what DSPy adds to some messages; it adds it again where its error is made."""
_KINDS: dict[type[CallError], type[lm15.LM15Error]] = {
    ContextLengthError: lm15.ContextLengthError,
    UnsupportedModelError: lm15.UnsupportedModelError,
    InvalidRequestError: lm15.InvalidRequestError,
    AuthError: lm15.AuthError,
    BillingError: lm15.BillingError,
    RateLimitError: lm15.RateLimitError,
    CallTimeoutError: lm15.TimeoutError,
    ServerError: lm15.ServerError,
    ProviderError: lm15.ProviderError,
    UnsupportedFeatureError: lm15.UnsupportedFeatureError,
    ConfigurationError: lm15.ConfigurationError,
    TransportError: lm15.TransportError,
    CallError: lm15.LM15Error,
}
"""Each kind stands before the wider one that it is a kind of."""
CALL_ERRORS = (CallError, lm15.LM15Error)
"""What a call of an engine breaks with: one of the user's own may raise DSPy's errors."""
_FIELDS = ("status", "retry_after", "provider", "provider_code", "request_id")


def current_settings() -> dict[str, Any]:
    """Return DSPy's settings of this context.

    `dspy.settings` looks both parts up for each of its attributes, which takes five times as long.
    """
    return {**main_thread_config, **thread_local_overrides.get()}


@contextmanager
def prices_looked_up_once() -> Iterator[None]:
    """Look each model's price up once in the block: DSPy searches thousands of models for each call."""
    own = costs.model_info

    @lru_cache
    def model_info(provider: str, model: str, *, namespaces: tuple[str, ...] | None = None) -> Any:
        return own(provider, model, namespaces=namespaces)

    costs.model_info = model_info
    try:
        yield
    finally:
        costs.model_info = own


def to_dspy_error(error: CallError) -> lm15.LM15Error:
    """Make DSPy's error of the same meaning and words."""
    kind = next(theirs for ours, theirs in _KINDS.items() if isinstance(error, ours))
    feature = {"feature": error.feature} if issubclass(kind, lm15.CapabilityError) else {}
    return kind(error.message, **{name: getattr(error, name) for name in _FIELDS}, **feature)


def from_dspy_error(error: lm15.LM15Error) -> CallError:
    """Make the error of a call that one of DSPy's is."""
    kind = next(ours for ours, theirs in _KINDS.items() if isinstance(error, theirs))
    message = error.message.partition(_GUIDANCE)[0]
    return kind(message, **{name: getattr(error, name) for name in _FIELDS}, feature=getattr(error, "feature", None))


@contextmanager
def dspy_faults() -> Iterator[None]:
    """Raise what a call breaks with as DSPy's error."""
    try:
        yield
    except CallError as error:
        raise to_dspy_error(error) from error


@contextmanager
def dspy_errors(model: str) -> Iterator[None]:
    """Raise what a call breaks with, and any other error, as `dspy.LM` would."""
    with error_boundary(model, unexpected=True):
        try:
            yield
        except CallError as error:
            raise to_dspy_error(error) from error


def chat_request_fields(request: Request) -> dict[str, Any]:
    """Return a request's fields as DSPy writes them for OpenAI's chat dialect, `messages` among them."""
    # Imported here: a run of log-probabilities needs no chat.
    from dspy.clients.lm15_boundary import request_kwargs

    fields: dict[str, Any] = request_kwargs(request, "chat")
    return fields


def chat_output(response: lm15.Response) -> Any:
    """Return what a call of a chat model gives for one reply: its text, or its parts if it has more."""
    # Imported here: most replies are texts.
    from dspy.clients.call_result import CallResult

    (output,) = CallResult.native(response, model_type="chat", logprobs=False).outputs
    return output


def read_litellm_error(error: Exception, model: str) -> Exception:
    """Return the `CallError` that one of litellm's is; the error itself if it is none of litellm's."""
    # Imported here: it imports litellm, which takes seconds.
    from dspy.clients.engines.litellm_errors import to_lm15_error

    fault: Exception = to_lm15_error(error, model=model)
    return from_dspy_error(fault) if isinstance(fault, lm15.LM15Error) else fault


async def _awaited(self: Any) -> None:
    """Stand for any method of DSPy's that callbacks hear of and that is awaited."""


def _called(self: Any) -> None:
    """Stand for any other such method."""


_CALLS: Mapping[str, Any] = {"acall": with_callbacks(_awaited), "__call__": with_callbacks(_called)}
_OWN = frozenset({*_CALLS, "forward", "aforward", "update_history"})
"""Methods of a `dspy.LM` that may be somebody's own."""
_OK = 200
_SLOW_S = 0.02


_CHECK = "medexam_model_check"
_UNCHECKED: dict[Any, Any] = {}
"""Method that checks the model before it is asked -> DSPy's own."""


def model_check(check: Callable[[Any], None] | None) -> dict[str, Any]:
    """Return the setting of `dspy.context` under which `check` is called with each model that is about to be asked.

    It may raise; None ends the checks of a context around. A callback of DSPy's would hear of modules and adapters
    too, for half of a client's time.
    """
    if check is not None and not _UNCHECKED:
        # Libraries that trace calls may have given `dspy.LM` methods of its own.
        for kind, name in itertools.product((dspy.BaseLM, dspy.LM), _CALLS):
            if (own := vars(kind).get(name)) is not None:
                checked = (_awaiting if name == "acall" else _calling)(own)
                _UNCHECKED[checked] = own
                setattr(kind, name, checked)
    return {_CHECK: check}


def check_model(lm: Any) -> None:
    """Raise what the check of `model_check` raises for a model that is about to be asked."""
    if (check := thread_local_overrides.get().get(_CHECK)) is not None:
        check(lm)


def _calling(own: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(own)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        check_model(self)
        return own(self, *arguments, **options)

    return call


def _awaiting(own: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(own)
    async def call(self: Any, *arguments: Any, **options: Any) -> Any:
        check_model(self)
        return await own(self, *arguments, **options)

    return call


def is_plain_lm(lm: Any) -> bool:
    """Return whether a model is a `dspy.LM` and no more, unchecked, so that it is known what a call of it does."""
    is_checked = thread_local_overrides.get().get(_CHECK) is not None
    if type(lm) is not dspy.LM or is_checked or lm.callbacks or not _OWN.isdisjoint(vars(lm)):
        return False
    # Libraries that trace calls replace the methods of the class.
    methods = {name: _UNCHECKED.get(getattr(dspy.LM, name), getattr(dspy.LM, name)) for name in _CALLS}
    return all(
        type(method) is FunctionType and method.__code__ is _CALLS[name].__code__ for name, method in methods.items()
    )


class DirectCalls:
    """Calls of plain `dspy.LM`s without what DSPy does anew for each: it changes threads four times, finds the provider
    and looks through the environment for a proxy.

    What is sent, the retries, the cache, the usage and the history are DSPy's. All but the messages of a request is
    written once for equal settings. `is_plain_lm` must hold, and no callback and no stream may listen.
    """

    def __init__(self) -> None:
        self._routes: dict[Any, _Route | None] = {}
        self._cache_is_slow = False
        """Whether a look into DSPy's cache took so long that the other calls should not wait for the next one."""

    async def ask(self, lm: dspy.LM, messages: list[dict[str, Any]], options: Mapping[str, Any]) -> list[Any] | None:
        """Return what `lm.acall(messages=messages, **options)` returns; None where that has to be called."""
        # Imported here and below: a run with an engine of ours makes no such call.
        from dspy.clients.execution import _cached, _store, finalize

        loop = asyncio.get_running_loop()
        match = self._find(lm, messages, options, loop)
        if match is None:
            return None
        call, route = match
        result = await self._use_cache(_cached, lm, call, True) if call.cache else None
        if result is None:
            result = await route.ask(lm, call)
            if call.cache:
                await self._use_cache(_store, lm, call, result, True)
        outputs: list[Any] = finalize(lm, call, result)
        return outputs

    def ask_blocking(self, lm: dspy.LM, messages: list[dict[str, Any]], options: Mapping[str, Any]) -> list[Any] | None:
        """Return what `lm(messages=messages, **options)` returns; None where that has to be called."""
        from dspy.clients.execution import _cached, _store, finalize

        match = self._find(lm, messages, options, None)
        if match is None:
            return None
        call, route = match
        result = _cached(lm, call, False) if call.cache else None
        if result is None:
            result = route.ask_blocking(lm, call)
            if call.cache:
                _store(lm, call, result, False)
        outputs: list[Any] = finalize(lm, call, result)
        return outputs

    def _find(
        self, lm: dspy.LM, messages: list[dict[str, Any]], options: Mapping[str, Any], loop: Any
    ) -> "tuple[Any, _Route] | None":
        """Return DSPy's call and its route; None where DSPy sends more than the messages.

        `loop` is where the call is made; None: in a thread that waits for it.
        """
        from dspy.clients.execution import prepare

        call = prepare(lm, None, messages, options, asynchronous=loop is not None)
        if not call.managed or call.n != 1 or not all(map(_is_text, messages)):
            return None
        settings = {name: value for name, value in call.legacy.items() if name != "messages"}
        turns = [message["role"] for message in messages]
        # Connections belong to the event loop on which they were opened.
        key = (loop, lm.model_type, str(lm.engine), repr(sorted(settings.items())), *turns)
        if key not in self._routes:
            self._routes[key] = _Route.find(lm, call, asynchronous=loop is not None)
        route = self._routes[key]
        return None if route is None else (call, route)

    async def _use_cache(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function that reads or writes DSPy's cache: here, or in a thread if it is slow."""
        if self._cache_is_slow:
            return await asyncio.to_thread(function, *arguments)
        begin = time.monotonic()
        result = function(*arguments)
        self._cache_is_slow = time.monotonic() - begin > _SLOW_S
        return result


class _UnsentError(Exception):
    """A request was written and not sent."""


@dataclass
class _Reply:
    """A reply of HTTP, as `dspy.lm15` reads it from its transports."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    http_version: str
    body: bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def read(self) -> bytes:
        return self.body


class _GivenReply(threading.local):
    """A transport of `dspy.lm15` that sends nothing: it keeps the request and returns the reply that is there."""

    request: Any = None
    reply: _Reply | Exception = _UnsentError()

    def stream(self, request: Any) -> _Reply:
        self.request = request
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


@dataclass
class _Route:
    """How a plain `dspy.LM` reaches its provider with texts under one set of settings."""

    provider: str
    model: str
    """As the provider calls it."""
    compat: Any
    """What the provider takes, in DSPy's words."""
    transport: Any
    """What sends requests."""
    reader: Any
    """The provider as one that reads the reply given to `given`."""
    given: _GivenReply
    template: Any
    """A request, whose body is written anew for each call."""
    fields: dict[str, Any]
    """The template's body."""

    @classmethod
    def find(cls, lm: dspy.LM, call: Any, *, asynchronous: bool) -> "_Route | None":
        """Find the route of a call; None where DSPy changes the messages or a setting, or asks by litellm."""
        from dspy.clients.engines.lm15_engine import AsyncLM15Engine, LM15Engine
        from dspy.clients.execution import _engine

        engine, request, provider = _engine(lm, call, asynchronous)
        if type(engine) not in (AsyncLM15Engine, LM15Engine) or request is None or engine.plan(request):
            return None
        resolution = engine.resolve(request.model)
        name = f"{resolution.provider}:{resolution.model}"
        sender, given = engine.router.lm(name), _GivenReply()
        if not isinstance(sender.api_key, str):
            # A key that may be another one for the next call.
            return None
        reader = LMRouter(replace(engine.config, transport=given, timeouts=None)).lm(name)
        try:
            reader.complete(replace(request, model=resolution.model))
        except _UnsentError:
            body = given.request.body
        transport = sender.transport if getproxies() else _without_proxies(sender.transport, engine.config)
        names = (provider, resolution.model, resolution.compat)
        route = cls(*names, transport, reader, given, given.request, json.loads(body))
        return route if route.write(call).body == body else None

    async def ask(self, lm: dspy.LM, call: Any) -> Any:
        """Return DSPy's `CallResult` of a call, asked as often as DSPy asks; raises what `lm.acall` raises."""
        for attempt in itertools.count():
            try:
                with error_boundary(lm.model, provider=self.provider, unexpected=True):
                    reply: _Reply | Exception
                    try:
                        async with self.transport.stream(self.write(call)) as response:
                            reply = _copy_reply(response, await response.read())
                    except Exception as error:
                        reply = error
                    return self._read(lm, call, reply)
            except Exception as error:
                await asyncio.sleep(self._pause_s(lm, error, attempt))
        raise AssertionError

    def ask_blocking(self, lm: dspy.LM, call: Any) -> Any:
        """Return what `ask` does, in a thread that waits."""
        for attempt in itertools.count():
            try:
                with error_boundary(lm.model, provider=self.provider, unexpected=True):
                    reply: _Reply | Exception
                    try:
                        with self.transport.stream(self.write(call)) as response:
                            reply = _copy_reply(response, response.read())
                    except Exception as error:
                        reply = error
                    return self._read(lm, call, reply)
            except Exception as error:
                time.sleep(self._pause_s(lm, error, attempt))
        raise AssertionError

    def write(self, call: Any) -> Any:
        """Write the request of a call."""
        fields = {**self.fields, "messages": call.legacy["messages"]}
        body = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
        return replace(self.template, body=body.encode())

    def _read(self, lm: dspy.LM, call: Any, reply: _Reply | Exception) -> Any:
        """Return DSPy's `CallResult`; raises what its provider raises."""
        from dspy.clients.call_result import CallResult
        from dspy.clients.execution import _canonical, _result

        plain = _read_plain(reply) if isinstance(reply, _Reply) else None
        keeps_response = call.cache or not dspy.settings.disable_history
        if plain is not None and not keeps_response:
            text, usage = plain
            return CallResult(outputs=[text], usage=usage)
        self.given.reply = reply
        request = replace(_canonical(call, compat=self.compat), model=self.model)
        return _result(lm, self.reader.complete(request), call, self.provider, request, estimate=keeps_response)

    def _pause_s(self, lm: dspy.LM, error: Exception, attempt: int) -> float:
        """Return the seconds until the next attempt; raises the error if there is none."""
        from dspy.clients.execution import _delay, _hint_responses_api

        if attempt >= lm.num_retries or not is_retryable_lm_error(error):
            _hint_responses_api(lm, error)
            raise error
        seconds: float = _delay(error, attempt)
        return seconds


def _copy_reply(response: Any, body: bytes) -> _Reply:
    return _Reply(response.status, response.reason, response.headers, response.http_version, body)


def _without_proxies(transport: Any, config: Any) -> Any:
    """Return a transport like DSPy's own that looks for no proxy; the very same if it is not DSPy's own.

    It closes its connections once nobody holds it.
    """
    if config.transport is not None or type(transport).__name__ not in ("StdlibAsyncTransport", "StdlibTransport"):
        return transport
    return type(transport)(**config.transport_kwargs(), trust_env=False)


def _is_text(message: Mapping[str, Any]) -> bool:
    return len(message) == 2 and isinstance(message.get("content"), str) and bool(message["content"])


def _read_plain(reply: _Reply) -> tuple[str, dict[str, Any]] | None:
    """Read the text and DSPy's counts of tokens; None for a reply that says anything else, which DSPy reads."""
    if reply.status != _OK:
        return None
    try:
        document = json.loads(reply.body)
        (choice,) = document["choices"]
        message, usage = choice["message"], document["usage"]
        counts = {name: usage[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")}
        extras = [value for name, value in message.items() if name not in ("role", "content")]
        extras += [value for name, value in usage.items() if name not in counts]
        plain = choice["finish_reason"] == "stop" and not any(extras) and not document.get("error")
    except (ValueError, TypeError, LookupError, AttributeError):
        return None
    if not plain or not all(type(count) is int for count in counts.values()) or not isinstance(message["content"], str):
        return None
    return message["content"], {**counts, "prompt_tokens_details": None, "completion_tokens_details": None}
