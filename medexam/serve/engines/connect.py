"""Connects to the vLLM servers of a spec: finds them or starts one, probes each, and makes one engine of them.

What one server honours is found out by `discovery.probe`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from medexam.errors import (
    AnswerFormatError,
    EndpointSilentError,
    EndpointUnreachableError,
    EngineError,
    LogprobsUnavailableError,
)
from medexam.serve.chat_messages import no_sight, no_template
from medexam.serve.discovery.behaviour import DIALOGUE
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.discovery.finder import ServerFinder, find_endpoints, follow
from medexam.serve.discovery.probe import PROBE_TIMEOUT_S, check_same, probe_endpoint
from medexam.serve.engines.prompt_text import ServerRenderer, build_renderer
from medexam.serve.engines.settings_check import check_vllm_settings
from medexam.serve.engines.vllm import VLLMEngine
from medexam.serve.launch.own_servers import start_servers
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.pool.server_pool import ServerPool
from medexam.serve.pool.silence import replies, watch
from medexam.serve.request_settings import RequestSettings
from medexam.serve.thinking import is_open
from medexam.specs import EngineNeeds, ModelSpec

_log = logging.getLogger(__name__)


async def connect_vllm(spec: ModelSpec, needs: EngineNeeds, prefer_host: str | None, sharers: int) -> VLLMEngine:
    """The engine of a spec, on the background loop; raises as `build_engine` does."""
    if spec.start:
        return await _start_and_connect(spec, needs)
    endpoints, finder = await find_endpoints(spec, prefer_host)
    return await _connect(endpoints, finder, spec, needs, sharers)


async def _start_and_connect(spec: ModelSpec, needs: EngineNeeds) -> VLLMEngine:
    own = await start_servers(spec)
    try:
        finder = ServerFinder(own.registry, spec)
        engine = await _connect(await finder.wait_for_first(0.0), finder, spec, needs)
    except BaseException:
        await own.stop()
        raise
    engine.pool.run_in_background(own.supervise())
    return engine


async def _connect(
    endpoints: Sequence[Endpoint], finder: ServerFinder | None, spec: ModelSpec, needs: EngineNeeds, sharers: int = 1
) -> VLLMEngine:
    timeout_s = min(PROBE_TIMEOUT_S, spec.timeout_s)
    look = partial(probe_endpoint, pictures=needs.pictures, timeout_s=timeout_s)
    probes = (_probe_or_fault(look(endpoint, spec.name)) for endpoint in endpoints)
    found = dict(zip(endpoints, await asyncio.gather(*probes), strict=True))
    answering = {endpoint: seen for endpoint, seen in found.items() if isinstance(seen, Capabilities)}
    if not answering:
        raise next(fault for fault in found.values() if isinstance(fault, EndpointSilentError))
    seen = list(answering.values())
    _check_same_model(seen)
    for one in seen:
        _check_needs(needs, one)
    pool = ServerPool(tuple(answering), spec.timeout_s, spec.wait_s if finder else 0.0, sharers)
    settings = RequestSettings.of(spec)
    remote = ServerRenderer(pool.available, seen[0].model, timeout_s=timeout_s, told=settings.template)
    try:
        renderer = await build_renderer(remote, seen[0])
        await check_vllm_settings(spec, needs, settings, seen[0], list(answering), remote, renderer)
        tokenizer = renderer or (remote if seen[0].tokenizes else None)
        probe = partial(_check_interchangeable, first=seen[0], look=look)
        pool.check = partial(check_same, capabilities=seen[0], timeout_s=timeout_s)
        if finder is not None:
            pool.run_in_background(follow(partial(finder.find, seen[0].model), pool, probe))
        elif faults := [fault for fault in found.values() if isinstance(fault, EndpointSilentError)]:
            for fault in faults:
                _log.warning("medexam: warning: %s; the run begins without it", fault)
            # Servers that a spec names do not leave; those that are silent now may still come.
            pool.run_in_background(follow(lambda: endpoints, pool, probe))
        pool.run_in_background(watch(pool, replies))
        opens = renderer is not None and seen[0].chat and is_open(await renderer.render(DIALOGUE))
        return VLLMEngine(pool, seen, renderer, tokenizer, settings, opens)
    except BaseException:
        await remote.aclose()
        await pool.close()
        raise


async def _probe_or_fault(look: Awaitable[Capabilities]) -> Capabilities | EndpointSilentError:
    try:
        return await look
    except EndpointSilentError as fault:
        return fault


async def _check_interchangeable(
    endpoint: Endpoint, first: Capabilities, look: Callable[[Endpoint, str], Awaitable[Capabilities]]
) -> None:
    """Raise `EngineError` unless the server can replace the one that was seen first."""
    seen = await look(endpoint, first.model)
    if found := first.identity.differences(seen.identity):
        raise EndpointUnreachableError(f"it is another model than {first.endpoint}: {'; '.join(found)}")
    may_differ = {"endpoint", "models", "server_version", "source", "call_s", "prefix_told", "dialogue", "behaviour"}
    ours, theirs = (one.model_dump(exclude=may_differ) for one in (first, seen))
    for one in (ours, theirs):
        # Nothing is left out that a server could fill.
        one["sampling"].pop("filled")
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


def _check_needs(needs: EngineNeeds, seen: Capabilities) -> None:
    server = f"{seen.endpoint} ({seen.server_version or 'unknown version'})"
    if needs.chat and not seen.chat:
        raise EngineError(f"{server} serves {no_template(seen.model)}")
    if needs.pictures and not seen.sees:
        raise EngineError(f"{server} serves {no_sight(seen.model)}")
    if needs.plain and seen.behaviour is None:
        raise EngineError(f"{server} completes no plain text; serve the model with vLLM, or use the embedded engine")
    # Answers to pictures are asked as a chat, where structured_outputs alone guide.
    if needs.guided and not (seen.structured_outputs if needs.pictures else seen.guided_by):
        said = seen.refusals.get("structured_outputs")
        did = f"refused structured_outputs ({said})" if said else "was asked for an impossible choice and ignored it"
        what = "guided answers to pictures" if needs.pictures else "guided answers"
        first = "upgrade the server to vLLM 0.12 or later, " if seen.is_vllm else ""
        raise AnswerFormatError(
            f"{server} {did}, so {what} cannot be enforced; {first}ask it by model.engine litellm, whose "
            f"choices are a JSON schema (name: openai/{seen.model}), or set program.answer_format to free"
        )
    if needs.closes and not seen.renders:
        raise EngineError(
            f"{server} does not render its chat template exactly, so thinking that was cut off cannot be continued: "
            "leave program.answer_after_budget out, or serve the model with vLLM"
        )
    if needs.logprobs and not seen.reads:
        lacks = (
            "gives no log-probabilities of given tokens, by echo or by logprob_token_ids"
            if seen.tokenizes
            else ("does not serve /tokenize, so it cannot be known which tokens its log-probabilities belong to")
        )
        first = (
            "upgrade the server to vLLM 0.29 or later, or"
            if seen.is_vllm and seen.tokenizes
            else "serve the model with vLLM, or"
        )
        raise LogprobsUnavailableError(f"{server} {lacks}; {first} use the embedded engine")
