"""A provider's model: what litellm's tables say of it, and what a handful of short requests show before the first
question.

Each request is asked under the spec's own settings. What a model refuses is left out where a run can do without it, and
named with the way out where it cannot. litellm's own clients carry the requests.
"""

import asyncio
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from medexam.errors import (
    AuthError,
    BillingError,
    CallError,
    EndpointSilentError,
    EndpointUnreachableError,
    EngineError,
    ProviderError,
    RateLimitError,
    UnsupportedFeatureError,
    UnsupportedModelError,
)
from medexam.model_calls import ChatMessage, Generation, read_sampling
from medexam.model_identity import Behaviour, ModelIdentity
from medexam.serve.choice_schema import IMPOSSIBLE, OPENING, ChoiceForm, find_choice_form
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.discovery.requests import DIALOGUE, HOSTED_TOKENS, keeps_system, reads_pictures, shows_thinking
from medexam.serve.engines.client import ClientEngine, choice_call, fit_fields
from medexam.serve.engines.litellm_calls import get_litellm, keep_reply, read_chat
from medexam.serve.network.endpoints import read_api_key
from medexam.serve.network.retry import CURABLE, TIMING, ask_again
from medexam.serve.pool import Server, ServerPool
from medexam.serve.request_settings import THINKING_TOKENS, still_thinks, thinking_room
from medexam.specs import EngineNeeds, ModelSpec

_REFUSALS = (500, 501)
"""What some answer to a field that they do not take; asking again would not help."""
_PATIENCE_S = 2.5
"""Seconds after which a provider that answers no first request is not asked again."""
_STOP = "[[ ##"
"""A text at which replies of a program end, which is sent to see whether such texts are taken."""
_HELLO: ChatMessage = {"role": "user", "content": "Say hello."}
_DISPENSABLE = (("seed",), ("stop",), ("seed", "stop"))
"""Fields that a run can do without, as they are left out of a request that was refused."""
_MESSAGE_CHARS = 600
"""Characters of a fault that are shown."""
_ADVICE = re.compile(r"\n\n|\. To drop (these|unsupported)|\. Please pass (an|one of) `api_key`")


def read_tables(model: str) -> Capabilities:
    """Return what litellm's tables say of a provider's model, with nothing asked.

    Raises `EngineError` if litellm knows no provider for it.
    """
    litellm = get_litellm()
    try:
        name, provider, *_ = litellm.get_llm_provider(model=model)
    except Exception as error:
        raise EngineError(
            f"litellm knows no provider for {model!r}: write PROVIDER/MODEL, such as openai/gpt-4o-mini; hf:{model} is "
            "a model of the hub in this process"
        ) from error
    fields = tuple(sorted(litellm.get_supported_openai_params(model=name, custom_llm_provider=provider) or ()))
    facts: dict[str, Any] = {}
    with suppress(Exception):  # litellm raises nothing more special for a model that its list lacks
        facts = litellm.get_model_info(model)
    row = _read_row(provider)
    waits_for_word = "thinks" in row or "anthropic" in str(facts.get("litellm_provider"))
    return Capabilities(
        model=model,
        provider=provider,
        probed=False,
        system_turn=None,
        fields=fields,
        limit="max_completion_tokens" if "max_completion_tokens" in fields else "max_tokens",
        seeds="seed" in fields,
        stops="stop" in fields,
        takes_schema="response_format" in fields and bool(litellm.supports_response_schema(model)),
        takes_tools="tools" in fields and bool(litellm.supports_function_calling(model)),
        thinks=bool(litellm.supports_reasoning(model)) and not waits_for_word,
        sees=facts.get("supports_vision"),
        prefills=facts.get("supports_assistant_prefill"),
        prompt_usd=facts.get("input_cost_per_token") or None,
        completion_usd=facts.get("output_cost_per_token") or None,
        variables=tuple(row.get("variables", (f"{provider.upper()}_API_KEY",))),
        missing=tuple(litellm.validate_environment(model=model)["missing_keys"]),
    )


def _read_row(provider: str) -> dict[str, Any]:
    rows: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("providers.yaml").read_text(encoding="utf-8"))
    return dict(rows.get(provider, {}))


def _build_fields(spec: ModelSpec, provider: str) -> dict[str, Any]:
    """Build the fields of each request that a spec adds, in litellm's words, which it turns into the provider's."""
    extra = dict(spec.extra_body) | ({} if spec.min_p is None else {"min_p": spec.min_p})
    fields: dict[str, Any] = {} if spec.reasoning_effort is None else {"reasoning_effort": spec.reasoning_effort}
    thinking, switch_by = spec.thinking, _read_row(provider).get("switch")
    if thinking == "off" and switch_by == "effort":
        fields["reasoning_effort"] = "none"
    elif thinking is not None:
        # Anthropic's API takes no thinking without a budget.
        tokens = thinking if isinstance(thinking, int) else None if switch_by == "body" else THINKING_TOKENS
        budget = {} if tokens is None else {"budget_tokens": tokens}
        switch = {"type": "disabled"} if thinking == "off" else {"type": "enabled", **budget}
        (extra if switch_by == "body" else fields)["thinking"] = switch
    return {**fields, **({"extra_body": extra} if extra else {})}


async def connect_provider(spec: ModelSpec, needs: EngineNeeds) -> ClientEngine:
    """Connect the engine of a provider's model, on the background loop; raises as `build_engine` does."""
    await asyncio.to_thread(get_litellm)
    probe = ProviderProbe(spec)
    try:
        # What no request can show is told before the first one.
        probe.record.check(replace(needs, guided=False, pictures=False))
        identity = await probe.look(needs)
        probe.record.check(needs)
    except BaseException:
        await probe.server.close()
        raise

    async def look(_: Server) -> ModelIdentity:
        try:
            return await probe.identify()
        except EndpointUnreachableError as error:
            raise EndpointSilentError(str(error)) from error

    pool = ServerPool([probe.server], spec.timeout_s, identity=identity, look=look)
    return ClientEngine(pool, probe.record, probe.settings, room=probe.room, has_price=spec.price is not None)


async def examine_provider(spec: ModelSpec) -> tuple[Capabilities, str | None]:
    """Find out everything about a provider's model, and why it cannot be asked; None if it can."""
    probe, fault = ProviderProbe(spec), None
    try:
        await probe.look(EngineNeeds(guided=True, pictures=True))
    except EngineError as error:
        fault = str(error)
    finally:
        await probe.server.close()
    return probe.record, fault


class ProviderProbe:
    """Asks one model, and keeps what it finds out; raises `EngineError` for a name of no provider."""

    def __init__(self, spec: ModelSpec) -> None:
        assert spec.name is not None  # noqa: S101 - the spec's own validator requires it
        self._spec, self.record = spec, read_tables(spec.name)
        provider = str(self.record.provider)
        connection: dict[str, Any] = {}
        if spec.api_key_env:
            connection["api_key"] = read_api_key(spec.api_key_env)
        if provider == "anthropic":
            from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

            # litellm rewrites why a reply ended, so the replies are kept as they came.
            hooks: dict[str, Any] = {"response": [keep_reply]}
            connection["client"] = AsyncHTTPHandler(timeout=spec.timeout_s, event_hooks=hooks)
        self.server = Server(spec.name, connection)
        self.settings = _build_fields(spec, provider)
        """Fields of every request."""
        self._name = spec.name
        """The model as its replies name it."""
        self.room = thinking_room(spec, thinks=bool(self.record.thinks))
        """Tokens that a reply may have for thinking, beside its own budget."""
        self._temperature = 0.0
        """The temperature of all requests but the first."""
        # The spec's own budget may have to hold the thinking too.
        self._budget = max(HOSTED_TOKENS, spec.max_tokens or 0) if self.record.thinks else HOSTED_TOKENS
        # A reply that thinks takes longer, and all others are short.
        self._silence_s = TIMING.probe_silence_s * (2 if self.record.thinks else 1)
        self._refusal = CallError()
        """What the latest request that was refused met."""

    def _note(self, **fields: Any) -> None:
        self.record = self.record.model_copy(update={"probed": True, **fields})

    async def look(self, needs: EngineNeeds) -> ModelIdentity:
        """Find out what a run may need, and which model it is; raises `EngineError` if the model cannot be asked."""
        record = self.record
        if "api_key" not in self.server.connection and (request := record.missing_key) is not None:
            raise EngineError(request)
        try:
            await self._start()
            if needs.guided:
                await self._find_choice_form()
            if needs.pictures:
                self._note(sees=await reads_pictures(self._ask))
            identity = await self.identify()
            await self._find_rules()
        except ImportError as error:
            lack = f"{record.model}: litellm lacks a package that this provider needs: {_cite(error)}"
            raise EngineError(lack) from None
        except CallError as error:
            raise EngineError(
                f"{record.model} takes no request: {_cite(error)}; set {', '.join(record.variables)} right in the "
                "environment, or a key's variable in model.api_key_env, and check the model's name and the account"
            ) from None
        return identity

    async def _try(self, fields: dict[str, Any], refusing: tuple[int, ...] = ()) -> Generation | None:
        """Ask for a reply as `_ask` does; None if the request is refused."""
        raw = await self._ask(fields, refusing)
        return read_chat(raw, self.record.model) if raw else None

    async def _ask(
        self, fields: dict[str, Any], refusing: tuple[int, ...] = (), patience_s: float | None = None
    ) -> dict[str, Any]:
        """Ask for a reply's object; empty if the request is refused, with an HTTP status of `refusing` too.

        Raises `EndpointUnreachableError` if nothing answers.
        """
        call = {**self.settings, **fit_fields(self.record, fields, self.room)}
        timeout_s = min(self._spec.timeout_s, self._silence_s)

        async def attempt() -> dict[str, Any]:
            try:
                raw = await self.server.chat(call, timeout_s)
                read_chat(raw, self.record.model)
                return raw
            except CURABLE as fault:
                if fault.status in refusing:
                    raise ProviderError(fault.message, status=fault.status) from fault
                raise

        try:
            return await ask_again(attempt, timeout_s=timeout_s, patience_s=patience_s or self._silence_s)
        except CURABLE as fault:
            way_out = "; wait and ask again, or raise the account's quota" if isinstance(fault, RateLimitError) else ""
            message = f"{self.record.model} does not answer: {_cite(fault)}{way_out}"
            raise EndpointUnreachableError(message) from fault
        except (AuthError, BillingError):
            raise
        except (UnsupportedFeatureError, ProviderError) as error:
            self._refusal = error
            return {}

    def _dialogue(self, **fields: Any) -> dict[str, Any]:
        return {"messages": DIALOGUE, "temperature": self._temperature, "max_tokens": self._budget, **fields}

    async def _start(self) -> None:
        """Send the spec's settings once, and see whether the model thinks; raises `EngineError` for what it refuses."""
        spec, record = self._spec, self.record
        reply = await self._send_settings()
        thinks = shows_thinking(reply)
        if thinks and spec.thinking == "off":
            raise still_thinks(record.model)
        self._note(thinks=thinks or bool(record.thinks and spec.thinking != "off"))
        self.room = thinking_room(spec, thinks=bool(self.record.thinks))
        if spec.temperature and await self._try(self._dialogue(temperature=0.0)) is None:
            self._temperature = spec.temperature
            self._note(fixed_temperature=1.0 if spec.temperature == 1 else None)

    async def _send_settings(self) -> dict[str, Any]:
        """Send the spec's own settings once, with a short request, and note what of them the model does not take.

        Raises `EngineError` with the setting's name where it must stay.
        """
        spec, model = self._spec, self.record.model
        names = ("temperature", "seed", "top_p", "top_k")
        own = {name: value for name in names if (value := getattr(spec, name)) is not None}
        fields = {"messages": DIALOGUE, "max_tokens": self._budget, **own, "stop": list(spec.stop) or [_STOP]}
        if reply := await self._ask(fields, patience_s=_PATIENCE_S):
            return reply
        refusal, call_fields = self._refusal, fit_fields(self.record, fields, 0)
        if isinstance(refusal, UnsupportedModelError):
            raise refusal
        for dropped in _DISPENSABLE:
            fewer = {name: value for name, value in fields.items() if name not in dropped}
            if call_fields.keys() >= {*dropped} and (reply := await self._ask(fewer)):
                refusals = {**self.record.refusals, **dict.fromkeys(dropped, _cite(refusal))}
                self._note(refusals=refusals, **{f"{name}s": False for name in dropped})
                return reply
        unseeded = {name: value for name, value in fields.items() if name not in ("seed", "stop")}
        named_by_tables = isinstance(refusal, UnsupportedFeatureError) and "temperature" in str(refusal)
        if spec.temperature != 1 and (named_by_tables or await self._try({**unseeded, "temperature": 1.0})):
            self._note(fixed_temperature=1.0)
            raise EngineError(
                f"{model} takes no temperature of {spec.temperature:g}: set model.temperature: 1 ({_cite(refusal)})"
            ) from refusal
        settings = [name for name in ("top_p", "top_k") if name in own] + [*spec.request_settings]
        if not settings:
            raise refusal
        keys = ", ".join(f"model.{name}" for name in settings)
        raise EngineError(f"{model} refuses {keys}: {_cite(refusal)}") from refusal

    async def _find_choice_form(self) -> None:
        sampling = read_sampling({"max_tokens": self._budget, "temperature": self._temperature})

        async def ask(form: ChoiceForm, opening: str) -> Generation | None:
            record = self.record.model_copy(update={"choice_form": form})
            messages, fields = choice_call(record, [_HELLO], opening, IMPOSSIBLE, sampling)
            if (reply := await self._try({"messages": messages, **fields}, _REFUSALS)) is None:
                self._note(refusals={**self.record.refusals, form: _cite(self._refusal)})
            return reply

        form, prefills = await find_choice_form(ask, [OPENING, ""][self.record.prefills is False :])
        if form is not None:
            self._note(choice_form=form, prefills=prefills)

    async def identify(self) -> ModelIdentity:
        """Ask the fixed dialogue twice, and return how the provider names the model and what it replies.

        A model that refuses the dialogue is known by its name alone.
        """
        first, second = await asyncio.gather(*(self._try(self._dialogue()) for _ in "12"))
        if first is not None and second is not None:
            replies = [generation.words or generation.thinking or "" for generation in (first, second)]
            self._note(behaviour=Behaviour(reply=replies[0], noise=0.0 if len(set(replies)) == 1 else None))
            self._name = first.model or self._name
        return self.record.identity.model_copy(update={"name": self._name})

    async def _find_rules(self) -> None:
        """Find out whether the model takes a system message, an empty one, and two user messages in a row.

        A model that refuses even the dialogue that `identify` asks is taken to accept all.
        """
        if self.record.behaviour is None:
            return
        self._note(system_turn=await keeps_system(self._ask))
        first, second, empty = DIALOGUE[0], DIALOGUE[-1], {"role": "system", "content": ""}

        async def takes(*messages: ChatMessage) -> bool:
            return await self._try(self._dialogue(messages=list(messages))) is not None

        if not await takes(empty, first, second):
            repeats, takes_empty = await asyncio.gather(takes(first, second), takes(empty, second))
            self._note(repeated_turns=repeats, empty_system_turn=takes_empty)


def _cite(fault: Exception) -> str:
    """Return what a fault says, in a line, without litellm's advice for programs that call it."""
    return " ".join(_ADVICE.split(str(fault), maxsplit=1)[0].split())[:_MESSAGE_CHARS]
