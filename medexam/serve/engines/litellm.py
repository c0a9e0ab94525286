"""The `litellm` engine: any hosted model that litellm reaches.

Providers show neither tokens nor templates, so a choice is asked as a JSON schema with one field. Whether and in which
form the model honours it is found out once at the start, with an impossible choice. The opening words of a reply
are shown as an assistant message before a choice; a free reply cannot be made to continue them, which is an error.

litellm's own HTTP clients follow redirects. A user's own endpoint is therefore asked by OpenAI's API only: then litellm
accepts a client of ours, which follows none. This module knows litellm's calls, not what is asked.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import httpx
from dspy.lm15 import (
    AuthError,
    BillingError,
    Config,
    InvalidRequestError,
    LM15Error,
    Message,
    ProviderError,
    Request,
    Response,
    TransportError,
    UnsupportedFeatureError,
    UnsupportedModelError,
)

from medexam.errors import AnswerFormatError, EndpointUnreachableError, EngineError
from medexam.model_calls import ChatMessage
from medexam.model_identity import Behaviour, ModelIdentity
from medexam.serve.chat_messages import (
    TemplateRules,
    continues_plain_text,
    no_sight,
    put_pictures,
    take_pictures,
    to_messages,
)
from medexam.serve.choice_schema import (
    IMPOSSIBLE,
    SCHEMA_FORMS,
    SCHEMA_TOKENS,
    SchemaForm,
    read_choice,
    response_format,
)
from medexam.serve.contract import CHOICE, EngineInfo
from medexam.serve.discovery.behaviour import DIALOGUE, HOSTED_TOKENS
from medexam.serve.discovery.sight import reads_pictures
from medexam.serve.engines.hosted import HostedEngine, check_needs
from medexam.serve.engines.litellm_calls import call_litellm, get_litellm, is_withheld, reading_reply, to_response
from medexam.serve.network.connections import open_model_client
from medexam.serve.network.endpoints import NO_KEY, Endpoint, normalise_address, read_key
from medexam.serve.network.retry import CURABLE, ask_again, is_refusal
from medexam.serve.pool.adaptive_limit import AdaptiveLimit
from medexam.serve.request_settings import hosted_fields
from medexam.specs import EngineNeeds, ModelSpec

E = TypeVar("E", bound="LiteLLMEngine")

_INITIAL = 16
"""Requests in flight at first: hosted providers limit rates."""
_SAID = 600
"""Characters of a refusal that are shown."""
_REFUSALS = (500, 501)
"""What some servers answer to a field that they do not take; asking again would not help."""


async def connect_litellm(spec: ModelSpec, needs: EngineNeeds, sharers: int = 1) -> "LiteLLMEngine":
    """The engine of a spec, on the background loop; raises as `build_engine` does."""
    check_needs(spec, needs)
    await asyncio.to_thread(get_litellm)
    return await look(LiteLLMEngine(spec, sharers), spec, needs)


async def look(engine: E, spec: ModelSpec, needs: EngineNeeds) -> E:
    """The engine, after it has found out what the model honours; it is closed if the model cannot be used."""
    try:
        engine.check_key()
        await engine.check_settings(spec)
        if needs.guided:
            await engine.check_guided()
        if needs.pictures:
            await engine.check_sight()
        await engine.identify()
        await engine.find_rules()
    except BaseException as error:
        await engine.close()
        if isinstance(error, LM15Error | ImportError):
            raise EngineError(_describe_refusal(engine.model, error)) from None
        raise
    return engine


def _describe_refusal(model: str, error: Exception) -> str:
    """Why a model cannot be asked at all, in one line with the way out."""
    # Behind an empty line litellm gives advice for programs that call it.
    said = " ".join(str(error).partition("\n\n")[0].split())[:_SAID]
    if isinstance(error, ImportError):
        return f"{model}: litellm lacks a package that this provider needs: {said}"
    match error:
        case AuthError():
            way_out = "set it right in the environment, or name a key's variable in model.api_key_env"
        case BillingError():
            way_out = "raise the account's quota, or ask another provider"
        case _:
            way_out = "check the model's name, the account, and the provider's settings in the environment"
    return f"{model} takes no request: {said}; {way_out}"


class LiteLLMEngine(HostedEngine):
    """An engine of a provider, or of an endpoint of one's own.

    Raises `EngineError` for a name that litellm knows no provider for, and for an endpoint of one's own with a provider
    that does not speak OpenAI's API.
    """

    kind: ClassVar[str] = "litellm"
    """The engine's name in specs and records."""

    def __init__(self, spec: ModelSpec, sharers: int = 1) -> None:
        """`sharers` processes ask the same provider."""
        assert spec.name is not None  # noqa: S101 - the spec's own validator requires it
        super().__init__(AdaptiveLimit(spec.timeout_s, initial=_INITIAL, sharers=sharers))
        self.model = spec.name
        self.timeout_s = spec.timeout_s
        self._address = normalise_address(spec.endpoints[0]) if spec.endpoints else None
        self._asked_as = self.model
        """What litellm is asked for: `openai/NAME` at an endpoint of one's own."""
        self._client: Any = None
        self.connection: dict[str, Any] = {}
        name, provider = self.find_provider()
        if spec.api_key_env or spec.api_key_file or self._address:
            # Without a key of its own an endpoint gets none: the provider's usual one is for the provider alone.
            self.connection["api_key"] = read_key(spec.api_key_env, file=spec.api_key_file) or NO_KEY
        if self._address:
            self._check_dialect(name, provider)
            self._asked_as = f"openai/{name}"
            self._client = open_model_client(Endpoint(self._address, self.connection["api_key"]), spec.timeout_s)
            # Some models of OpenAI's are asked through its responses API otherwise, which takes no client.
            self.connection |= {
                "api_base": self._address,
                "client": self._client,
                "_skip_responses_api_bridge": True,
            }
        self.settings = hosted_fields(spec)
        """Fields of every request."""
        self._answered = False
        self._guided = False
        self._form: SchemaForm = SCHEMA_FORMS[0]
        self._rules = TemplateRules(system=True, repeats=True, empty_system=True)
        self._identity = ModelIdentity(engine=self.kind, name=self.model)

    async def answer(self, request: Request) -> Response:
        """One reply to one request."""
        from dspy.clients.lm15_boundary import request_kwargs

        request, pictures = take_pictures(request)
        said, prefill = to_messages(request)
        messages = put_pictures(self._rules.fit(said), pictures)
        extensions = dict(request.config.extensions or {})
        if continues_plain_text(request):
            raise UnsupportedFeatureError(
                f"engine {self.kind} continues no plain text", feature="config.extensions.plain"
            )
        choices = extensions.pop(CHOICE, None)
        if choices is not None:
            return await self._choose(messages, prefill, tuple(choices), request.config)
        if prefill:
            raise UnsupportedFeatureError(
                f"engine {self.kind} cannot make a provider continue given words; use engine vllm or embedded",
                feature="messages",
            )
        fields = request_kwargs(request, "chat")
        fields["messages"] = messages
        if request.config.top_k is not None:
            fields["top_k"] = request.config.top_k
        return await self._chat(fields)

    def check_key(self) -> None:
        """Raise `EngineError` where a provider's key is in no variable that litellm reads.

        A provider that is reached in other ways too, such as by the profile of a cloud, is asked without a check.
        """
        if self.connection:
            return
        missing = get_litellm().validate_environment(model=self.model)["missing_keys"]
        if missing and all(name.endswith("_API_KEY") for name in missing):
            raise EngineError(
                f"{self.model} needs a key: set {' or '.join(missing)} in the environment, or name another variable in "
                "model.api_key_env"
            )

    async def check_settings(self, spec: ModelSpec) -> None:
        """Raise `EngineError` for a setting that litellm cannot pass on to this model, or that the model refuses.

        Settings of the spec's own are sent once, with a short request.
        """
        name, provider = self.find_provider()
        known = get_litellm().get_supported_openai_params(model=name, custom_llm_provider=provider) or []
        own = self._address is not None
        asked = [name for name in ("top_p", "stop") if getattr(spec, name)]
        asked += [name for name in ("reasoning_effort", "thinking") if name in self.settings and not own]
        if lacking := [name for name in asked if name not in known]:
            raise EngineError(
                f"{self.model}: litellm cannot pass model.{' and model.'.join(lacking)} on to {provider}: leave it out"
            )
        if isinstance(spec.thinking, int) and own:
            raise EngineError(
                f"model.thinking: {spec.thinking}: an endpoint behind engine litellm takes on or off; use engine vllm, "
                "or name the server's own field in model.extra_body"
            )
        given = {name: value for name in ("top_p", "top_k") if (value := getattr(spec, name)) is not None}
        if spec.stop:
            given["stop"] = list(spec.stop)
        if not (given or self.settings):
            return
        tokens = HOSTED_TOKENS + (spec.thinking if isinstance(spec.thinking, int) else 0)
        try:
            await self._chat({"messages": DIALOGUE, "temperature": spec.temperature, "max_tokens": tokens, **given})
        except CURABLE as error:
            raise self._lost(error) from error
        except (InvalidRequestError, UnsupportedFeatureError, ProviderError) as error:
            if error.status and httpx.codes.is_redirect(error.status):
                raise EndpointUnreachableError(error.message) from error
            named = [*(f"model.{name}" for name in given), *(f"model.{name}" for name in spec.request_settings)]
            said = " ".join(str(error).split())[:300]
            raise EngineError(f"{self.model} refuses {', '.join(named)}: {said}") from error

    async def check_guided(self) -> None:
        """Ask for an impossible choice; raises `AnswerFormatError` unless it comes back.

        Raises `EndpointUnreachableError` for an endpoint that redirects, or that answers nothing else either.
        """
        said = {form: await self._try_form(form) for form in SCHEMA_FORMS if not self._guided}
        if not self._guided:
            if not self._answered:
                await self.identify()
            found = "; ".join(f"{form} {what}" for form, what in said.items())
            raise AnswerFormatError(
                f"{self.model}: this model cannot be held to an answer format ({found}); "
                "set program.answer_format to free, or serve an open model with engine vllm"
            )

    async def _try_form(self, form: SchemaForm) -> str:
        """What came of an impossible choice, in words; it is remembered if the choice came back."""
        self._form = form
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Say hello."}]
        fields = self._choice_fields(messages, "", IMPOSSIBLE, Config(temperature=0.0, max_tokens=16))
        try:
            text = (await self._chat(fields, refusing=_REFUSALS)).text
        except CURABLE as error:
            raise self._lost(error) from error
        except (AuthError, BillingError, UnsupportedModelError):
            raise
        except (UnsupportedFeatureError, ProviderError) as error:
            if error.status and httpx.codes.is_redirect(error.status):
                raise EndpointUnreachableError(error.message) from error
            return f"is refused: {' '.join(str(error).split())[:_SAID]}"
        self._guided = read_choice(text, IMPOSSIBLE) is not None
        return "is honoured" if self._guided else f"is ignored: it replied {(text or '')[:80]!r}"

    async def check_sight(self) -> None:
        """Show a tiny picture; raises `EngineError` unless it is taken and read."""

        async def ask(fields: dict[str, Any]) -> dict[str, Any]:
            try:
                response = await self._chat(fields)
            except (InvalidRequestError, UnsupportedFeatureError):
                return {}
            return {"choices": [response.text], "usage": {"prompt_tokens": response.usage.input_tokens}}

        try:
            sees = await reads_pictures(ask)
        except CURABLE as error:
            raise self._lost(error) from error
        if not sees:
            raise EngineError(f"engine {self.kind} asks {no_sight(self.model)}")

    async def identify(self) -> None:
        """Ask the fixed dialogue twice, and note how the provider names the model and what it replies.

        A model that refuses the dialogue's settings is known by its name alone. Raises `EndpointUnreachableError` if
        nothing answers, or if the endpoint redirects.
        """
        asked = {"messages": DIALOGUE, "temperature": 0, "max_tokens": HOSTED_TOKENS}
        try:
            first, second = await asyncio.gather(self._chat(dict(asked)), self._chat(dict(asked)))
        except CURABLE as error:
            raise self._lost(error) from error
        except (InvalidRequestError, UnsupportedFeatureError) as error:
            if error.status and httpx.codes.is_redirect(error.status):
                raise EndpointUnreachableError(error.message) from error
            return
        replies = [one.text or "" for one in (first, second)]
        behaviour = Behaviour(reply=replies[0], noise=0.0 if len(set(replies)) == 1 else None)
        self._identity = ModelIdentity(engine=self.kind, name=first.model, behaviour=behaviour)

    async def find_rules(self) -> None:
        """Find out whether the model takes an empty system message and two user messages in a row.

        A model that refuses even the dialogue that `identify` asks is taken to accept both.
        """
        empty, first, second = {"role": "system", "content": ""}, DIALOGUE[0], DIALOGUE[-1]
        if self._identity.behaviour is None or await self._takes([empty, first, second]):
            return
        repeats, takes_empty = await asyncio.gather(self._takes([first, second]), self._takes([empty, second]))
        self._rules = replace(self._rules, repeats=repeats, empty_system=takes_empty)

    async def _takes(self, messages: list[ChatMessage]) -> bool:
        try:
            await self._chat({"messages": messages, "temperature": 0, "max_tokens": HOSTED_TOKENS})
        except (InvalidRequestError, UnsupportedFeatureError):
            return False
        except CURABLE as error:
            raise self._lost(error) from error
        return True

    def info(self) -> EngineInfo:
        """What really runs."""
        from importlib.metadata import version

        return EngineInfo(
            engine=self.kind,
            model=self.model,
            identity=self._identity,
            endpoints=(self._address,) if self._address else (),
            guided_by="structured_outputs" if self._guided else None,
            details={"litellm": version("litellm"), **self._rules.details},
        )

    async def close(self) -> None:
        """Close the connections to an endpoint of one's own; litellm keeps and closes those to providers itself."""
        if self._client is not None:
            await self._client.close()

    async def _choose(
        self, messages: list[dict[str, Any]], prefill: str, choices: Sequence[str], config: Config
    ) -> Response:
        response = await self._chat(self._choice_fields(messages, prefill, choices, config))
        if is_withheld(response):
            return response
        chosen = read_choice(response.text, choices)
        if chosen is None:
            raise ProviderError(
                f"{self.model} replied {(response.text or '')[:200]!r} instead of one of {list(choices)}"
            )
        return replace(response, message=Message.assistant(chosen), finish_reason="stop")

    def _choice_fields(
        self, messages: list[dict[str, Any]], prefill: str, choices: Sequence[str], config: Config
    ) -> dict[str, Any]:
        opening: list[dict[str, Any]] = [{"role": "assistant", "content": prefill}] if prefill.strip() else []
        fields = {
            "messages": messages + opening,
            "temperature": config.temperature,
            "seed": config.seed,
            "max_tokens": (config.max_tokens or 0) + SCHEMA_TOKENS,
            "response_format": response_format(choices, self._form),
        }
        return {name: value for name, value in fields.items() if value is not None}

    async def _chat(self, fields: dict[str, Any], refusing: tuple[int, ...] = ()) -> Response:
        """One reply; an HTTP status of `refusing` is not asked again."""
        call = {**self.settings, **fields, **self.connection, "timeout_s": self.timeout_s}

        async def attempt() -> Response:
            try:
                raw = await call_litellm("acompletion", self._asked_as, **call)
                self._answered = True
                with reading_reply():
                    return to_response(raw, self.model)
            except CURABLE as fault:
                if is_refusal(fault):
                    self.limit.record_refusal()
                if fault.status in refusing:
                    raise ProviderError(fault.message, status=fault.status) from fault
                raise

        return await ask_again(attempt, timeout_s=self.timeout_s)

    def _lost(self, fault: LM15Error) -> EndpointUnreachableError:
        """What to raise where asking again did not help."""
        if self._address and self._answered and isinstance(fault, TransportError):
            return EndpointUnreachableError(
                f"the server at {self._address} answered, and then died or fell silent ({fault.message}); look into "
                "its log, and start it again"
            )
        return EndpointUnreachableError(f"{self.model} does not answer: {fault.message}")

    def find_provider(self) -> tuple[str, str]:
        """The provider's own name of the model and the provider's; raises if litellm knows none."""
        try:
            name, provider, *_ = get_litellm().get_llm_provider(model=self.model, api_base=self._address)
        except Exception as error:
            raise EngineError(
                f"litellm knows no provider for {self.model!r}; write PROVIDER/MODEL, such as openai/gpt-4o-mini or "
                "hosted_vllm/NAME with an endpoint"
            ) from error
        return name, provider

    def _check_dialect(self, name: str, provider: str) -> None:
        """Raise if litellm would ask the endpoint by another API than OpenAI's, and follow its redirects."""
        if provider not in ("openai", "custom_openai", *get_litellm().openai_compatible_providers):
            raise EngineError(
                f"model.endpoints names {self._address} and {self.model!r} means provider {provider!r}, which litellm "
                "asks with a client that follows redirects to any host; an endpoint of one's own is asked in OpenAI's "
                f"API alone: write openai/{name}, or leave model.endpoints out to ask the provider itself"
            )
