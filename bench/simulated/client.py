"""A simulated worker's parts: its processor, and medexam's own engine and pool over simulated servers.

The engine, batcher, pool, adaptive limit, retries and registry are the real ones. What is replaced is the function that
posts a completions request, the client that it would post by, and the renderer of prompts.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest.mock import patch

import dspy
from simulated.server import SimulatedServer, State

from medexam.errors import CallTimeoutError, EndpointSilentError
from medexam.model_calls import Dialogue, Sampling
from medexam.serve import Capabilities, Endpoint, VLLMEngine
from medexam.serve.discovery.finder import ServerFinder
from medexam.serve.pool.adaptive_limit import AdaptiveLimit
from medexam.serve.pool.server_pool import ServerPool

MODEL = "simulated"
TIMEOUT_S = 600.0
"""The default of `model.timeout_s`."""
PROBE_S = 1.0
"""What the probe of an idle server takes: some twenty calls with one token."""
_SEEN = Capabilities(
    endpoint="http://first:8000/v1",
    server_version="vllm 0.32.0",
    models=(MODEL,),
    model=MODEL,
    source=None,
    max_context=8192,
    system_turn=True,
    repeated_turns=True,
    renders=True,
    allowed_token_ids=True,
    structured_outputs=True,
    list_prompts=True,
    tokenizes=True,
    echo_logprobs=None,
    names_tokens=False,
)
_DIALOGUE = Dialogue(
    [{"role": "user", "content": "Which?"}], "{Answer: ", Sampling(temperature=0.0), choices=("1", "2", "3", "4")
)
_open: ContextVar[Callable[[Endpoint], "Client"]] = ContextVar("open")
"""How the worker that is running opens a client."""
_processor: ContextVar["Processor"] = ContextVar("processor")
"""That of the worker that is running."""
_SAID = dspy.Prediction(answer=1)


@dataclass
class Processor:
    """One core: what it is given takes its turn, as callbacks do in an event loop."""

    free_at: float = 0.0
    worked_s: float = 0.0

    async def work(self, seconds: float) -> None:
        """Return when this work is done, behind all that was given before it."""
        now = asyncio.get_running_loop().time()
        self.free_at = max(now, self.free_at) + seconds
        self.worked_s += seconds
        if self.free_at > now:
            await asyncio.sleep(self.free_at - now)


class _Renderer:
    """Renders each dialogue to the same words; a choice is one token."""

    template = "simulated"
    may_reason = False

    async def render(self, _messages: Sequence[Any]) -> str:
        return "Which?"

    async def tokens(self, text: str) -> tuple[int, ...]:
        return tuple(map(ord, text))

    async def aclose(self) -> None:
        pass


@dataclass(frozen=True)
class Client:
    """What a pool opens instead of an HTTP client."""

    server: SimulatedServer
    processor: Processor
    read_s: float
    """What it takes the client to read a question's reply."""

    async def close(self) -> None:
        pass


@dataclass(frozen=True)
class Program:
    """Asks the same question in place of each; a question's preparation takes its time on the processor."""

    engine: VLLMEngine
    processor: Processor
    prepare_s: float
    begun: Callable[[], None]
    callbacks: ClassVar[tuple[()]] = ()
    """As of DSPy's modules: nobody listens."""

    async def acall(self, question: Any) -> dspy.Prediction:  # noqa: ARG002 - each is the same here
        self.begun()
        await self.processor.work(self.prepare_s)
        await self.engine.reply(_DIALOGUE)
        return _SAID


async def open_engine(
    servers: Mapping[str, SimulatedServer], finder: ServerFinder, processor: Processor, read_s: float, sharers: int
) -> VLLMEngine:
    """An engine over the servers that the registry lists."""

    async def probe(endpoint: Endpoint) -> None:
        await asyncio.sleep(PROBE_S)
        if servers[endpoint.base].state is not State.WORKS:
            raise EndpointSilentError(f"{endpoint.base} does not answer")

    _processor.set(processor)
    _open.set(lambda endpoint: Client(servers[endpoint.base], processor, read_s))
    pool = ServerPool((), TIMEOUT_S, finder.spec.wait_s, sharers, probe, partial(finder.find, MODEL), probe)
    pool.limit = AdaptiveLimit(TIMEOUT_S, servers=0, sharers=sharers, clock=asyncio.get_running_loop().time)
    for endpoint in finder.find(MODEL):
        pool.add(endpoint)
    return VLLMEngine(pool, [_SEEN], _Renderer())


async def _post(client: Client, _model: str, body: Mapping[str, Any], *, timeout_s: float) -> dict[str, Any]:
    """In the place of `post_completions`."""
    prompts = len(body["prompt"]) if isinstance(body["prompt"], list) else 1
    # Behind what the processor was given before: a request leaves when the event loop comes to it.
    await client.processor.work(0.0)
    try:
        async with asyncio.timeout(timeout_s):
            await client.server.serve(prompts)
    except TimeoutError:
        raise CallTimeoutError("no reply in time") from None
    await client.processor.work(prompts * client.read_s)
    return {"model": MODEL, "choices": _choices(prompts, body["allowed_token_ids"][0])}


@cache
def _choices(prompts: int, token: int) -> list[dict[str, Any]]:
    return [
        {"index": place, "text": "1", "finish_reason": "length", "token_ids": [token], "prompt_token_ids": [1]}
        for place in range(prompts)
    ]


async def _sleep(seconds: float) -> None:
    await (asyncio.sleep(seconds) if seconds else _processor.get().work(0.0))


@contextmanager
def simulated_wire() -> Iterator[None]:
    """Engines post to simulated servers, on the loop that they are called on."""
    # A turn of a worker's event loop comes when its processor has done what was ready before.
    turns = SimpleNamespace(**{**vars(asyncio), "sleep": _sleep})
    here = SimpleNamespace(run_async=lambda work: work)
    with (
        patch("medexam.serve.engines.completions.post_completions", _post),
        patch("medexam.experiments.run.scheduler.asyncio", turns),
        patch("medexam.serve.engines.hosted.background_loop", lambda: here),
        patch("medexam.serve.pool.server_pool.open_model_client", lambda endpoint, _timeout_s: _open.get()(endpoint)),
    ):
        yield
