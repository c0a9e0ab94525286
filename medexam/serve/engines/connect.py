"""Connects to the vLLM servers of a spec: finds them or starts one, probes each, and makes one engine of them.

What one server honours is found out by `discovery.probe`. What a spec adds to its requests is sent once, since a server
refuses some fields with an error and ignores others; and what a chat template is told must change what it writes.
"""

import asyncio
import logging
from collections.abc import Sequence
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
from medexam.serve.engines.prompt_text import ServerRenderer, build_renderer
from medexam.serve.engines.vllm import VLLMEngine
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.network.http_calls import reply_object
from medexam.serve.network.retry import CURABLE
from medexam.serve.pool import Server, ServerPool
from medexam.serve.request_settings import (
    CHAT_ONLY,
    TEMPLATE,
    check_switches,
    completion_fields,
    server_fields,
    still_thinks,
    switch_variants,
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
_MAY_DIFFER = {"endpoint", "models", "server_version", "source", "thinks", "dialogue", "behaviour", "refusals"}
"""Fields of the records of servers that one run may ask."""


async def connect_vllm(spec: ModelSpec, needs: EngineNeeds, prefer_host: str | None) -> VLLMEngine:
    """Connect the engine of a spec, on the background loop; raises as `build_engine` does."""
    if not spec.start:
        endpoints, finder = await find_endpoints(spec, prefer_host)
        return await _connect(endpoints, finder, spec, needs)
    from medexam.serve.launch.own_server import OwnServer

    own = await asyncio.to_thread(OwnServer, spec)
    await own.start()
    try:
        engine = await _connect((own.endpoint,), own, spec, needs)
    except BaseException:
        await own.stop()
        raise
    engine.pool.background = asyncio.create_task(own.supervise())
    return engine


async def _connect(
    endpoints: Sequence[Endpoint], finder: "ServerFinder | OwnServer | None", spec: ModelSpec, needs: EngineNeeds
) -> VLLMEngine:
    timeout_s = min(TIMING.probe_silence_s, spec.timeout_s)
    look = partial(probe_endpoint, pictures=needs.pictures, tools=needs.tools, timeout_s=timeout_s, wait_s=spec.wait_s)

    async def probe(endpoint: Endpoint) -> Capabilities | EndpointSilentError:
        try:
            return await look(endpoint, spec.name)
        except EndpointSilentError as fault:
            return fault

    outcomes = dict(zip(endpoints, await asyncio.gather(*map(probe, endpoints)), strict=True))
    seen = {endpoint: outcome for endpoint, outcome in outcomes.items() if isinstance(outcome, Capabilities)}
    silent = [outcome for outcome in outcomes.values() if isinstance(outcome, EndpointSilentError)]
    if not seen:
        raise silent[0]
    first = next(iter(seen.values()))
    honoured = _agree(list(seen.values()))
    _check_needs(needs, honoured)

    async def admit(endpoint: Endpoint) -> None:
        _agree([first, await look(endpoint, first.model)])

    pool = ServerPool(
        seen,
        spec.timeout_s,
        initial=_INITIAL,
        wait_s=spec.wait_s if finder else 0.0,
        find=partial(finder.find, first.model) if finder else lambda: endpoints,
        check=partial(check_same, capabilities=first, timeout_s=timeout_s),
        admit=admit,
    )
    try:
        budget = {"thinking_token_budget": spec.thinking} if isinstance(spec.thinking, int) else {}
        fields = server_fields(spec) | budget
        remote = ServerRenderer(pool, first.model, fields.get(TEMPLATE, {}))
        renderer = await build_renderer(remote, first)
        if spec.request_settings:
            await _check_settings(spec, needs, fields, honoured, remote, renderer is None or renderer.may_reason)
            replies = [await _send_once(server, spec, honoured, fields) for server in pool.servers.values()]
            if spec.thinking == "off" and any(map(shows_thinking, replies)):
                raise still_thinks(first.model)
        for fault in silent:
            _log.warning("medexam: warning: %s; the run goes without it, and looks again if another fails", fault)
        opens = renderer is not None and first.chat and is_open(await renderer.render(DIALOGUE))
        # Half of a context is left to prompts and answers.
        half = float("inf") if honoured.max_context is None else honoured.max_context // 2
        room = min(thinking_room(spec, thinks=True), half) if honoured.thinks and spec.thinking != "off" else 0
        tokenizer = renderer or (remote if first.tokenizes else None)
        thinks = None if "thinking" not in spec.request_settings else spec.thinking != "off"
        return VLLMEngine(
            pool, honoured, first.identity, tokenizer, fields, thinks=thinks, room=int(room), opens_thinking=opens
        )
    except BaseException:
        await pool.close()
        raise


def _agree(records: Sequence[Capabilities]) -> Capabilities:
    """Return the record of all servers; raises `EndpointUnreachableError` unless they serve one model in one way."""
    first, *others = records
    if any(other.model != first.model for other in others):
        pairs = ", ".join(f"{record.endpoint} serves {record.model}" for record in records)
        raise EndpointUnreachableError(
            f"the {len(records)} endpoints serve different models ({pairs}); "
            "give the servers one --served-model-name, or make each model a cell of its own"
        )
    for other in others:
        if differences := first.identity.differences(other.identity):
            raise EndpointUnreachableError(
                f"{first.endpoint} and {other.endpoint} serve different models under the name {first.model} "
                f"({'; '.join(differences)}); serve one model at both, or make each a cell of its own"
            )
        fields, other_fields = (record.model_dump(exclude=_MAY_DIFFER) for record in (first, other))
        if differing := [name for name in fields if fields[name] != other_fields[name]]:
            raise EndpointUnreachableError(
                f"{first.endpoint} and {other.endpoint} differ in {', '.join(differing)}: start both with the same "
                "version of the server and the same options"
            )
    versions = sorted({record.server_version for record in records if record.server_version})
    thinks = any(record.thinks for record in records)
    return first.model_copy(update={"server_version": ", ".join(versions) or None, "thinks": thinks})


def _check_needs(needs: EngineNeeds, record: Capabilities) -> None:
    server = f"{record.endpoint} ({record.server_version or 'unknown version'})"
    if needs.chat and not record.chat:
        raise EngineError(f"{server} serves {no_template(record.model)}")
    if needs.pictures and not record.sees:
        raise EngineError(f"{server} serves {no_sight(record.model)}")
    if needs.plain and record.behaviour is None:
        raise EngineError(f"{server} cannot continue plain text; serve the model with vLLM, or use the embedded engine")
    # Answers to pictures are asked as a chat, where structured_outputs alone guide.
    if needs.guided and not (record.structured_outputs if needs.pictures else record.guided_by):
        refusal = record.refusals.get("structured_outputs")
        refused = f"refused structured_outputs ({refusal})"
        behaviour = refused if refusal else "was asked for an impossible choice and ignored it"
        answers = "guided answers to pictures" if needs.pictures else "guided answers"
        remedy = "upgrade the server to vLLM 0.12 or later, " if record.is_vllm else ""
        raise AnswerFormatError(
            f"{server} {behaviour}, so {answers} cannot be enforced; {remedy}use model.engine litellm, which "
            f"constrains by a JSON schema (name: openai/{record.model}), or set program.answer_format to free"
        )
    if needs.closes and not record.renders:
        raise EngineError(
            f"{server} does not render its chat template exactly, so thinking that was cut off cannot be continued: "
            "leave program.answer_after_budget out, or serve the model with vLLM"
        )
    if needs.logprobs and not record.reads:
        lack, remedy = "does not serve /tokenize, so it is unknown which tokens its log-probabilities belong to", ""
        if record.tokenizes:
            lack = "gives no log-probabilities of given tokens, by echo or by logprob_token_ids"
            remedy = "upgrade the server to vLLM 0.29 or later, or " if record.is_vllm else ""
        remedy = remedy or "serve the model with vLLM, or "
        raise LogprobsUnavailableError(f"{server} {lack}; {remedy}use the embedded engine")


async def _check_settings(
    spec: ModelSpec,
    needs: EngineNeeds,
    fields: dict[str, Any],
    record: Capabilities,
    remote: ServerRenderer,
    may_reason: bool,
) -> None:
    """Raise `EngineError` for the first setting of the spec that a request to these servers cannot have."""
    if needs.logprobs and spec.extra_body:
        raise EngineError(
            "model.extra_body is not sent where log-probabilities are read: give such programs a model without it"
        )
    if remote.settings and not record.tokenizes:
        raise EngineError(
            f"{record.endpoint} does not tokenise, so it is unknown whether its chat template takes "
            f"{_keys(spec)}: serve the model with vLLM, or set it in model.extra_body"
        )
    if needs.guided and (chat_only := sorted(fields.keys() & CHAT_ONLY)):
        raise EngineError(
            f"model.extra_body.{chat_only[0]}: guided answers are asked on the completions endpoint, which "
            "does not know it: leave it out, or set program.answer_format to free"
        )
    if remote.settings and record.chat:
        changes = {}
        for name, variants in switch_variants(spec).items():
            first, second = [await remote.dialogue_tokens(DIALOGUE, settings) for settings in variants]
            changes[name] = first != second
        check_switches(spec, record.model, changes=changes, may_reason=may_reason)


async def _send_once(server: Server, spec: ModelSpec, record: Capabilities, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the reply to a short request with all settings; raises `EngineError` with the server's own words if it is
    refused.
    """
    tokens = max(_TOKENS, settings.get("min_tokens") or 0)
    body = {"model": record.model, "temperature": 0.7, "seed": 0, "max_tokens": tokens}
    path, body = "/completions", body | {"prompt": "Hello", **completion_fields(settings)}
    if record.chat:
        path, body = CHAT, rename_limit(body | {"messages": DIALOGUE, **settings}, record.limit)
    try:
        sending = server.http.post(f"{server.endpoint.base}{path}", json=body, timeout=60.0)
        return await reply_object(sending, path)
    except CallError as error:
        if isinstance(error, CURABLE):
            raise
        message = " ".join(error.message.split())
        raise EngineError(f"{server.endpoint.base} refuses {_keys(spec)}: {message[:300]}") from error


def _keys(spec: ModelSpec) -> str:
    return ", ".join(f"model.{name}" for name in spec.request_settings)
