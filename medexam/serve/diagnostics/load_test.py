"""How many prompts a server answers a second when it is given as many as it takes.

The load rises in steps as long as that brings more, as in a run. This module speaks plain HTTP and counts; what the
figures mean is its readers' business.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
from dspy.lm15 import LM15Error

from medexam.frozen_model import FrozenModel
from medexam.serve.discovery.probe import PROBE_TIMEOUT_S
from medexam.serve.network.connections import open_client
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.network.http_calls import reply_object

_PROMPT = "Which of these organs makes insulin?\n1. The liver.\n2. The pancreas.\n3. The spleen.\nAnswer:"
_WRITTEN = 16
"""Tokens that each reply has: about as many as an answer in free words."""
_LIST = 16
"""Prompts a request, where the server takes lists."""
_IN_FLIGHT = (1, 4, 16, 64)
"""Requests at once, step by step."""
_WORTH = 1.1
"""A step is followed by another one where it brought so many times what the one before did."""


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
    """A burst at one server; what was measured can be read at any time, also after it was cancelled."""

    endpoint: Endpoint
    model: str
    list_prompts: bool
    _best: tuple[float, float, int] = (0.0, 0.0, 0)
    """Prompts a second, tokens a second and prompts in flight."""
    _seconds: float = 0.0
    _failed: int = 0

    @property
    def result(self) -> LoadResult | None:
        """What was measured so far; None before the first request was answered or refused."""
        if not self._best[0] and not self._failed:
            return None
        prompts, tokens, in_flight = self._best
        return LoadResult(
            prompts_per_s=round(prompts, 2),
            tokens_per_s=round(tokens, 2),
            in_flight=in_flight,
            seconds=round(self._seconds, 2),
            failed=self._failed,
        )

    async def run(self, seconds: float) -> None:
        """Ask for about so many seconds; it ends early where more in flight brings no more."""
        begun = time.monotonic()
        async with open_client(self.endpoint, PROBE_TIMEOUT_S) as client:
            for requests in _IN_FLIGHT:
                before = self._best[0]
                step = _Step(client, self, requests)
                try:
                    async with asyncio.timeout(begun + seconds - time.monotonic()):
                        await step.run(seconds / len(_IN_FLIGHT))
                except TimeoutError:
                    pass
                finally:
                    self._seconds = time.monotonic() - begun
                    self._count(step)
                if step.failed or step.rate < _WORTH * before or self._seconds >= seconds:
                    return

    def _count(self, step: "_Step") -> None:
        self._failed += step.failed
        if step.rate > self._best[0]:
            self._best = (step.rate, step.rate * step.tokens / step.prompts, step.in_flight)


@dataclass
class _Step:
    """So many requests in flight, until the time is over and the last is answered."""

    client: httpx.AsyncClient
    burst: LoadTest
    requests: int
    prompts: int = 0
    tokens: int = 0
    failed: int = 0
    _begun: float = field(default_factory=time.monotonic)
    _last: float = 0.0

    @property
    def in_flight(self) -> int:
        return self.requests * len(self._prompts)

    @property
    def rate(self) -> float:
        """Prompts a second, up to the last answer."""
        return self.prompts / max(self._last - self._begun, 1e-6) if self.prompts else 0.0

    @property
    def _prompts(self) -> Sequence[str]:
        return [_PROMPT] * (_LIST if self.burst.list_prompts else 1)

    async def run(self, seconds: float) -> None:
        await asyncio.gather(*(self._ask(self._begun + seconds) for _ in range(self.requests)))

    async def _ask(self, until: float) -> None:
        body: dict[str, Any] = {
            "model": self.burst.model,
            "prompt": self._prompts if self.burst.list_prompts else _PROMPT,
            "max_tokens": _WRITTEN,
            "temperature": 0,
            "ignore_eos": True,
        }
        address = f"{self.burst.endpoint.base}/completions"
        while not self.failed and time.monotonic() < until:
            try:
                reply = await reply_object(self.client.post(address, json=body), address)
            except LM15Error:
                self.failed += 1
                return
            self.prompts += len(reply.get("choices") or ())
            self.tokens += int((reply.get("usage") or {}).get("completion_tokens") or 0)
            self._last = time.monotonic()


async def run_load_tests(bursts: Sequence[LoadTest], seconds: float) -> bool:
    """Run bursts beside each other, as a run over these servers would; False where Ctrl-C ended them.

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
