"""Servers that fell silent: a machine without power or network says nothing, not even that a connection is gone.

Its calls would wait for their timeout, ten minutes by default. A server that has been quiet is therefore looked at: any
HTTP reply means that it only works long. This module knows servers and looks; it asks no model.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import NoReturn

import httpx

from medexam.serve.network.connections import open_client
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.pool.server_pool import ServerPool
from medexam.serve.timing import TIMING

_LOOKS = 3
"""Looks in a row without a reply after which its calls are given up: a server may be too busy to reply to one."""


async def watch_silence(pool: ServerPool, replies: Callable[[Endpoint], Awaitable[bool]]) -> NoReturn:
    """Give up the calls of servers that do not reply, as long as another one can be asked, until it is cancelled."""
    missed: Counter[int] = Counter()
    while True:
        await asyncio.sleep(TIMING.look_s)
        limit = time.monotonic() - TIMING.look_s
        servers = [server for server in pool.servers if server.outstanding and server.heard_at <= limit]
        signs = await asyncio.gather(*(replies(server.endpoint) for server in servers))
        missed = Counter(
            {id(server): missed[id(server)] + 1 for server, sign in zip(servers, signs, strict=True) if not sign}
        )
        for server in servers:
            if missed[id(server)] < _LOOKS:
                continue
            await pool.look_again()
            # Without another server nothing would be gained: its questions could only be asked of it again.
            if any(other is not server and not other.failures for other in pool.active):
                server.give_up()


async def replies(endpoint: Endpoint) -> bool:
    """Return whether an address says anything; what it says does not matter. Raises `SpecError` as `open_client`."""
    try:
        async with open_client(endpoint, TIMING.look_s) as client:
            await client.get(f"{endpoint.root}/health")
    except httpx.HTTPError:
        return False
    return True
