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
from medexam.serve.discovery.finder import ServerFinder, find_endpoints
from medexam.serve.discovery.probe import check_same, probe_endpoint
from medexam.serve.engines.prompt_text import ServerRenderer, build_renderer
from medexam.serve.engines.settings_check import check_vllm_settings
from medexam.serve.engines.vllm import VLLMEngine
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.pool.server_pool import ServerPool
from medexam.serve.request_settings import RequestSettings, thinking_room
from medexam.serve.thinking import is_open
from medexam.serve.timing import TIMING
from medexam.specs import EngineNeeds, ModelSpec

_log = logging.getLogger(__name__)


async def connect_vllm(spec: ModelSpec, needs: EngineNeeds, prefer_host: str | None, sharers: int) -> VLLMEngine:
    """Connect the engine of a spec, on the background loop; raises as `build_engine` does."""
    if spec.start:
        return await _start_and_connect(spec, needs)
    endpoints, finder = await find_endpoints(spec, prefer_host)
    return await _connect(endpoints, finder, spec, needs, sharers)


async def _start_and_connect(spec: ModelSpec, needs: EngineNeeds) -> VLLMEngine:
    from medexam.serve.launch.own_servers import start_servers

    servers = await start_servers(spec)
    try:
        finder = ServerFinder(servers.registry, spec)
        engine = await _connect(await finder.wait(0.0), finder, spec, needs)
    except BaseException:
        await servers.stop()
        raise
    engine.pool.run_in_background(servers.supervise())
    return engine


async def _connect(
    endpoints: Sequence[Endpoint], finder: ServerFinder | None, spec: ModelSpec, needs: EngineNeeds, sharers: int = 1
) -> VLLMEngine:
    timeout_s = min(TIMING.probe_silence_s, spec.timeout_s)
    look = partial(probe_endpoint, pictures=needs.pictures, tools=needs.tools, timeout_s=timeout_s)
    probes = (_probe_or_fault(look(endpoint, spec.name, wait_s=spec.wait_s)) for endpoint in endpoints)
    outcomes = dict(zip(endpoints, await asyncio.gather(*probes), strict=True))
    answering = {endpoint: outcome for endpoint, outcome in outcomes.items() if isinstance(outcome, Capabilities)}
    if not answering:
        raise next(fault for fault in outcomes.values() if isinstance(fault, EndpointSilentError))
    capabilities = list(answering.values())
    _check_same_model(capabilities)
    for server in capabilities:
        _check_needs(needs, server)
    pool = ServerPool(tuple(answering), spec.timeout_s, spec.wait_s if finder else 0.0, sharers)
    settings = RequestSettings.of(spec)
    remote = ServerRenderer(
        pool.available,
        pool.look_again,
        capabilities[0].model,
        timeout_s=timeout_s,
        settings=settings.template,
    )
    try:
        renderer = await build_renderer(remote, capabilities[0])
        await check_vllm_settings(spec, needs, settings, capabilities[0], list(answering), remote, renderer)
        tokenizer = renderer or (remote if capabilities[0].tokenizes else None)
        pool.check = partial(check_same, capabilities=capabilities[0], timeout_s=timeout_s)
        pool.admit = partial(_check_interchangeable, reference=capabilities[0], look=look)
        pool.find = (lambda: endpoints) if finder is None else partial(finder.find, capabilities[0].model)
        for fault in outcomes.values():
            if isinstance(fault, EndpointSilentError):
                _log.warning("medexam: warning: %s; the run goes without it, and looks again if another fails", fault)
        opens = renderer is not None and capabilities[0].chat and is_open(await renderer.render(DIALOGUE))
        thinks = spec.thinking != "off" and any(server.thinks for server in capabilities)
        contexts = [server.max_context // 2 for server in capabilities if server.max_context is not None]
        # Half of a context is left to prompts and answers.
        room = min([thinking_room(spec, thinks=True), *contexts]) if thinks else 0
        return VLLMEngine(pool, capabilities, renderer, tokenizer, settings, room, opens)
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
    endpoint: Endpoint, reference: Capabilities, look: Callable[[Endpoint, str], Awaitable[Capabilities]]
) -> None:
    """Raise `EngineError` unless the server can replace the one that was seen first."""
    capabilities = await look(endpoint, reference.model)
    if differences := reference.identity.differences(capabilities.identity):
        raise EndpointUnreachableError(f"its model is not that of {reference.endpoint}: {'; '.join(differences)}")
    may_differ = {"endpoint", "models", "server_version", "source", "thinks", "dialogue", "behaviour"}
    reference_fields, server_fields = (record.model_dump(exclude=may_differ) for record in (reference, capabilities))
    differing = [name for name in reference_fields if reference_fields[name] != server_fields[name]]
    if differing:
        raise EndpointUnreachableError(f"it differs from {reference.endpoint} in {', '.join(differing)}")


def _check_same_model(capabilities: list[Capabilities]) -> None:
    names = {server.model for server in capabilities}
    if len(names) > 1:
        pairs = ", ".join(f"{server.endpoint} serves {server.model}" for server in capabilities)
        raise EndpointUnreachableError(
            f"the {len(capabilities)} endpoints serve different models ({pairs}); "
            "give the servers one --served-model-name, or make each model a cell of its own"
        )
    first, *others = capabilities
    for other in others:
        if differences := first.identity.differences(other.identity):
            raise EndpointUnreachableError(
                f"{first.endpoint} and {other.endpoint} serve different models under the name {first.model} "
                f"({'; '.join(differences)}); serve one model at both, or make each a cell of its own"
            )


def _check_needs(needs: EngineNeeds, capabilities: Capabilities) -> None:
    server = f"{capabilities.endpoint} ({capabilities.server_version or 'unknown version'})"
    if needs.chat and not capabilities.chat:
        raise EngineError(f"{server} serves {no_template(capabilities.model)}")
    if needs.pictures and not capabilities.sees:
        raise EngineError(f"{server} serves {no_sight(capabilities.model)}")
    if needs.plain and capabilities.behaviour is None:
        raise EngineError(f"{server} cannot continue plain text; serve the model with vLLM, or use the embedded engine")
    # Answers to pictures are asked as a chat, where structured_outputs alone guide.
    if needs.guided and not (capabilities.structured_outputs if needs.pictures else capabilities.guided_by):
        refusal = capabilities.refusals.get("structured_outputs")
        behaviour = (
            f"refused structured_outputs ({refusal})"
            if refusal
            else "was asked for an impossible choice and ignored it"
        )
        answers = "guided answers to pictures" if needs.pictures else "guided answers"
        remedy = "upgrade the server to vLLM 0.12 or later, " if capabilities.is_vllm else ""
        raise AnswerFormatError(
            f"{server} {behaviour}, so {answers} cannot be enforced; {remedy}use model.engine litellm, which "
            f"constrains by a JSON schema (name: openai/{capabilities.model}), or set program.answer_format to free"
        )
    if needs.closes and not capabilities.renders:
        raise EngineError(
            f"{server} does not render its chat template exactly, so thinking that was cut off cannot be continued: "
            "leave program.answer_after_budget out, or serve the model with vLLM"
        )
    if needs.logprobs and not capabilities.reads:
        lack = (
            "gives no log-probabilities of given tokens, by echo or by logprob_token_ids"
            if capabilities.tokenizes
            else ("does not serve /tokenize, so it is unknown which tokens its log-probabilities belong to")
        )
        remedy = (
            "upgrade the server to vLLM 0.29 or later, or"
            if capabilities.is_vllm and capabilities.tokenizes
            else "serve the model with vLLM, or"
        )
        raise LogprobsUnavailableError(f"{server} {lack}; {remedy} use the embedded engine")
