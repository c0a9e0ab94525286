"""How many prompts a server answers a second when it is given many at once."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
_REQUESTS = 16
"""Requests at once."""


class LoadResult(FrozenModel):
    """What a burst brought."""

    prompts_per_s: float
    tokens_per_s: float
    """Tokens written."""
    in_flight: int
    """Prompts that were in flight."""
    seconds: float
    failed: int
    """Requests that were refused or lost."""


@dataclass
class LoadTest:
    """A burst at one server."""

    endpoint: Endpoint
    model: str
    list_prompts: bool
    result: LoadResult | None = None
    """What was measured, also if the burst was cancelled; None before a request was answered or refused."""
    _prompts: int = 0
    _tokens: int = 0
    _failed: int = 0

    async def run(self, seconds: float) -> None:
        """Ask for about `seconds`, until the last request is answered."""
        start = time.monotonic()
        many = _LIST if self.list_prompts else 1
        body = {
            "model": self.model,
            "prompt": [_PROMPT] * many if self.list_prompts else _PROMPT,
            "max_tokens": _WRITTEN,
            "temperature": 0,
            "ignore_eos": True,
        }
        async with open_client(self.endpoint, TIMING.probe_silence_s) as client:
            try:
                await asyncio.gather(*(self._ask(client, body, start + seconds) for _ in range(_REQUESTS)))
            finally:
                # Also if Ctrl-C cancels the burst: what was measured until then is shown.
                elapsed_s = time.monotonic() - start
                if self._prompts or self._failed:
                    self.result = LoadResult(
                        prompts_per_s=round(self._prompts / elapsed_s, 2),
                        tokens_per_s=round(self._tokens / elapsed_s, 2),
                        in_flight=_REQUESTS * many,
                        seconds=round(elapsed_s, 2),
                        failed=self._failed,
                    )

    async def _ask(self, client: Any, body: dict[str, Any], deadline: float) -> None:
        address = f"{self.endpoint.base}/completions"
        while not self._failed and time.monotonic() < deadline:
            try:
                reply = await reply_object(client.post(address, json=body), address)
            except CallError:
                self._failed += 1
                return
            self._prompts += len(reply.get("choices") or ())
            self._tokens += int((reply.get("usage") or {}).get("completion_tokens") or 0)


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
