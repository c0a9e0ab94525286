"""The one place that opens connections to endpoints: whom they trust, and that they stay where the spec sent them.

A redirect is followed nowhere, not even on the same host: a prompt or a key shall reach the address that was written
down and no other, and the error says which address to write instead. The proxies of the environment are used
(`HTTPS_PROXY`, `NO_PROXY`), except for this machine's own servers, which no proxy elsewhere can reach. This module
knows addresses and certificates, not what is asked.
"""

import os
import socket
import ssl
import sys
from collections.abc import Iterator
from functools import cache, partial
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport, HttpxAiohttpClient

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
        """Send a request; raises an error of httpx's for a reply that is no HTTP, where aiohttp has its own."""
        try:
            return await super().send(request, **options)
        except aiohttp.ClientError as error:
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
