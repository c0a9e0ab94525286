"""How many prompts a server answers a second when it is given many at once."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

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
_REQUESTS = (1, 4, 16, 64)
"""Requests at once, step by step: a slow server would answer none of many in time."""
_WORTH = 1.1
"""A step is followed by another one if it brought this times what the one before did."""


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


@dataclass
class LoadTest:
    """A burst at one server."""

    endpoint: Endpoint
    model: str
    list_prompts: bool
    result: LoadResult | None = None
    """What was measured so far, also if the burst was cancelled; None before a request was answered or refused."""

    async def run(self, seconds: float) -> None:
        """Ask for about `seconds`; it ends early if more requests in flight bring no more."""
        start = time.monotonic()
        async with open_client(self.endpoint, TIMING.probe_silence_s) as client:
            for requests in _REQUESTS:
                step = _Step(self, client, time.monotonic())
                end = step.start + seconds / len(_REQUESTS)
                try:
                    async with asyncio.timeout(start + seconds - time.monotonic()):
                        await asyncio.gather(*(step.ask(end) for _ in range(requests)))
                except TimeoutError:
                    pass
                finally:
                    # Also if Ctrl-C cancels the burst: what was measured until then is shown.
                    better = self._count(step, requests, time.monotonic() - start)
                if step.failed or not better or time.monotonic() >= start + seconds:
                    return

    def _count(self, step: "_Step", requests: int, elapsed_s: float) -> bool:
        """Note what a step brought; whether another one is worth it."""
        best = self.result.prompts_per_s if self.result else 0.0
        rate = step.prompts / max(step.last_answer - step.start, 1e-6)
        if self.result is None and not step.prompts and not step.failed:
            return False
        failed = step.failed + (self.result.failed if self.result else 0)
        if self.result is None or rate > best:
            tokens_per_s = rate * step.tokens / max(step.prompts, 1)
            in_flight = requests * (_LIST if self.list_prompts else 1)
            self.result = LoadResult(
                prompts_per_s=round(rate, 2),
                tokens_per_s=round(tokens_per_s, 2),
                in_flight=in_flight,
                seconds=0,
                failed=0,
            )
        self.result = self.result.model_copy(update={"seconds": round(elapsed_s, 2), "failed": failed})
        return rate >= _WORTH * best


@dataclass
class _Step:
    """A number of requests in flight, until the time is over and the last is answered."""

    burst: LoadTest
    client: httpx.AsyncClient
    start: float
    last_answer: float = 0.0
    prompts: int = 0
    tokens: int = 0
    failed: int = 0

    async def ask(self, deadline: float) -> None:
        """Ask one request after the other."""
        body = {
            "model": self.burst.model,
            "prompt": [_PROMPT] * _LIST if self.burst.list_prompts else _PROMPT,
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
            self.last_answer = time.monotonic()


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
