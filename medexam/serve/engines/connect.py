"""Reaching the vLLM servers of a spec: finding them, or starting one, and seeing what they honour.

What one server honours is `probe`'s to find out; here several become one engine.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from medexam.errors import AnswerFormatError, EndpointSilentError, EndpointUnreachableError, LogprobsUnavailableError
from medexam.serve.discovery.finder import ServerFinder, named_endpoints, registry_of
from medexam.serve.discovery.probe import PROBE_TIMEOUT_S, Capabilities, check_same, probe_endpoint
from medexam.serve.engines.litellm_calls import get_litellm
from medexam.serve.engines.prompt_text import ServerRenderer, build_renderer
from medexam.serve.engines.vllm import VLLMEngine
from medexam.serve.launch.own_servers import start_servers
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.pool.server_pool import ServerPool
from medexam.specs import EngineNeeds, ModelSpec

_log = logging.getLogger(__name__)


async def connect_vllm(spec: ModelSpec, needs: EngineNeeds, near: str | None) -> VLLMEngine:
    """The engine of a spec, on the network loop; raises as `build_hosted_engine` does."""
    if spec.start:
        return await _start_and_reach(spec, needs)
    registry = registry_of(spec)
    finder = ServerFinder(registry, spec, near) if registry is not None else None
    if finder is None:
        endpoints = named_endpoints(spec)
    else:
        endpoints = await finder.find_first(spec.wait_s if spec.registry is not None else 0.0)
    return await _reach(endpoints, finder, spec, needs)


async def _start_and_reach(spec: ModelSpec, needs: EngineNeeds) -> VLLMEngine:
    own = await start_servers(spec)
    try:
        finder = ServerFinder(own.registry, spec)
        engine = await _reach(await finder.find_first(0.0), finder, spec, needs)
    except BaseException:
        await own.stop()
        raise
    engine.servers.accompany(own.keep())
    return engine


async def _reach(
    endpoints: Sequence[Endpoint], finder: ServerFinder | None, spec: ModelSpec, needs: EngineNeeds
) -> VLLMEngine:
    timeout_s = min(PROBE_TIMEOUT_S, spec.timeout_s)
    importing = asyncio.create_task(asyncio.to_thread(get_litellm))
    probes = (_probe_or_fault(endpoint, spec.name, timeout_s) for endpoint in endpoints)
    found = dict(zip(endpoints, await asyncio.gather(*probes), strict=True))
    there = {endpoint: seen for endpoint, seen in found.items() if isinstance(seen, Capabilities)}
    if not there:
        raise next(fault for fault in found.values() if isinstance(fault, EndpointSilentError))
    seen = list(there.values())
    _check_same_model(seen)
    if needs.guided:
        _check_guided(seen)
    if needs.logprobs:
        _check_logprobs(seen)
    await importing
    servers = ServerPool(tuple(there), spec.timeout_s, spec.wait_s if finder else 0.0)
    try:
        asked = ServerRenderer(servers.there, seen[0].model, timeout_s=timeout_s)
        renderer = await build_renderer(asked, seen[0])
        tokenizer = renderer or (asked if seen[0].tokenizes else None)
        alike = partial(_probe_like, first=seen[0], timeout_s=timeout_s)
        servers.check = partial(check_same, first=seen[0], timeout_s=timeout_s)
        if finder is not None:
            servers.accompany(finder.follow(servers, seen[0].model, alike))
        else:
            _await_absent(servers, found, alike)
        return VLLMEngine(servers, seen, renderer, tokenizer)
    except BaseException:
        await servers.close()
        raise


def _await_absent(
    servers: ServerPool,
    found: dict[Endpoint, Capabilities | EndpointSilentError],
    alike: Callable[[Endpoint], Coroutine[Any, Any, None]],
) -> None:
    """Let the servers that are silent now take part as soon as they answer."""
    for endpoint, fault in found.items():
        if isinstance(fault, EndpointSilentError):
            _log.warning("medexam: warning: %s; the run begins without it", fault)
            servers.look_for(endpoint, partial(alike, endpoint))


async def _probe_or_fault(endpoint: Endpoint, name: str | None, timeout_s: float) -> Capabilities | EndpointSilentError:
    try:
        return await probe_endpoint(endpoint, name, timeout_s=timeout_s)
    except EndpointSilentError as fault:
        return fault


async def _probe_like(endpoint: Endpoint, first: Capabilities, timeout_s: float) -> None:
    """Raise `EngineError` unless the server can stand in for the one that was seen first."""
    seen = await probe_endpoint(endpoint, first.model, timeout_s=timeout_s)
    if found := first.identity.differences(seen.identity):
        raise EndpointUnreachableError(f"it is another model than {first.endpoint}: {'; '.join(found)}")
    own = {"endpoint", "models", "server_version", "source", "call_s", "dialogue", "behaviour"}
    ours, theirs = (one.model_dump(exclude=own) for one in (first, seen))
    differing = [name for name in ours if ours[name] != theirs[name]]
    if differing:
        raise EndpointUnreachableError(f"it differs from {first.endpoint} in {', '.join(differing)}")


def _check_same_model(seen: list[Capabilities]) -> None:
    names = {one.model for one in seen}
    if len(names) > 1:
        pairs = ", ".join(f"{one.endpoint} serves {one.model}" for one in seen)
        raise EndpointUnreachableError(
            f"the {len(seen)} endpoints serve different models ({pairs}); "
            "give the servers one --served-model-name, or make each model a cell of its own"
        )
    first, *others = seen
    for other in others:
        if found := first.identity.differences(other.identity):
            raise EndpointUnreachableError(
                f"{first.endpoint} and {other.endpoint} serve different models under the name {first.model} "
                f"({'; '.join(found)}); serve one model at both, or make each a cell of its own"
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
