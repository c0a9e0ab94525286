"""From the `model` part of a spec to a live engine; and which model the spec means, before a run is planned.

Each engine's libraries are imported only when a spec asks for that engine: torch and transformers for `embedded`,
litellm for the hosted ones. What one server honours is found out by `discovery.probe`. What a spec adds to its requests
is sent once, since a server refuses some fields with an error and ignores others; and what a chat template is told must
change what it writes.
"""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from medexam.errors import (
    CallError,
    EndpointSilentError,
    EndpointUnreachableError,
    EngineError,
    SpecError,
)
from medexam.model_identity import ModelIdentity
from medexam.plugins import hash_source, is_live_name, load_object
from medexam.process import background_loop
from medexam.serve.chat_messages import is_open
from medexam.serve.contract import Engine
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.discovery.probe import ask_name, look_again, probe_endpoint
from medexam.serve.discovery.registry import find_endpoints, wait_for_endpoints
from medexam.serve.discovery.requests import DIALOGUE, rename_limit, shows_thinking
from medexam.serve.engines.client import ClientEngine
from medexam.serve.engines.dspy_model import DSPyModelEngine, RequestEngine
from medexam.serve.engines.prompt_text import ServerRenderer, build_renderer
from medexam.serve.engines.provider import connect_provider
from medexam.serve.engines.scripted import ScriptedEngine, script_digest
from medexam.serve.local_model.weights import check_local_extra, find_weights, pick_dtype
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.network.retry import CURABLE, TIMING
from medexam.serve.pool import Server, ServerPool
from medexam.serve.request_settings import (
    CHAT_ONLY,
    OFF_FIELDS,
    TEMPLATE,
    completion_fields,
    list_switches,
    server_fields,
    still_thinks,
    switch_off,
    thinking_room,
)
from medexam.specs import EngineNeeds, ModelSpec
from medexam.specs.base import ENGINES
from medexam.specs.programs.needs import NO_NEEDS
from medexam.weights import pick_device

_log = logging.getLogger(__name__)
_TOKENS = 16
"""Tokens of the reply to the one request that has all settings."""
_MAY_DIFFER = {"endpoint", "models", "server_version", "source", "thinks", "dialogue", "behaviour", "refusals"}
"""Fields of the records of servers that one run may ask."""


async def build_engine(spec: ModelSpec, needs: EngineNeeds = NO_NEEDS) -> Engine:
    """Load the model of a spec, or connect to it; raises `EngineError` if it cannot be used.

    If a server does not honour what the requests need, this raises before anything is asked: `AnswerFormatError` if it
    is choices, `LogprobsUnavailableError` if it is log-probabilities of given texts.
    """
    if spec.engine == "scripted":
        assert spec.path is not None  # noqa: S101 - the spec's own validator requires it
        return ScriptedEngine.from_file(spec.path)
    if spec.engine == "embedded":
        return await asyncio.to_thread(_load_embedded, spec, needs)
    if spec.engine == "litellm" and not spec.endpoints:
        return await background_loop().run_async(connect_provider(spec, needs))
    if spec.engine in ("vllm", "litellm"):
        return await background_loop().run_async(_connect_servers(spec, needs))
    building = spec.ask_engine("from_spec", spec, needs)
    return await (asyncio.to_thread(_build_own, spec, needs) if building is None else building)


def _load_embedded(spec: ModelSpec, needs: EngineNeeds) -> Engine:
    check_local_extra()
    try:
        from medexam.serve.engines.embedded import EmbeddedEngine
    except ImportError as error:
        raise EngineError(f"the embedded engine's libraries cannot be loaded: {error}") from error
    return EmbeddedEngine(spec, needs)


def _build_own(spec: ModelSpec, needs: EngineNeeds) -> Engine:
    engine_class = load_object(spec.engine, ENGINES)
    if is_live_name(spec.engine):
        return DSPyModelEngine(engine_class, needs)
    try:
        engine: Any = engine_class(**spec.args)
    except Exception as error:
        raise SpecError(f"engine {spec.engine}: making it failed: {type(error).__name__}: {error}") from error
    if hasattr(engine, "reply") and not hasattr(engine, "complete"):
        own_engine: Engine = engine
        return own_engine
    lacking = [name for name in ("concurrency", "complete", "info", "aclose") if not hasattr(engine, name)]
    if lacking:
        raise SpecError(f"engine {spec.engine} lacks {', '.join(lacking)}: see docs/your-own-parts.md")
    return RequestEngine(engine, f"medexam/{spec.label}")


async def _connect_servers(spec: ModelSpec, needs: EngineNeeds) -> ClientEngine:
    endpoints = await wait_for_endpoints(spec)
    timeout_s = min(TIMING.probe_silence_s, spec.timeout_s)
    look = partial(probe_endpoint, pictures=needs.pictures, tools=needs.tools, timeout_s=timeout_s, wait_s=spec.wait_s)

    async def probe(endpoint: Endpoint) -> Capabilities | EndpointSilentError:
        try:
            return await look(endpoint, spec.served_name)
        except EndpointSilentError as fault:
            return fault

    outcomes = dict(zip(endpoints, await asyncio.gather(*map(probe, endpoints)), strict=True))
    records = {endpoint: outcome for endpoint, outcome in outcomes.items() if isinstance(outcome, Capabilities)}
    silent = [outcome for outcome in outcomes.values() if isinstance(outcome, EndpointSilentError)]
    if not records:
        raise silent[0]
    first = next(iter(records.values()))
    record = _agree(list(records.values()))
    record.check(needs)

    def open_server(endpoint: Endpoint) -> Server:
        return Server.at(endpoint, first.model, spec.timeout_s)

    async def admit(endpoint: Endpoint) -> Server:
        _agree([first, await look(endpoint, first.model)])
        return open_server(endpoint)

    async def look_at(server: Server) -> ModelIdentity:
        assert server.endpoint is not None  # noqa: S101 - all servers here have one
        return await look_again(server.endpoint, first, timeout_s=timeout_s)

    pool = ServerPool(
        map(open_server, records),
        spec.timeout_s,
        wait_s=0.0 if spec.endpoints and spec.registry is None else spec.wait_s,
        find=partial(find_endpoints, spec.model_copy(update={"name": first.model})),
        identity=first.identity,
        look=look_at,
        admit=admit,
    )
    try:
        budget = {"thinking_token_budget": spec.thinking} if isinstance(spec.thinking, int) else {}
        fields = server_fields(spec) | budget
        remote = ServerRenderer(pool, first.model, fields.get(TEMPLATE, {}))
        renderer = await build_renderer(remote, first)
        if spec.request_settings:
            await _check_settings(spec, needs, fields, record, remote, renderer is None or renderer.may_reason)
            for server in pool.servers.values():
                fields = await _send_once(server, spec, record, fields)
        for fault in silent:
            _log.warning("medexam: warning: %s; the run goes without it, and looks again if another fails", fault)
        opens = renderer is not None and first.chat and is_open(await renderer.render(DIALOGUE))
        thinks = None if "thinking" not in spec.request_settings else spec.thinking != "off"
        return ClientEngine(
            pool,
            record,
            fields,
            tokenizer=renderer or (remote if first.tokenizes else None),
            thinks=thinks,
            room=min(thinking_room(spec, thinks=True), record.room) if record.thinks and thinks is not False else 0,
            opens_thinking=opens,
            has_price=spec.price is not None,
        )
    except BaseException:
        await pool.close()
        raise


def _agree(records: Sequence[Capabilities]) -> Capabilities:
    """Return the record of all servers; raises `EndpointUnreachableError` unless they serve one model in one way."""
    first, *others = records
    for other in others:
        fields, other_fields = (record.model_dump(exclude=_MAY_DIFFER) for record in (first, other))
        differences = first.identity.differences(other.identity)
        differences += [name for name in fields if fields[name] != other_fields[name]]
        if differences:
            raise EndpointUnreachableError(
                f"{first.endpoint} and {other.endpoint} serve different models, or one in different ways "
                f"({'; '.join(differences)}): start both with one --served-model-name, version and options, or make "
                "each a cell of its own"
            )
    versions = sorted({record.server_version for record in records if record.server_version})
    thinks = any(record.thinks for record in records)
    return first.model_copy(update={"server_version": ", ".join(versions) or None, "thinks": thinks})


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
    if needs.guided and record.renders and (chat_only := sorted(fields.keys() & CHAT_ONLY)):
        raise EngineError(
            f"model.extra_body.{chat_only[0]}: guided answers are asked on the completions endpoint, which "
            "does not know it: leave it out, or set program.answer_format to free"
        )
    if isinstance(spec.thinking, int) and not record.is_vllm:
        raise EngineError(f"model.thinking: {spec.thinking}: {record.endpoint} takes on or off, as it is no vLLM")
    if remote.settings and record.chat and record.tokenizes:
        for *variants, error in list_switches(spec, record.model, may_reason=may_reason):
            first, second = [await remote.dialogue_tokens(DIALOGUE, settings) for settings in variants]
            if first == second:
                raise error


async def _send_once(server: Server, spec: ModelSpec, record: Capabilities, fields: dict[str, Any]) -> dict[str, Any]:
    """Send a short request with all settings, and return them, with the field under which no thought comes back if
    there shall be none.

    Raises `EngineError` with the server's own words for settings that it refuses, and for thoughts that come or stay
    out in spite of them.
    """
    names = ("temperature", "seed", "top_p", "top_k")
    own = {name: value for name in names if (value := getattr(spec, name)) is not None}
    own["max_tokens"] = max(_TOKENS, fields.get("min_tokens") or 0)
    pending = [switch_off(fields, off) for off in OFF_FIELDS] if spec.thinking == "off" else [fields]
    refusal: CallError | None = None
    answered = False
    for settings in pending:
        server.streams = False
        try:
            if not record.chat:
                await server.complete("Hello", {**own, **completion_fields(settings)}, spec.timeout_s)
                return settings
            body = rename_limit({**own, **settings, "messages": DIALOGUE}, record.limit)
            thinks = shows_thinking(await server.chat(body, spec.timeout_s))
        except CallError as fault:
            if isinstance(fault, CURABLE):
                raise
            refusal = refusal or fault
            continue
        answered = True
        if spec.thinking == "on" and not thinks and not record.tokenizes:
            raise EngineError(f"{record.model} does not think with model.thinking: on: leave it out")
        if not thinks or spec.thinking != "off":
            return settings
    if answered or refusal is None:
        raise still_thinks(record.model)
    keys = ", ".join(f"model.{name}" for name in spec.request_settings)
    message = " ".join(refusal.message.split())[:300]
    raise EngineError(f"{record.endpoint} refuses {keys}: {message}") from refusal


def with_served_name(spec: ModelSpec) -> ModelSpec:
    """Give the model the name that its servers give it if the spec leaves the name out; else return it unchanged.

    Waits for a server as a run does. Raises `EngineError` if none answers, or if it serves several models.
    """
    if spec.engine != "vllm" or spec.name is not None:
        return spec
    return spec.model_copy(update={"name": background_loop().run(_ask_name(spec))})


async def _ask_name(spec: ModelSpec) -> str:
    """Ask the first server that answers; whether the others serve the same is seen when they are asked."""
    endpoints = await wait_for_endpoints(spec)
    timeout_s, faults = min(TIMING.probe_silence_s, spec.timeout_s), list[EndpointSilentError]()
    for endpoint in endpoints:
        try:
            return await ask_name(endpoint, timeout_s=timeout_s, wait_s=spec.wait_s)
        except EndpointSilentError as error:
            faults.append(error)
    raise faults[0]


def known_model(spec: ModelSpec) -> dict[str, Any]:
    """Describe the model, as far as it is known before it answers, as JSON-ready data for a run's identity.

    Paths, addresses and settings of the connection are left out: the same model may lie elsewhere. Raises
    `EngineError` if the weights are not there, and `SpecError` if a script cannot be read.
    """
    if spec.engine == "embedded":
        weights, dtype = find_weights(spec), pick_dtype(spec.dtype, pick_device(spec.device))
        return {"engine": spec.engine, "weights": weights.revision, "dtype": dtype}
    if spec.engine == "scripted":
        assert spec.path is not None  # noqa: S101 - the spec's own validator requires it
        return {"engine": spec.engine, "script": script_digest(spec.path)}
    if spec.is_own:
        return {"engine": hash_source(spec.engine, ENGINES), "args": spec.args, "name": spec.name}
    return {"engine": spec.engine, "name": spec.name, "revision": spec.revision}
