"""How many prompts a server answers a second when it is given as many as it takes.

The load rises in steps as long as that brings more, as in a run. This module speaks plain HTTP and counts; what the
figures mean is its readers' business.
"""

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from medexam.errors import CallError
from medexam.frozen_model import FrozenModel
from medexam.serve.network.connections import open_client
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.network.http_calls import reply_object
from medexam.serve.timing import TIMING

_PROMPT = "Which of these organs makes insulin?\n1. The liver.\n2. The pancreas.\n3. The spleen.\nAnswer:"
_WRITTEN = 16
"""Tokens that each reply has: about as many as an answer in free words."""
_LIST = 16
"""Prompts of a request, if the server takes lists."""
_IN_FLIGHT = (1, 4, 16, 64)
"""Requests at once, step by step."""
_WORTH = 1.1
"""A step is followed by another one if it brought this times what the one before did."""


_LOOK_S = 0.1
"""Seconds between two looks at the server's own counters."""
_GAUGE = re.compile(
    r"^vllm:(num_requests_running|num_requests_waiting|kv_cache_usage_perc)(?:\{.*\})? (\S+)$", re.MULTILINE
)


class ServerQueue(FrozenModel):
    """What vLLM said of its queue at the moment of a burst when most prompts were computed."""

    running: int
    """Prompts that were computed at once."""
    waiting: int
    cache_used: float
    """Share of its cache of keys and values that was in use."""


class LoadResult(FrozenModel):
    """What the best step of a burst brought."""

    prompts_per_s: float
    tokens_per_s: float
    """Tokens written."""
    in_flight: int
    """Prompts that were in flight."""
    seconds: float
    """What the whole burst took."""
    failed: int
    """Requests of the whole burst that were refused or lost."""
    queue: ServerQueue | None = None
    """None if the server's `/metrics` says nothing of it."""


@dataclass
class LoadTest:
    """A burst at one server."""

    endpoint: Endpoint
    model: str
    list_prompts: bool
    result: LoadResult | None = None
    """What was measured so far, also if the burst was cancelled; None before a request was answered or refused."""
    _queue: ServerQueue | None = None

    async def run(self, seconds: float) -> None:
        """Ask for about `seconds`; it ends early if more requests in flight bring no more."""
        start = time.monotonic()
        async with open_client(self.endpoint, TIMING.probe_silence_s) as client:
            for requests in _IN_FLIGHT:
                rate = self.result.prompts_per_s if self.result else 0.0
                step = _Step(client, self, requests)
                watching = asyncio.create_task(self._watch(client))
                try:
                    async with asyncio.timeout(start + seconds - time.monotonic()):
                        await step.run(seconds / len(_IN_FLIGHT))
                except TimeoutError:
                    pass
                finally:
                    watching.cancel()
                    # Also if Ctrl-C cancels the burst: what was measured until then is shown.
                    elapsed_s = time.monotonic() - start
                    self._count(step, elapsed_s)
                if step.failed or step.rate < _WORTH * rate or elapsed_s >= seconds:
                    return

    async def _watch(self, client: httpx.AsyncClient) -> None:
        """Look at the server's counters until it is cancelled, or the server has none."""
        while (queue := await _read_queue(client, f"{self.endpoint.root}/metrics")) is not None:
            if self._queue is None or queue.running > self._queue.running:
                self._queue = queue
            await asyncio.sleep(_LOOK_S)

    def _count(self, step: "_Step", elapsed_s: float) -> None:
        if self.result is None and not step.prompts and not step.failed:
            return
        record = self.result or LoadResult(prompts_per_s=0, tokens_per_s=0, in_flight=0, seconds=0, failed=0)
        changes: dict[str, float] = {"seconds": round(elapsed_s, 2), "failed": record.failed + step.failed}
        if step.rate > record.prompts_per_s:
            tokens_per_s = step.rate * step.tokens / step.prompts
            changes |= {"prompts_per_s": round(step.rate, 2), "tokens_per_s": round(tokens_per_s, 2)}
            changes["in_flight"] = step.requests * len(step.prompt_list)
        if self._queue is not None:
            record = record.model_copy(update={"queue": self._queue})
        self.result = record.model_copy(update=changes)


@dataclass
class _Step:
    """`requests` in flight, until the time is over and the last is answered."""

    client: httpx.AsyncClient
    burst: LoadTest
    requests: int
    prompts: int = 0
    tokens: int = 0
    failed: int = 0
    _start: float = field(default_factory=time.monotonic)
    _last_answer: float = 0.0

    @property
    def rate(self) -> float:
        """Prompts a second, up to the last answer."""
        return self.prompts / max(self._last_answer - self._start, 1e-6) if self.prompts else 0.0

    @property
    def prompt_list(self) -> list[str]:
        """The prompts of one request."""
        return [_PROMPT] * (_LIST if self.burst.list_prompts else 1)

    async def run(self, seconds: float) -> None:
        await asyncio.gather(*(self._ask(self._start + seconds) for _ in range(self.requests)))

    async def _ask(self, deadline: float) -> None:
        body: dict[str, Any] = {
            "model": self.burst.model,
            "prompt": self.prompt_list if self.burst.list_prompts else _PROMPT,
            "max_tokens": _WRITTEN,
            "temperature": 0,
            "ignore_eos": True,
        }
        address = f"{self.burst.endpoint.base}/completions"
        while not self.failed and time.monotonic() < deadline:
            try:
                reply = await reply_object(self.client.post(address, json=body), address)
            except CallError:
                self.failed += 1
                return
            self.prompts += len(reply.get("choices") or ())
            self.tokens += int((reply.get("usage") or {}).get("completion_tokens") or 0)
            self._last_answer = time.monotonic()


async def _read_queue(client: httpx.AsyncClient, address: str) -> ServerQueue | None:
    try:
        reply = await client.get(address)
        gauges = [(name, float(value)) for name, value in _GAUGE.findall(reply.text)]
    except (httpx.HTTPError, ValueError):
        return None
    if {name for name, _ in gauges} != {"num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"}:
        return None
    # Several engines behind one address have a line each.
    running, waiting = (
        sum(value for name, value in gauges if name == f"num_requests_{kind}") for kind in ("running", "waiting")
    )
    used = max(value for name, value in gauges if name == "kv_cache_usage_perc")
    return ServerQueue(running=int(running), waiting=int(waiting), cache_used=used)


async def run_load_tests(bursts: Sequence[LoadTest], seconds: float) -> bool:
    """Run bursts beside each other, as a run over these servers would; False if Ctrl-C ended them.

    Cancelling the calling task ends the bursts and nothing else.
    """
    try:
        await asyncio.gather(*(burst.run(seconds) for burst in bursts))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        return False
    return True
