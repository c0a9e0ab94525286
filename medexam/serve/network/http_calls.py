"""Connections to endpoints, and what an HTTP reply says: its JSON object, or its fault. What is asked is its callers'
business.

The one place that opens connections. A redirect is followed nowhere, not even on the same host: a prompt or a key shall
reach the address that was written down and no other, and the error says which address to write instead. The proxies of
the environment are used (`HTTPS_PROXY`, `NO_PROXY`), except for this machine's own servers, which no proxy elsewhere
can reach.
"""

import math
import os
import re
import socket
import ssl
import sys
import time
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
import httpx
import yaml
from httpx_aiohttp import AiohttpTransport, HttpxAiohttpClient

from medexam.errors import (
    AuthError,
    BillingError,
    CallError,
    CallTimeoutError,
    ContextLengthError,
    FilteredError,
    InvalidRequestError,
    MedExamError,
    ProviderError,
    RateLimitError,
    ServerError,
    TransportError,
    UnsupportedModelError,
)
from medexam.files import UnreadableError, parse_json
from medexam.serve.network.endpoints import Endpoint

_CONNECT_S = 10.0
"""What a connection may take while a run keeps the server busy."""
MOST_CONNECTIONS = 1024
"""Connections to one server that are held open."""
_KEEP_ALIVE_S = 4.0
"""Idle connections are dropped before vLLM drops them (after 5 s), or a request could meet a closing one."""
_LOST_S = 30
"""Seconds after which a connection to a machine that says nothing counts as lost."""
_CAUSES = 10
"""How many causes of an error are looked at."""
_BY_STATUS: dict[int, type[CallError]] = {
    **dict.fromkeys((400, 413, 422), InvalidRequestError),
    404: UnsupportedModelError,
    **dict.fromkeys((401, 403), AuthError),
    402: BillingError,
    **dict.fromkeys((408, 504), CallTimeoutError),
    429: RateLimitError,
    **dict.fromkeys((409, 425), ServerError),
}
"""HTTP status -> error; of the others, those from 500 on are server errors."""
_LONGEST_TEXT = 2000
"""Characters of an error in plain text that are kept."""
MISFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What is raised where a part of a reply is of another type than the protocol's."""


class _Client(HttpxAiohttpClient):
    """The connections of aiohttp: a thousand calls at a time, and the time of one does not grow with the others."""

    def _init_transport(self, *_: Any, **settings: Any) -> httpx.AsyncBaseTransport:
        # A session belongs to the loop that first asks.
        def open_session() -> aiohttp.ClientSession:
            connector = aiohttp.TCPConnector(
                limit=MOST_CONNECTIONS,
                keepalive_timeout=_KEEP_ALIVE_S,
                ssl=settings["verify"],
                socket_factory=_open_socket,
            )
            return aiohttp.ClientSession(connector=connector)

        return AiohttpTransport(settings["verify"], client=open_session)

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send a request; raises a fault of transport for a reply that is no HTTP or cannot be unpacked."""
        try:
            return await super().send(request, **options)
        except (aiohttp.ClientError, httpx.DecodingError) as error:
            raise httpx.RemoteProtocolError(str(error), request=request) from error


def _open_socket(address: tuple[Any, ...]) -> socket.socket:
    """Open a socket whose connection ends `_LOST_S` after the other machine lost its power or network.

    Such a machine says nothing, and a call would wait for its timeout, ten minutes by default.
    """
    opened = socket.socket(*address[:3])
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        set_option = partial(opened.setsockopt, socket.IPPROTO_TCP)
        set_option(socket.TCP_KEEPIDLE, _LOST_S // 3)
        set_option(socket.TCP_KEEPINTVL, _LOST_S // 6)
        set_option(socket.TCP_USER_TIMEOUT, _LOST_S * 1000)
    return opened


def open_client(endpoint: Endpoint, timeout_s: float) -> httpx.AsyncClient:
    """Open a plain HTTP client that sends the endpoint's key."""
    host = urlsplit(endpoint.base).hostname or ""
    return _Client(
        headers={"Authorization": f"Bearer {endpoint.key}", "Accept-Encoding": "identity"},
        # Waiting for one of this client's own connections is no fault of the server's.
        timeout=httpx.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s), pool=None),
        verify=_trust(os.environ.get("SSL_CERT_FILE")),
        follow_redirects=False,
        trust_env=not (host in ("localhost", "::1") or host.startswith("127.")),
    )


@cache
def _trust(_file: str | None) -> ssl.SSLContext:
    """Load what certificates are checked against, once a file, since it takes longer than a probe."""
    return httpx.create_ssl_context()


def redirect_fault(response: httpx.Response) -> str | None:
    """Describe a reply that points elsewhere, without what could be secret in an address; None for any other."""
    if not response.has_redirect_location:
        return None
    address = str(response.request.url)
    here, there = urlsplit(address), urlsplit(urljoin(address, response.headers["location"]))
    place = "" if here.netloc == there.netloc else " on another host"
    bare = [f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" for parts in (here, there)]
    return (
        f"{bare[0]} redirects to {bare[1]}{place}, and redirects are not followed; "
        "write the address that is meant in model.endpoints"
    )


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, what caused it, what caused that, and so on."""
    link: BaseException | None = error
    for _ in range(_CAUSES):
        if link is None:
            return
        yield link
        link = link.__cause__ or link.__context__


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    lists = yaml.safe_load(Path(__file__).with_name("refusals.yaml").read_text(encoding="utf-8"))
    return {name: re.compile("|".join(patterns), re.IGNORECASE) for name, patterns in lists.items()}


def find_words(kind: str, text: str) -> re.Match[str] | None:
    """Search a text for what servers say in a case of `refusals.yaml`."""
    return _patterns()[kind].search(text)


@contextmanager
def reading_reply(kind: type[MedExamError] = ServerError, way_out: str = "") -> Iterator[None]:
    """Raise an error where a field of a reply has no value that it can have, such as an infinite number."""
    try:
        yield
    except (*MISFORMED, RecursionError) as error:
        raise kind(f"the reply cannot be read: {error}{way_out}") from error


async def reply_object(sending: Awaitable[httpx.Response]) -> dict[str, Any]:
    """Return the JSON object of a reply; raises `CallError`s, also for a fault that a reply of status 200 reports."""
    try:
        reply = await sending
    except httpx.TransportError as error:
        # Over aiohttp a connection that is lost is a `ConnectTimeout` too.
        if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
            raise CallTimeoutError(f"no reply within {error.request.extensions['timeout']['read']:g} s") from error
        raise TransportError(f"the connection failed: {str(error) or type(error).__name__}") from error
    if not reply.is_success:
        raise http_error(reply)
    if "event-stream" in reply.headers.get("content-type", ""):
        raise InvalidRequestError("the server replies by streaming alone: stream must be set to true")
    with reading_reply():
        document = parse_json(reply.content)
        if not isinstance(document, dict):
            raise TypeError("it is not a JSON object")
    raise_reported(document)
    return document


def raise_reported(holder: dict[str, Any]) -> None:
    """Raise the fault that a reply of status 200, or a choice of one, reports; an empty one is taken out."""
    # DSPy's reader takes an empty error for one.
    fault = holder.pop("error", None)
    message, code = read_message({"error": fault}) if fault else ("", None)
    number = fault.get("code") if isinstance(fault, Mapping) else None
    if message or number is not None:
        # A code that is no HTTP status is the server's own.
        status = number if isinstance(number, int) and httpx.codes.is_error(number) else 500
        raise status_error(status, message or "an error without words", code=code)


def http_error(reply: httpx.Response) -> CallError:
    """Build the error that a reply of another status than 200 is."""
    try:
        message, code = read_message(parse_json(reply.content))
    except UnreadableError:
        plain = reply.headers.get("content-type", "").startswith("text/plain")
        message, code = (" ".join(reply.text.split())[:_LONGEST_TEXT] if plain else ""), None
    message = redirect_fault(reply) or message or f"HTTP {reply.status_code}"
    return status_error(reply.status_code, message, read_pause(reply), code)


def status_error(status: int, message: str, retry_after: float | None = None, code: str | None = None) -> CallError:
    """Build the error for an HTTP status, its words and the provider's `code` of the fault; `retry_after`: seconds to
    wait, None if the server says none.
    """
    kind = _BY_STATUS.get(status, ServerError if httpx.codes.is_server_error(status) else ProviderError)
    return refine(kind(message, status=status, retry_after=retry_after, provider_code=code))


def refine(fault: CallError) -> CallError:
    """Return the fault as what its words say that it is, or as it is."""
    status, message = fault.status, fault.message
    words = f"{message} {fault.provider_code or ''}"
    if isinstance(fault, FilteredError) or find_words("filtered", words):
        return FilteredError(message, status=status)
    passing = find_words("passing", words)
    if isinstance(fault, AuthError | BillingError | ContextLengthError) and not (passing and status == 403):
        return fault
    if find_words("too_long", words):
        return ContextLengthError(message, status=status)
    if status == httpx.codes.UNAUTHORIZED or find_words("wrong_key", words):
        return AuthError(message, status=status)
    later = find_words("later", words)
    if fault.retry_after is None and later:
        fault.retry_after = float(later[1])
    passes = isinstance(fault, RateLimitError) and later
    if status == httpx.codes.PAYMENT_REQUIRED or (find_words("no_money", words) and not passes):
        return BillingError(message, status=status)
    if passing and isinstance(fault, InvalidRequestError | AuthError):
        return ServerError(message, status=status, retry_after=fault.retry_after)
    return fault


def read_pause(reply: httpx.Response) -> float | None:
    """Read the seconds to wait from `Retry-After`, which holds a number or a date; None if it says neither."""
    header = reply.headers.get("retry-after", "")
    try:
        seconds = float(header)
        return seconds if 0 <= seconds < math.inf else None
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(header).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None


def read_message(body: Any) -> tuple[str, str | None]:
    """Read what an error says, as OpenAI's API, FastAPI or TGI write it, and its code; empty if it says nothing."""
    detail = next((body[key] for key in ("error", "detail") if body.get(key)), body) if isinstance(body, dict) else None
    code = None
    if isinstance(detail, dict):
        # What a gateway writes of the provider behind it.
        metadata = f" {detail['metadata']}" if detail.get("metadata") else ""
        code = f"{detail.get('code')} {detail.get('type')} {detail.get('innererror') or ''}"
        detail = detail.get("message") or ("an error without words" if metadata else None)
        detail = f"{detail}{metadata}" if isinstance(detail, str) else detail
    if isinstance(detail, list):
        # FastAPI's problems.
        detail = str(detail)[:_LONGEST_TEXT]
    return (detail if isinstance(detail, str) else ""), code
