"""Engines behind a server or a provider: what they share, and how a spec becomes one.

Their traffic runs on the process's network loop, so that the asynchronous engine serves any event loop and its
synchronous twin needs none. This module knows specs and engines; the wire is the engines' own.
"""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from dspy.lm15 import Request, Response

from medexam.errors import AnswerFormatError, EndpointUnreachableError, LogprobsUnavailableError
from medexam.serve.chat_text import ServerRenderer, build_renderer
from medexam.serve.contract import Engine, EngineInfo, SyncEngine
from medexam.serve.endpoints import NO_KEY, Endpoint, open_endpoints, read_key
from medexam.serve.litellm_calls import get_litellm
from medexam.serve.network import network
from medexam.serve.probe import Capabilities, probe_endpoint
from medexam.specs.model import ModelSpec


class Remote(Protocol):
    """An engine as it lives on the network loop."""

    concurrency: int

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
    remote: Remote

    def complete(self, request: Request) -> Response:
        """One reply to one request."""
        return network().call(self.remote.complete(request))


class HostedEngine:
    """A remote engine for callers on any event loop, and on none."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self.concurrency = remote.concurrency
        self.sync: SyncEngine = _Sync(remote)

    async def complete(self, request: Request) -> Response:
        """One reply to one request."""
        return await network().acall(self._remote.complete(request))

    def info(self) -> EngineInfo:
        """What really runs."""
        return self._remote.info()

    async def aclose(self) -> None:
        """Close the connections; the engine is unusable afterwards."""
        await network().acall(self._remote.close())


async def build_hosted_engine(spec: ModelSpec, *, guided: bool, logprobs: bool = False) -> Engine:
    """Reach the servers of a spec and find out what they honour; raises `EngineError` where they cannot be used.

    With `guided`, raises `AnswerFormatError` where no constraint is honoured; with `logprobs`,
    `LogprobsUnavailableError` where the log-probabilities of given texts cannot be read.
    """
    if spec.engine == "vllm":
        return HostedEngine(await network().acall(_build_vllm(spec, guided, logprobs)))
    if logprobs:
        raise LogprobsUnavailableError(
            f"engine {spec.engine!r} writes replies and tells no log-probabilities of given texts; "
            "use model.engine vllm or embedded"
        )
    return HostedEngine(await network().acall(_build_litellm(spec, guided)))


async def _build_vllm(spec: ModelSpec, guided: bool, logprobs: bool) -> Remote:
    from medexam.serve.vllm import VLLMEngine

    endpoints = open_endpoints(spec.endpoints, read_key(spec.api_key_env, "VLLM_API_KEY") or NO_KEY)
    importing = asyncio.create_task(asyncio.to_thread(get_litellm))
    seen = await asyncio.gather(*(probe_endpoint(endpoint, spec.name) for endpoint in endpoints))
    _check_same_model(endpoints, seen)
    if guided:
        _check_guided(seen)
    if logprobs:
        _check_logprobs(seen)
    renderer = await build_renderer(endpoints[0], seen[0])
    tokenizer = renderer or (ServerRenderer(endpoints[0], seen[0].model) if seen[0].tokenizes else None)
    await importing
    return VLLMEngine(endpoints, seen, renderer, tokenizer)


async def _build_litellm(spec: ModelSpec, guided: bool) -> Remote:
    from medexam.serve.litellm_engine import LiteLLMEngine

    await asyncio.to_thread(get_litellm)
    engine = LiteLLMEngine(spec)
    if guided:
        try:
            await engine.check_guided()
        except BaseException:
            await engine.close()
            raise
    return engine


def _check_same_model(endpoints: tuple[Endpoint, ...], seen: list[Capabilities]) -> None:
    names = {one.model for one in seen}
    if len(names) > 1:
        pairs = ", ".join(f"{one.endpoint} serves {one.model}" for one in seen)
        raise EndpointUnreachableError(
            f"the {len(endpoints)} endpoints serve different models ({pairs}); "
            "give the servers one --served-model-name, or make each model a cell of its own"
        )


def _check_guided(seen: list[Capabilities]) -> None:
    for one in seen:
        if one.guided_by is None:
            raise AnswerFormatError(
                f"{one.endpoint} ({one.server_version or 'unknown version'}) was asked for an impossible choice and "
                "ignored it, so guided answers cannot be enforced; upgrade the server to vLLM 0.12 or later, "
                "or set program.answer_format to free"
            )


def _check_logprobs(seen: list[Capabilities]) -> None:
    for one in seen:
        if not one.reads:
            raise LogprobsUnavailableError(
                f"{one.endpoint} ({one.server_version or 'unknown version'}) was asked for log-probabilities of given "
                "tokens by echo and by logprob_token_ids, and ignored both or does not tokenise; upgrade the server to "
                "vLLM 0.29 or later, or use the embedded engine"
            )
