"""Engines behind a server or a provider: what they share, and how one is built from a spec.

Their traffic runs on the process's background loop, so that the asynchronous engine serves any event loop and its
synchronous twin needs none. This module knows specs and engines; the engines know the wire.
"""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from dspy.lm15 import Request, Response

from medexam.errors import LogprobsUnavailableError
from medexam.serve.contract import Engine, EngineInfo, SyncEngine
from medexam.serve.engines.litellm_calls import get_litellm
from medexam.serve.network.event_loop import background_loop
from medexam.specs import NO_NEEDS, EngineNeeds, ModelSpec


class RemoteEngine(Protocol):
    """An engine on the background loop."""

    @property
    def concurrency(self) -> int:
        """How many requests keep it busy."""
        ...

    async def complete(self, request: Request) -> Response:
        """One reply to one request."""
        ...

    def info(self) -> EngineInfo:
        """What really runs."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


@dataclass(frozen=True)
class _Sync:
    remote: RemoteEngine

    def complete(self, request: Request) -> Response:
        """One reply to one request."""
        return background_loop().run(self.remote.complete(request))


class HostedEngine:
    """A remote engine for callers on any event loop, and on none."""

    def __init__(self, remote: RemoteEngine) -> None:
        self._remote = remote
        self.sync: SyncEngine = _Sync(remote)

    @property
    def concurrency(self) -> int:
        """How many requests keep the servers busy; it adapts to their answers."""
        return self._remote.concurrency

    async def complete(self, request: Request) -> Response:
        """One reply to one request."""
        return await background_loop().run_async(self._remote.complete(request))

    def info(self) -> EngineInfo:
        """What really runs."""
        return self._remote.info()

    async def aclose(self) -> None:
        """Close the connections; the engine is unusable afterwards."""
        await background_loop().run_async(self._remote.close())


async def build_hosted_engine(
    spec: ModelSpec, needs: EngineNeeds = NO_NEEDS, *, prefer_host: str | None = None
) -> Engine:
    """Connect to the servers of a spec and find out what they honour; raises `EngineError` if they cannot be used.

    Raises `AnswerFormatError` if choices are needed and no constraint is honoured, `LogprobsUnavailableError` if
    log-probabilities of given texts are needed and cannot be read. `prefer_host` as in `build_engine`.
    """
    if spec.engine == "vllm":
        from medexam.serve.engines.connect import connect_vllm

        return HostedEngine(await background_loop().run_async(connect_vllm(spec, needs, prefer_host)))
    if needs.logprobs:
        raise LogprobsUnavailableError(
            f"engine {spec.engine!r} writes replies and reports no log-probabilities of given texts; "
            "use model.engine vllm or embedded"
        )
    return HostedEngine(await background_loop().run_async(_build_litellm(spec, needs)))


async def _build_litellm(spec: ModelSpec, needs: EngineNeeds) -> RemoteEngine:
    from medexam.serve.engines.litellm import LiteLLMEngine

    await asyncio.to_thread(get_litellm)
    engine = LiteLLMEngine(spec)
    try:
        if needs.guided:
            await engine.check_guided()
        await engine.identify()
    except BaseException:
        await engine.close()
        raise
    return engine
