"""Engines behind a server or a provider: what they share, and how a spec becomes one.

Their traffic runs on the process's network loop, so that the asynchronous engine serves any event loop and its
synchronous twin needs none. This module knows specs and engines; the wire is the engines' own.
"""

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from dspy.lm15 import Request, Response

from medexam.errors import AnswerFormatError, EndpointSilentError, EndpointUnreachableError, LogprobsUnavailableError
from medexam.serve.chat_text import ServerRenderer, build_renderer
from medexam.serve.contract import Engine, EngineInfo, SyncEngine
from medexam.serve.endpoints import NO_KEY, Endpoint, open_endpoints, read_key
from medexam.serve.litellm_calls import get_litellm
from medexam.serve.network import network
from medexam.serve.probe import PROBE_TIMEOUT_S, Capabilities, probe_endpoint
from medexam.serve.servers import Servers
from medexam.specs.model import ModelSpec

_log = logging.getLogger(__name__)


class Remote(Protocol):
    """An engine as it lives on the network loop."""

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
    remote: Remote

    def complete(self, request: Request) -> Response:
        """One reply to one request."""
        return network().call(self.remote.complete(request))


class HostedEngine:
    """A remote engine for callers on any event loop, and on none."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self.sync: SyncEngine = _Sync(remote)

    @property
    def concurrency(self) -> int:
        """How many requests keep the servers busy; it changes with what they show."""
        return self._remote.concurrency

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
    timeout_s = min(PROBE_TIMEOUT_S, spec.timeout_s)
    importing = asyncio.create_task(asyncio.to_thread(get_litellm))
    probes = (_probe_or_fault(endpoint, spec.name, timeout_s) for endpoint in endpoints)
    found = dict(zip(endpoints, await asyncio.gather(*probes), strict=True))
    there = {endpoint: seen for endpoint, seen in found.items() if isinstance(seen, Capabilities)}
    if not there:
        raise next(fault for fault in found.values() if isinstance(fault, EndpointSilentError))
    seen = list(there.values())
    _check_same_model(seen)
    if guided:
        _check_guided(seen)
    if logprobs:
        _check_logprobs(seen)
    asked = ServerRenderer(tuple(there), seen[0].model, timeout_s=timeout_s)
    renderer = await build_renderer(asked, seen[0])
    tokenizer = renderer or (asked if seen[0].tokenizes else None)
    await importing
    servers = Servers(tuple(there), spec.timeout_s)
    for endpoint, fault in found.items():
        if isinstance(fault, EndpointSilentError):
            _log.warning("medexam: warning: %s; the run begins without it", fault)
            servers.look_for(endpoint, partial(_probe_like, endpoint, seen[0], timeout_s))
    return VLLMEngine(servers, seen, renderer, tokenizer)


async def _probe_or_fault(endpoint: Endpoint, name: str | None, timeout_s: float) -> Capabilities | EndpointSilentError:
    try:
        return await probe_endpoint(endpoint, name, timeout_s=timeout_s)
    except EndpointSilentError as fault:
        return fault


async def _probe_like(endpoint: Endpoint, first: Capabilities, timeout_s: float) -> None:
    """Raise `EngineError` unless the server can stand in for the one that was seen first."""
    seen = await probe_endpoint(endpoint, first.model, timeout_s=timeout_s)
    own = {"endpoint", "models", "server_version", "source", "call_s"}
    ours, theirs = (one.model_dump(exclude=own) for one in (first, seen))
    differing = [name for name in ours if ours[name] != theirs[name]]
    if differing:
        raise EndpointUnreachableError(f"it differs from {first.endpoint} in {', '.join(differing)}")


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


def _check_same_model(seen: list[Capabilities]) -> None:
    names = {one.model for one in seen}
    if len(names) > 1:
        pairs = ", ".join(f"{one.endpoint} serves {one.model}" for one in seen)
        raise EndpointUnreachableError(
            f"the {len(seen)} endpoints serve different models ({pairs}); "
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
