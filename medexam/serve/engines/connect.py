"""Connects to the vLLM servers of a spec: finds them or starts one, probes each, and makes one engine of them.

What one server honours is found out by `discovery.probe`. What a spec adds to its requests is sent once, since a server
refuses some fields with an error and ignores others; and what a chat template is told must change what it writes.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from medexam.errors import (
    AnswerFormatError,
    CallError,
    EndpointSilentError,
    EndpointUnreachableError,
    EngineError,
    LogprobsUnavailableError,
)
from medexam.serve.chat_messages import no_sight, no_template
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.discovery.probe import check_same, probe_endpoint
from medexam.serve.discovery.registry import ServerFinder, find_endpoints
from medexam.serve.discovery.requests import CHAT, DIALOGUE, rename_limit, shows_thinking
from medexam.serve.engines.prompt_text import Renderer, ServerRenderer, build_renderer
from medexam.serve.engines.vllm import VLLMEngine
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.network.http_calls import reply_object
from medexam.serve.network.retry import CURABLE
from medexam.serve.pool import Server, ServerPool
from medexam.serve.request_settings import (
    RequestSettings,
    check_switches,
    other_settings,
    still_thinks,
    template_settings,
    thinking_room,
)
from medexam.serve.thinking import is_open
from medexam.serve.timing import TIMING
from medexam.specs import EngineNeeds, ModelSpec

if TYPE_CHECKING:
    from medexam.serve.launch.own_server import OwnServer

_log = logging.getLogger(__name__)
_INITIAL = 128
"""Requests in flight at a server at first: enough to see what it does with many, and little to lose if it refuses."""
_TOKENS = 16
"""Tokens of the reply to the one request that has all settings."""


async def connect_vllm(spec: ModelSpec, needs: EngineNeeds, prefer_host: str | None, sharers: int) -> VLLMEngine:
    """Connect the engine of a spec, on the background loop; raises as `build_engine` does."""
    if not spec.start:
        endpoints, finder = await find_endpoints(spec, prefer_host)
        return await _connect(endpoints, finder, spec, needs, sharers)
    from medexam.serve.launch.own_server import OwnServer

    own = await asyncio.to_thread(OwnServer, spec)
    await own.start()
    try:
        engine = await _connect((own.endpoint,), own, spec, needs)
    except BaseException:
        await own.stop()
        raise
    engine.pool.run_in_background(own.supervise())
    return engine


async def _connect(
    endpoints: Sequence[Endpoint],
    finder: "ServerFinder | OwnServer | None",
    spec: ModelSpec,
    needs: EngineNeeds,
    sharers: int = 1,
) -> VLLMEngine:
    timeout_s = min(TIMING.probe_silence_s, spec.timeout_s)
    look = partial(probe_endpoint, pictures=needs.pictures, tools=needs.tools, timeout_s=timeout_s)
    probes = (_probe_or_fault(look(endpoint, spec.name, wait_s=spec.wait_s)) for endpoint in endpoints)
    outcomes = dict(zip(endpoints, await asyncio.gather(*probes), strict=True))
    answering = {endpoint: outcome for endpoint, outcome in outcomes.items() if isinstance(outcome, Capabilities)}
    silent = [outcome for outcome in outcomes.values() if isinstance(outcome, EndpointSilentError)]
    if not answering:
        raise silent[0]
    capabilities = list(answering.values())
    first = capabilities[0]
    _check_same_model(capabilities)
    for server in capabilities:
        _check_needs(needs, server)
    pool = ServerPool(answering, spec.timeout_s, _INITIAL, spec.wait_s if finder else 0.0, sharers)
    try:
        settings = RequestSettings.of(spec)
        remote = ServerRenderer(pool, first.model, settings.template)
        renderer = await build_renderer(remote, first)
        if settings.spec_keys:
            await _check_settings(spec, needs, settings, first, pool.active, remote, renderer)
        pool.check = partial(check_same, capabilities=first, timeout_s=timeout_s)
        pool.admit = partial(_check_interchangeable, reference=first, look=look)
        pool.find = (lambda: endpoints) if finder is None else partial(finder.find, first.model)
        for fault in silent:
            _log.warning("medexam: warning: %s; the run goes without it, and looks again if another fails", fault)
        opens = renderer is not None and first.chat and is_open(await renderer.render(DIALOGUE))
        thinks = spec.thinking != "off" and any(server.thinks for server in capabilities)
        contexts = [server.max_context // 2 for server in capabilities if server.max_context is not None]
        # Half of a context is left to prompts and answers.
        room = min([thinking_room(spec, thinks=True), *contexts]) if thinks else 0
        tokenizer = renderer or (remote if first.tokenizes else None)
        return VLLMEngine(pool, capabilities, renderer, tokenizer, settings, room, opens)
    except BaseException:
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
    first, *others = capabilities
    if any(other.model != first.model for other in others):
        pairs = ", ".join(f"{server.endpoint} serves {server.model}" for server in capabilities)
        raise EndpointUnreachableError(
            f"the {len(capabilities)} endpoints serve different models ({pairs}); "
            "give the servers one --served-model-name, or make each model a cell of its own"
        )
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
        refused = f"refused structured_outputs ({refusal})"
        behaviour = refused if refusal else "was asked for an impossible choice and ignored it"
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
        lack, remedy = "does not serve /tokenize, so it is unknown which tokens its log-probabilities belong to", ""
        if capabilities.tokenizes:
            lack = "gives no log-probabilities of given tokens, by echo or by logprob_token_ids"
            remedy = "upgrade the server to vLLM 0.29 or later, or " if capabilities.is_vllm else ""
        remedy = remedy or "serve the model with vLLM, or "
        raise LogprobsUnavailableError(f"{server} {lack}; {remedy}use the embedded engine")


async def _check_settings(
    spec: ModelSpec,
    needs: EngineNeeds,
    settings: RequestSettings,
    capabilities: Capabilities,
    servers: Sequence[Server],
    remote: ServerRenderer,
    renderer: Renderer | None,
) -> None:
    """Raise `EngineError` for the first setting of the spec that a request to these servers cannot have."""
    if needs.logprobs and spec.extra_body:
        raise EngineError(
            "model.extra_body is not sent where log-probabilities are read: give such programs a model without it"
        )
    if settings.template and not capabilities.tokenizes:
        raise EngineError(
            f"{capabilities.endpoint} does not tokenise, so it is unknown whether its chat template takes "
            f"{', '.join(settings.spec_keys)}: serve the model with vLLM, or set it in model.extra_body"
        )
    if needs.guided and settings.chat_only:
        raise EngineError(
            f"model.extra_body.{settings.chat_only[0]}: guided answers are asked on the completions endpoint, which "
            "does not know it: leave it out, or set program.answer_format to free"
        )
    changes = await _find_changes(spec, remote) if settings.template and capabilities.chat else {}
    if changes:
        reasons = renderer is None or renderer.may_reason
        check_switches(spec, capabilities.model, changes=changes, may_reason=reasons)
    replies = await asyncio.gather(*(_send_once(server, capabilities, settings) for server in servers))
    if spec.thinking == "off" and any(map(shows_thinking, replies)):
        raise EngineError(still_thinks(capabilities.model))


async def _find_changes(spec: ModelSpec, remote: ServerRenderer) -> dict[str, bool]:
    """Map each key of the spec to whether the server's template writes something else if it is set otherwise."""
    changes = {}
    for name, other_key in (("reasoning_effort", "thinking"), ("thinking", "reasoning_effort")):
        settings = template_settings(spec.model_copy(update={other_key: None}))
        if settings:
            calls = (remote.dialogue_tokens(DIALOGUE, variant) for variant in (settings, other_settings(settings)))
            first, second = await asyncio.gather(*calls)
            changes[name] = first != second
    return changes


async def _send_once(server: Server, capabilities: Capabilities, settings: RequestSettings) -> dict[str, Any]:
    """Return the reply to a short request with all fields; raises `EngineError` with the server's own words if it is
    refused.
    """
    endpoint, path, fields = server.endpoint, "/completions", {"prompt": "Hello", **settings.sampling}
    if capabilities.chat:
        path, fields = CHAT, {"messages": DIALOGUE, **settings.sampling, **settings.chat}
    tokens = max(_TOKENS, settings.sampling.get("min_tokens") or 0)
    body = {"model": capabilities.model, "temperature": 0.7, "seed": 0, "max_tokens": tokens, **fields}
    body = rename_limit(body, capabilities.limit) if capabilities.chat else body
    try:
        sending = server.http.post(f"{endpoint.base}{path}", json=body, timeout=60.0)
        return await reply_object(sending, path)
    except CallError as error:
        if isinstance(error, CURABLE):
            raise
        message = " ".join(error.message.split())
        raise EngineError(f"{endpoint.base} refuses {', '.join(settings.spec_keys)}: {message[:300]}") from error
