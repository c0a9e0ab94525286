"""A proxy that stands before a server and breaks some of its completions: by chance, with a seed, and counted.

Everything but completions passes untouched, unless the proxy is dead.
"""

import asyncio
import json
import random
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientSession, web

FAULTS: Mapping[str, float] = {"reset": 0.10, "503": 0.05, "truncated": 0.05, "stall": 0.02, "short": 0.01}
"""How often a completion meets each fault."""


@dataclass
class Proxy:
    backing: str
    """Base address of the server, which ends in `/v1`."""
    seed: int = 0
    faults: Mapping[str, float] = field(default_factory=lambda: FAULTS)
    stall_s: float = 5.0
    """Longer than the client waits."""
    retry_after: str = "0.05"
    dies_after: int | None = None
    """Completions after which it is dead; None never."""
    certain: list[str] = field(default_factory=list)
    """What the next completions meet, whatever is drawn."""
    dead: bool = False
    done: Counter[str] = field(default_factory=Counter)
    """What it did to completions, by kind; `passed` is nothing."""
    address: str = ""
    session: ClientSession = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def draw(self) -> str:
        """The fate of the next completion."""
        if self.certain:
            return self.certain.pop()
        passed = 1 - sum(self.faults.values())
        (fate,) = self._random.choices([*self.faults, "passed"], [*self.faults.values(), max(passed, 0.0)])
        return fate

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.dies_after is not None and self.done.total() >= self.dies_after:
            self.dead = True
        if self.dead:
            return _reset(request)
        body = await request.read()
        if not request.path.endswith("/completions"):
            status, data = await self._forward(request, body)
            return _reply(status, data)
        fate = self.draw()
        self.done[fate] += 1
        if fate == "reset":
            return _reset(request)
        if fate == "503":
            return web.json_response(
                {"error": {"message": "overloaded"}}, status=503, headers={"Retry-After": self.retry_after}
            )
        if fate == "stall":
            await asyncio.sleep(self.stall_s)
            return _reset(request)
        status, data = await self._forward(request, body)
        if status == 200 and fate == "truncated":
            data = data[: len(data) // 2]
        elif status == 200 and fate in _REWRITTEN:
            data = json.dumps(_REWRITTEN[fate](json.loads(data))).encode()
        return _reply(status, data)

    async def _forward(self, request: web.Request, body: bytes) -> tuple[int, bytes]:
        address = self.backing.removesuffix("/v1") + request.path
        known = {name: request.headers[name] for name in ("Authorization",) if name in request.headers}
        headers = {"Content-Type": "application/json", **known}
        async with self.session.request(request.method, address, data=self.change(body), headers=headers) as reply:
            return reply.status, await reply.read()

    def change(self, body: bytes) -> bytes:
        """What is passed on of a request."""
        return body


def _shorten(body: dict[str, Any]) -> dict[str, Any]:
    """Without one choice, and not the last one."""
    return {**body, "choices": body["choices"][1:]}


_REWRITTEN = {
    "short": _shorten,
    "empty": lambda body: {**body, "choices": []},
    "no choices": lambda body: {key: value for key, value in body.items() if key != "choices"},
    "not an object": lambda body: [body],
    "twice": lambda body: {**body, "choices": [body["choices"][0]] * max(len(body["choices"]), 2)},
}


def _reply(status: int, data: bytes) -> web.Response:
    return web.Response(status=status, body=data, content_type="application/json")


def _reset(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


@contextmanager
def proxying(*proxies: Proxy) -> Iterator[None]:
    """Run the proxies in a thread with a loop of its own until the block ends; each has its `address` then."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    runners: list[web.AppRunner] = []

    async def start() -> None:
        for proxy in proxies:
            app = web.Application(client_max_size=2**26)
            app.router.add_route("*", "/{path:.*}", proxy.handle)
            runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
            runners.append(runner)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            proxy.session = ClientSession()
            proxy.address = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"

    async def stop() -> None:
        for runner in runners:
            await runner.cleanup()
        for proxy in proxies:
            await proxy.session.close()

    try:
        asyncio.run_coroutine_threadsafe(start(), loop).result()
        yield
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
