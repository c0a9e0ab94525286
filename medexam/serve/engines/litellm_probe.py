"""What a hosted model honours, found out before the first question by a handful of short requests.

Each is asked under the spec's own settings. What a model refuses is left out where a run can do without it, and named
with the way out where it cannot. This module knows what is asked; the engine asks it.
"""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import httpx

from medexam.errors import (
    AnswerFormatError,
    AuthError,
    BillingError,
    CallError,
    EndpointUnreachableError,
    EngineError,
    ProviderError,
    ServerError,
    UnsupportedFeatureError,
    UnsupportedModelError,
)
from medexam.model_calls import ChatMessage, Generation, Sampling
from medexam.model_identity import Behaviour, ModelIdentity
from medexam.serve.chat_messages import no_sight
from medexam.serve.choice_schema import CHOICE_FORMS, IMPOSSIBLE, ChoiceForm
from medexam.serve.discovery.capabilities import HostedCapabilities
from medexam.serve.discovery.requests import (
    DIALOGUE,
    HOSTED_TOKENS,
    LIMITS,
    LOADING,
    find_limit,
    find_native_forms,
    keeps_system,
    reads_pictures,
    shows_thinking,
    tell_of_wait,
)
from medexam.serve.engines.hosted import check_needs
from medexam.serve.engines.litellm import LiteLLMEngine, cite, read_reply_choice
from medexam.serve.engines.litellm_calls import get_litellm
from medexam.serve.network.retry import CURABLE
from medexam.serve.request_settings import OFF_FIELDS, still_thinks, switch_off, thinking_room
from medexam.serve.timing import TIMING
from medexam.specs import EngineNeeds, ModelSpec

_REFUSALS = (500, 501)
"""What some servers answer to a field that they do not take; asking again would not help."""
_PATIENCE_S = 2.5
"""Seconds after which a provider that answers no first request is not asked again."""
_STOP = "[[ ##"
"""A text at which replies of a program end, which is sent to see whether such texts are taken."""
_HELLO: ChatMessage = {"role": "user", "content": "Say hello."}
_DISPENSABLE = (("seed",), ("stop",), ("seed", "stop"))
"""Fields that a run can do without, as they are left out of a request that was refused."""
_OPENING = "{Answer: "
"""The opening behind which an impossible choice is asked."""


async def connect_litellm(spec: ModelSpec, needs: EngineNeeds) -> LiteLLMEngine:
    """Connect the engine of a spec, on the background loop; raises as `build_engine` does."""
    check_needs(spec, needs)
    await asyncio.to_thread(get_litellm)
    engine = LiteLLMEngine(spec)
    probe = HostedProbe(engine, spec)
    try:
        await probe.start()
        if needs.guided:
            await probe.check_guided()
        if needs.pictures:
            await probe.check_sight()
        if needs.tools and spec.endpoints:
            # No table says whether an endpoint of one's own takes tools and schemas.
            takes_tools, takes_schema = await find_native_forms(partial(probe.ask, refusing=_REFUSALS))
            engine.note(takes_tools=takes_tools, takes_schema=takes_schema)
        await probe.identify()
        engine.identify = probe.identify
        await probe.find_rules()
    except BaseException as error:
        await engine.aclose()
        if isinstance(error, CallError | ImportError):
            raise EngineError(describe_refusal(engine.record, error)) from None
        raise
    engine.timeout_s, engine.patience_s, engine.room = spec.timeout_s, None, probe.room
    return engine


class HostedProbe:
    """Asks one model; what it finds out, it notes in the engine."""

    def __init__(self, engine: LiteLLMEngine, spec: ModelSpec) -> None:
        self._engine, self._spec = engine, spec
        self._own = bool(spec.endpoints)
        self._temperature = 0.0
        """The temperature of all requests but the first."""
        self._budget = HOSTED_TOKENS
        """Tokens of a reply; the spec's own may have to hold the thinking too."""
        if engine.record.thinks and not self._own:
            self._budget = max(HOSTED_TOKENS, spec.max_tokens or 0)
        self.room = engine.room
        """Tokens that replies of the run may think beside their budget."""
        self._refusal = CallError()
        """What the latest request that was refused met."""

    async def _try(
        self, fields: dict[str, Any], refusing: tuple[int, ...] = (), patience_s: float | None = None
    ) -> Generation | None:
        """Ask for a reply; None if the request is refused, with an HTTP status of `refusing` too.

        Raises `EndpointUnreachableError` if nothing answers, or if the endpoint redirects.
        """
        try:
            return await self._engine.chat(fields, refusing, patience_s)
        except CURABLE as error:
            raise self._engine.describe_loss(error) from error
        except (AuthError, BillingError):
            raise
        except (UnsupportedFeatureError, ProviderError) as error:
            if error.status and httpx.codes.is_redirect(error.status):
                raise EndpointUnreachableError(error.message) from error
            self._refusal = error
            return None

    async def ask(self, fields: dict[str, Any], refusing: tuple[int, ...] = ()) -> dict[str, Any]:
        """Ask for a reply as the chat endpoint's object, as far as probes read it; empty if it is refused."""
        generation = await self._try(fields, refusing)
        return {} if generation is None else _read(generation)

    def _dialogue(self, **fields: Any) -> dict[str, Any]:
        """Build the fields of a request for a short reply to the fixed dialogue."""
        return {"messages": DIALOGUE, "temperature": self._temperature, "max_tokens": self._budget, **fields}

    async def start(self) -> None:
        """Look for the key, wait for a first reply, and send the spec's settings once; raises as these do.

        A provider that is reached in other ways too, such as by the profile of a cloud, is asked without a key.
        """
        engine, spec = self._engine, self._spec
        if "api_key" not in engine.connection and (request := engine.record.missing_key) is not None:
            raise EngineError(request)
        if self._own:
            await self._wait_for_first()
        # A reply that thinks takes longer, and all others are short.
        silence_s = TIMING.probe_silence_s * (2 if engine.record.thinks else 1)
        engine.timeout_s, engine.patience_s = min(spec.timeout_s, silence_s), silence_s
        self._check_passable()
        if self._own and spec.thinking == "off":
            await self._switch_thinking_off()
        if self._own:
            limit = await find_limit(self.ask)
            engine.note(limit=limit, unlimited=limit is None)
        generation = await self._send_settings()
        thinks = bool(generation.thinking_tokens) or shows_thinking(_read(generation))
        if thinks and spec.thinking == "off":
            raise still_thinks(engine.model)
        by_tables = engine.record.thinks and spec.thinking != "off" and not self._own
        engine.note(thinks=thinks or by_tables)
        self.room = thinking_room(spec, thinks=engine.record.thinks)
        if not self._own:
            engine.room = self.room
        elif thinks:
            self._budget = max(HOSTED_TOKENS, spec.max_tokens or 0)
            engine.timeout_s = engine.patience_s = spec.timeout_s
            # A server's context may be small.
            greeting = {"messages": [_HELLO], "temperature": self._temperature}
            while self.room and await self._try({**greeting, "max_tokens": self._budget + self.room}) is None:
                self.room //= 2
        if spec.temperature and await self._try(self._dialogue(temperature=0.0)) is None:
            self._temperature = spec.temperature
            engine.note(fixed_temperature=1.0 if spec.temperature == 1 else None)

    async def _wait_for_first(self) -> None:
        """Wait for the first reply of an endpoint of one's own, which may load its model for it, and say so.

        What it replies is not read. Raises `EndpointUnreachableError` if none comes within `model.wait_s`.
        """
        engine, loop = self._engine, asyncio.get_running_loop()
        engine.timeout_s = engine.patience_s = max(TIMING.probe_silence_s, self._spec.wait_s)
        notice = loop.call_later(TIMING.notice_s, tell_of_wait, self._spec.endpoints[0], engine.timeout_s)
        deadline = loop.time() + engine.timeout_s
        try:
            while True:
                try:
                    await engine.chat({"messages": DIALOGUE[-1:], "max_tokens": HOSTED_TOKENS})
                except CURABLE as fault:
                    loads = fault.status in LOADING and "load" in fault.message.lower()
                    if isinstance(fault, ServerError) and loads and loop.time() < deadline:
                        await asyncio.sleep(TIMING.poll_s)
                        continue
                    if fault.status not in _REFUSALS:
                        raise engine.describe_loss(fault) from fault
                except CallError:
                    # What it refuses is found out by the requests that follow.
                    pass
                return
        finally:
            notice.cancel()

    async def _switch_thinking_off(self) -> None:
        """Find the field under which no thought comes back, and have all requests carry it.

        A field that a refusal names is tried first. Raises `EngineError` if the model thinks under each.
        """
        engine, pending, settings = self._engine, list(OFF_FIELDS), self._engine.settings
        answered = False
        while pending:
            fields = pending.pop(0)
            engine.settings = {**settings, "extra_body": switch_off(settings["extra_body"], fields)}
            engine.streams = False
            for limit in LIMITS:
                generation = await self._try({"messages": DIALOGUE, "temperature": 0, limit: HOSTED_TOKENS})
                if generation is None:
                    pending.sort(key=lambda candidate: not any(name in self._refusal.message for name in candidate))
                    continue
                answered = True
                if not shows_thinking(_read(generation)):
                    return
                break
        engine.settings = settings
        if answered:
            raise still_thinks(engine.model)

    def _check_passable(self) -> None:
        """Raise `EngineError` for a setting that litellm's tables say cannot be passed on."""
        spec, engine = self._spec, self._engine
        settings = {"top_p": "top_p"} if spec.top_p else {}
        if not self._own:
            effort = "thinking" if spec.reasoning_effort is None else "reasoning_effort"
            settings |= {"reasoning_effort": effort} if "reasoning_effort" in engine.settings else {}
            settings |= {"thinking": "thinking"} if "thinking" in engine.settings else {}
        if unsupported := [setting for field, setting in settings.items() if not engine.record.takes(field)]:
            raise EngineError(
                f"{engine.model}: litellm cannot pass model.{' and model.'.join(unsupported)} on to "
                f"{engine.record.provider}: leave it out"
            )
        if isinstance(spec.thinking, int) and self._own:
            raise EngineError(
                f"model.thinking: {spec.thinking}: an endpoint behind engine litellm takes on or off; use engine vllm, "
                "or name the server's own field in model.extra_body"
            )

    async def _send_settings(self) -> Generation:
        """Send the spec's own settings once, with a short request, and note what of them the model does not take.

        Raises `EngineError` with the setting's name where it must stay.
        """
        engine, spec = self._engine, self._spec
        names = ("temperature", "seed", "top_p", "top_k")
        own = {name: value for name in names if (value := getattr(spec, name)) is not None}
        fields = {"messages": DIALOGUE, "max_tokens": self._budget, **own, "stop": list(spec.stop) or [_STOP]}
        generation = await self._try(fields, patience_s=None if self._own else _PATIENCE_S)
        if generation is not None:
            return generation
        refusal, call_fields = self._refusal, engine.fit(fields)
        if isinstance(refusal, UnsupportedModelError):
            raise refusal
        for dropped in _DISPENSABLE:
            fewer = {name: value for name, value in fields.items() if name not in dropped}
            if call_fields.keys() >= {*dropped} and (generation := await self._try(fewer)) is not None:
                refusals = {**engine.record.refusals, **dict.fromkeys(dropped, cite(refusal))}
                engine.note(refusals=refusals, **{f"{name}s": False for name in dropped})
                return generation
        unseeded = {name: value for name, value in fields.items() if name not in ("seed", "stop")}
        named_by_tables = isinstance(refusal, UnsupportedFeatureError) and "temperature" in str(refusal)
        if spec.temperature != 1 and (named_by_tables or await self._try({**unseeded, "temperature": 1.0})):
            engine.note(fixed_temperature=1.0)
            raise EngineError(
                f"{engine.model} takes no temperature of {spec.temperature:g}: set model.temperature: 1 "
                f"({cite(refusal)})"
            ) from refusal
        settings = [name for name in ("top_p", "top_k") if name in own] + [*spec.request_settings]
        if not settings:
            raise refusal
        keys = ", ".join(f"model.{name}" for name in settings)
        raise EngineError(f"{engine.model} refuses {keys}: {cite(refusal)}") from refusal

    async def check_guided(self) -> None:
        """Ask for an impossible choice; raises `AnswerFormatError` unless it comes back.

        Raises `EndpointUnreachableError` for an endpoint that redirects, or that answers nothing else either.
        """
        engine, verdicts = self._engine, list[str]()
        openings = [""] if engine.record.prefills is False else [_OPENING, ""]
        for form in CHOICE_FORMS:
            for opening in openings:
                generation = await self._choose(form, opening)
                if generation is not None:
                    break
            if generation is not None and read_reply_choice(generation, IMPOSSIBLE) is not None:
                engine.note(guided_by=form, prefills=bool(opening))
                return
            replied = None if generation is None else f"is ignored: it replied {generation.words[:80]!r}"
            verdicts.append(f"{form} {replied or f'is refused: {cite(self._refusal)}'}")
        if not engine.answered:
            await self.identify()
        raise AnswerFormatError(
            f"{engine.model}: this model cannot be held to an answer format ({'; '.join(verdicts)}); "
            "set program.answer_format to free, or serve an open model with engine vllm"
        )

    async def _choose(self, form: ChoiceForm, opening: str) -> Generation | None:
        engine = self._engine
        sampling = Sampling(max_tokens=self._budget, temperature=self._temperature)
        fields = engine.choice_request([dict(_HELLO)], opening, IMPOSSIBLE, sampling, form)
        room, engine.room = engine.room, self.room
        try:
            return await self._try(fields, _REFUSALS)
        finally:
            engine.room = room

    async def check_sight(self) -> None:
        """Show a tiny picture; raises `EngineError` unless it is taken and read."""
        sees = await reads_pictures(self.ask)
        self._engine.note(sees=sees)
        if not sees:
            raise EngineError(f"engine litellm asks {no_sight(self._engine.model)}")

    async def identify(self) -> None:
        """Ask the fixed dialogue twice, and note how the provider names the model and what it replies.

        A model that refuses the dialogue is known by its name alone. Raises `EndpointUnreachableError` if nothing
        answers, or if the endpoint redirects.
        """
        first, second = await asyncio.gather(*(self._try(self._dialogue()) for _ in "12"))
        if first is None or second is None:
            return
        replies = [generation.words or generation.thinking or "" for generation in (first, second)]
        behaviour = Behaviour(reply=replies[0], noise=0.0 if len(set(replies)) == 1 else None)
        self._engine.identity = ModelIdentity(engine="litellm", name=first.model, behaviour=behaviour)

    async def find_rules(self) -> None:
        """Find out whether the model takes an empty system message and two user messages in a row.

        A model that refuses even the dialogue that `identify` asks is taken to accept both.
        """
        engine, first, second = self._engine, DIALOGUE[0], DIALOGUE[-1]
        empty = {"role": "system", "content": ""}
        if engine.identity.behaviour is None:
            return
        engine.rules = replace(engine.rules, system=await keeps_system(self.ask))
        engine.note(system_turn=engine.rules.system)

        async def takes(messages: list[ChatMessage]) -> bool:
            return await self._try(self._dialogue(messages=messages)) is not None

        if not await takes([empty, first, second]):
            repeats, takes_empty = await asyncio.gather(takes([first, second]), takes([empty, second]))
            engine.rules = replace(engine.rules, repeats=repeats, empty_system=takes_empty)


def _read(generation: Generation) -> dict[str, Any]:
    """Return a reply as the chat endpoint's object, as far as probes read it."""
    usage = {"prompt_tokens": generation.prompt_tokens, "completion_tokens": generation.completion_tokens}
    calls = [call.name for call in generation.tool_calls]
    message = {"content": generation.words, "reasoning": generation.thinking or "", "tool_calls": calls}
    return {"choices": [{"message": message, "finish_reason": generation.finish_reason}], "usage": usage}


def describe_refusal(record: HostedCapabilities, error: Exception) -> str:
    """Say why a model cannot be asked at all, in one line with the way out."""
    if isinstance(error, ImportError):
        return f"{record.model}: litellm lacks a package that this provider needs: {cite(error)}"
    way_out = "check the model's name, the account, and the provider's settings in the environment"
    if isinstance(error, AuthError):
        variables = f"set {', '.join(record.variables)}" if record.variables else "set it"
        way_out = f"{variables} right in the environment, or name a key's variable in model.api_key_env"
    elif isinstance(error, BillingError):
        way_out = "raise the account's quota, or ask another provider"
    return f"{record.model} takes no request: {cite(error)}; {way_out}"
