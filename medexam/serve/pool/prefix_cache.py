"""What vLLM servers tell of their prefix caches: how many tokens of prompts they were given and had read before.

The counters are a server's own, over all who ask it. This module reads `/metrics`; it knows no engine.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from medexam.serve.network.connections import open_client
from medexam.serve.network.endpoints import NO_KEY, Endpoint

_TIMEOUT_S = 2.0
_COUNTER = re.compile(
    r"^vllm:prefix_cache_(queries|hits)_total(?:\{.*\})? (\d{1,18}(?:\.\d+)?(?:e\+?\d\d?)?)$", re.MULTILINE
)


@dataclass(frozen=True)
class PrefixCount:
    """Tokens of prompts, counted since the servers started."""

    tokens: int
    hits: int
    """Those that were in the cache."""


async def count_prefixes(addresses: Sequence[str], ca_bundle: Path | None = None) -> PrefixCount | None:
    """Sum the counts of all servers; None unless each of them tells its own.

    `addresses` are base addresses of OpenAI APIs, such as http://127.0.0.1:8000/v1. Raises `SpecError` for a CA bundle
    that cannot be read.
    """
    counts = await asyncio.gather(*(_count(Endpoint(base, NO_KEY, ca_bundle)) for base in addresses))
    server_counts = [count for count in counts if count is not None]
    if not server_counts or len(server_counts) < len(addresses):
        return None
    return PrefixCount(sum(count.tokens for count in server_counts), sum(count.hits for count in server_counts))


async def _count(endpoint: Endpoint) -> PrefixCount | None:
    try:
        async with open_client(endpoint, _TIMEOUT_S) as client:
            reply = await client.get(f"{endpoint.root}/metrics")
    except httpx.HTTPError:
        return None
    totals = {"queries": 0.0, "hits": 0.0}
    matches = _COUNTER.findall(reply.text) if reply.is_success else []
    for name, value in matches:
        totals[name] += float(value)
    return PrefixCount(round(totals["queries"]), round(totals["hits"])) if matches else None
