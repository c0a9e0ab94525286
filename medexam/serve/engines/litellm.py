"""The `litellm` engine: any hosted model that litellm reaches.

Providers show neither tokens nor templates, so a choice is asked as a JSON schema with one field, or as a tool's
argument. Which form the model honours is found out once at the start, with an impossible choice. The opening words of a
reply are shown as an assistant message before a choice, unless the model refuses them; a free reply cannot be made to
continue them, which is an error. What the model takes stands in a record, which begins with litellm's own tables.

litellm's own HTTP clients follow redirects. A user's own endpoint is therefore asked by OpenAI's API only: then litellm
accepts a client of ours, which follows none. This module knows litellm's calls, not what is asked.
"""

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from medexam.errors import (
    CallError,
    EndpointUnreachableError,
    EngineError,
    InvalidRequestError,
    ProviderError,
    RateLimitError,
    TransportError,
    UnsupportedFeatureError,
)
from medexam.model_calls import Dialogue, Generation, Sampling, join_thinking
from medexam.model_identity import ModelIdentity
from medexam.serve.chat_messages import TemplateRules, chat_fields, cut_at_stop, put_pictures
from medexam.serve.choice_schema import (
    CHOICE_FORMS,
    SCHEMA_FORMS,
    SCHEMA_TOKENS,
    ChoiceForm,
    choice_fields,
    parse_guided_choice,
)
from medexam.serve.contract import EngineInfo
from medexam.serve.discovery.requests import LIMITS, TOOL_PARAMS, UNLIMITED, rename_limit
from medexam.serve.engines.hosted import HostedEngine, on_background_loop
from medexam.serve.engines.litellm_calls import LIST_COST, call_litellm, get_litellm, read_chat
from medexam.serve.engines.provider_tables import find_provider, read_tables
from medexam.serve.engines.vllm import become_choice
from medexam.serve.network.connections import keep_reply, open_client, open_model_client
from medexam.serve.network.endpoints import NO_KEY, Endpoint, normalise_address, read_api_key
from medexam.serve.network.http_calls import find_words
from medexam.serve.network.retry import CURABLE, ask_again
from medexam.serve.pool import Limit
from medexam.serve.request_settings import provider_fields, server_fields, thinking_room
from medexam.serve.timing import TIMING
from medexam.specs import ModelSpec

_STREAM = {"stream": True, "stream_options": {"include_usage": True}}
_MOST_USD = 1e6
"""No call costs as much."""
_INITIAL = 16
"""Requests in flight at first: hosted providers limit rates."""
_MESSAGE_CHARS = 600
"""Characters of a fault that are shown."""
_ADVICE = re.compile(r"\n\n|\. To drop (these|unsupported)|\. Please pass (an|one of) `api_key`")


class LiteLLMEngine(HostedEngine):
    """An engine of a provider, or of an endpoint of one's own.

    Raises `EngineError` for a name that litellm knows no provider for, and for an endpoint of one's own with a provider
    that does not speak OpenAI's API.
    """

    shares_prompts = False

    def __init__(self, spec: ModelSpec) -> None:
        """Set up the engine, which is not asked before the probe has looked at its model."""
        assert spec.name is not None  # noqa: S101 - the spec's own validator requires it
        super().__init__(Limit(_INITIAL))
        self.model = self._asked_as = spec.name
        self._has_own_price = spec.price is not None
        self.timeout_s = spec.timeout_s
        self.patience_s: float | None = None
        """Seconds after which no fault is waited out; None: as long as a run waits."""
        self.address = normalise_address(spec.endpoints[0]) if spec.endpoints else None
        self._client: Any = None
        self.post: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]] | None = None
        """Answers a request's fields with the body of a chat reply, instead of litellm."""
        self.connection: dict[str, Any] = {}
        name, provider = find_provider(self.model, self.address)
        if spec.api_key_env or spec.api_key_file or self.address:
            # Without a key of its own an endpoint gets none: the provider's usual one is for the provider alone.
            self.connection["api_key"] = read_api_key(spec.api_key_env, file=spec.api_key_file) or NO_KEY
        if self.address:
            if provider not in ("openai", "custom_openai", *get_litellm().openai_compatible_providers):
                raise EngineError(
                    f"model.endpoints names {self.address} and {self.model!r} means provider {provider!r}, which "
                    "litellm asks with a client that follows redirects to any host; an own endpoint is asked only by "
                    f"OpenAI's API: write openai/{name}, or leave model.endpoints out to ask the provider"
                )
            self._asked_as = f"openai/{name}"
            # The first reply may take longer than others.
            longest_s = max(spec.timeout_s, spec.wait_s)
            endpoint = Endpoint(self.address, self.connection["api_key"])
            self._client = open_model_client(endpoint, open_client(endpoint, longest_s))
            self.connection |= {"api_base": self.address, "client": self._client, "_skip_responses_api_bridge": True}
        elif provider == "anthropic":
            from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

            # litellm rewrites why a reply ended, so the replies are kept as they came.
            self._client = AsyncHTTPHandler(timeout=self.timeout_s, event_hooks={"response": [keep_reply]})
            self.connection["client"] = self._client
        self.record = read_tables(self.model, self.address)
        """What the model takes, as far as it is known."""
        self.settings = {"extra_body": server_fields(spec)} if self.address else provider_fields(spec, provider)
        """Fields of every request."""
        self.room = 0 if self.address else thinking_room(spec, thinks=self.record.thinks)
        """Tokens that a reply may have for thinking, beside its own budget."""
        self.answered = False
        self.streams = False
        """Whether replies are asked for as streams, since the server gives no others."""
        self._providers: Counter[str] = Counter()
        """Those that a gateway names in its replies."""
        self.rules = TemplateRules(system=True, repeats=True, empty_system=True)
        self.identity = ModelIdentity(engine="litellm", name=self.model)
        self.identify: Callable[[], Awaitable[None]] | None = None
        """Looks which model answers, and notes it in `identity`; None until the model was reached."""

    @property
    def supports_function_calling(self) -> bool:
        """Whether the model takes tools: by litellm's tables, or as an endpoint of one's own showed."""
        return self.record.takes_tools

    @property
    def supports_response_schema(self) -> bool:
        """Whether the model holds a reply to a JSON schema, likewise."""
        return self.record.takes_schema

    @property
    def supported_params(self) -> frozenset[str]:
        """OpenAI's fields that reach the model; of an endpoint of one's own, tools and schemas only as it showed."""
        record = self.record
        unshown = {"seed": record.seeds, "stop": record.stops}
        if self.address:
            unshown |= dict.fromkeys(TOOL_PARAMS, record.takes_tools) | {"response_format": record.takes_schema}
        return frozenset(field for field in record.fields if unshown.get(field, True))

    @property
    def takes_seed(self) -> bool:
        """Whether a seed reaches the model."""
        return self.record.seeds

    async def answer(self, dialogue: Dialogue) -> list[Generation]:
        """Return the reply to one dialogue, alone in a list."""
        fields = chat_fields(dialogue)
        if "max_tokens" in fields:
            fields["max_completion_tokens"] = fields.pop("max_tokens")
        if dialogue.turns is not None:
            return [await self.chat({**fields, "messages": dialogue.turns})]
        messages = put_pictures(self.rules.fit(dialogue.messages), dialogue.pictures)
        if dialogue.plain:
            raise UnsupportedFeatureError(
                "engine litellm cannot continue plain text", feature="config.extensions.plain"
            )
        if dialogue.choices is not None:
            return [await self._choose(messages, dialogue.opening, dialogue.choices, dialogue.sampling)]
        if dialogue.opening:
            raise UnsupportedFeatureError(
                "engine litellm cannot make a provider continue given words; use engine vllm or embedded",
                feature="messages",
            )
        return [await self.chat({**fields, "messages": messages})]

    def note(self, **fields: Any) -> None:
        """Note in the record what the model itself showed."""
        self.record = self.record.model_copy(update={"probed": True, **fields})

    def info(self) -> EngineInfo:
        """Describe what really runs."""
        guided_by = self.record.guided_by
        return EngineInfo(
            engine="litellm",
            model=self.model,
            identity=self.identity,
            endpoints=(self.address,) if self.address else (),
            system_turn=None if self.rules.system else "merged",
            guided_by="structured_outputs" if guided_by in SCHEMA_FORMS else guided_by,
            details={
                "litellm": version("litellm"),
                **self.rules.details,
                "warnings": self._warnings(),
                **({"providers": dict(self._providers)} if self._providers else {}),
                "capabilities": self.record.model_dump(mode="json", exclude={"variables", "missing"}),
            },
        )

    def _warnings(self) -> list[str]:
        """List what a reader of the replies should know."""
        unlimited = UNLIMITED.format(self.address) if self.record.unlimited else None
        several = None
        if len(self._providers) > 1:
            counts = ", ".join(f"{name}: {count:,}" for name, count in self._providers.most_common())
            several = (
                f"several providers replied ({counts}), which may run the model in different ways; name one in "
                "model.extra_body, such as provider: {order: [NAME], allow_fallbacks: false}"
            )
        return [warning for warning in (unlimited, several, self.cut_warning) if warning]

    @on_background_loop
    async def find_changes(self) -> list[str]:
        """Look twice which model answers, as the contract says: a hosted model may reply otherwise once.

        One that is out of reach shows no difference.
        """
        before, differences, patience_s = self.identity, list[str](), self.patience_s
        self.patience_s = TIMING.probe_silence_s
        try:
            for _ in "12":
                if self.identify is not None:
                    await self.identify()
                if not (differences := before.differences(self.identity)):
                    break
        except (CallError, EngineError):
            return []
        finally:
            self.identity, self.patience_s = before, patience_s
        return differences

    @on_background_loop
    async def aclose(self) -> None:
        """Close the connections of its own client; litellm closes those that it opened itself."""
        if self._client is not None:
            await self._client.close()

    async def _choose(
        self, messages: list[dict[str, Any]], prefill: str, choices: Sequence[str], sampling: Sampling
    ) -> Generation:
        form = self.record.guided_by or CHOICE_FORMS[0]
        generation = await self.chat(self.choice_request(messages, prefill, choices, sampling, form))
        if generation.withheld:
            return generation
        if (choice := read_reply_choice(generation, choices)) is not None:
            return become_choice(generation, choice)
        raise ProviderError(f"{self.model} replied {generation.words[:200]!r} instead of one of {list(choices)}")

    def choice_request(
        self,
        messages: list[dict[str, Any]],
        prefill: str,
        choices: Sequence[str],
        sampling: Sampling,
        form: ChoiceForm,
    ) -> dict[str, Any]:
        """Return the fields of a request whose reply is one of the choices, if the model honours the form.

        `prefill`: the opening words of the reply; they are left out where the model refuses them.
        """
        sends_opening = bool(prefill.strip()) and self.record.prefills is not False
        fields = {
            "messages": [*messages, *([{"role": "assistant", "content": prefill}] if sends_opening else [])],
            "temperature": sampling.temperature,
            "seed": sampling.seed,
            "max_tokens": (sampling.max_tokens or 0) + SCHEMA_TOKENS,
            **choice_fields(choices, form),
        }
        if "response_format" in fields and not self.record.takes("response_format"):
            # The provider may take it all the same, in its own words.
            fields["allowed_openai_params"] = ["response_format"]
        return {name: value for name, value in fields.items() if value is not None}

    def fit(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a request without those that the model does not take, and with room to think."""
        support = {"seed": self.record.seeds, "stop": self.record.stops}
        call_fields = {name: value for name, value in fields.items() if support.get(name, True)}
        if self.address:
            call_fields = rename_limit(call_fields, self.record.limit)
        elif "max_completion_tokens" in call_fields and not self.record.takes("max_completion_tokens"):
            call_fields["max_tokens"] = call_fields.pop("max_completion_tokens")
        return call_fields | {name: call_fields[name] + self.room for name in LIMITS if name in call_fields}

    async def chat(
        self, fields: dict[str, Any], refusing: tuple[int, ...] = (), patience_s: float | None = None
    ) -> Generation:
        """Ask for one reply; an HTTP status of `refusing` is not asked again, and no fault after `patience_s` seconds.

        None stands for the engine's own patience.
        """
        call = {**self.settings, **self.fit(fields)}

        async def attempt() -> Generation:
            try:
                return await self._call(call)
            except CURABLE as fault:
                self.limit.note_fault(fault)
                if fault.status in refusing:
                    raise ProviderError(fault.message, status=fault.status) from fault
                raise

        wait_s = self.patience_s if patience_s is None else patience_s
        generation = await ask_again(attempt, timeout_s=self.timeout_s, patience_s=wait_s)
        if self.patience_s is None:
            # Probes are short, and some providers count them alike.
            self.count_prompt(call["messages"], generation.prompt_tokens)
        return generation if self.record.stops else _cut(generation, fields.get("stop"))

    async def _call(self, fields: Mapping[str, Any]) -> Generation:
        """Ask for one reply, once; by a stream where the server gives no other."""
        try:
            return await self._send({**fields, **(_STREAM if self.streams else {})})
        except InvalidRequestError as fault:
            if self.streams or not self.address or not find_words("streams_alone", fault.message):
                raise
        generation = await self._send({**fields, **_STREAM})
        self.streams = True
        return generation

    async def _send(self, fields: Mapping[str, Any]) -> Generation:
        if self.post is not None:
            reply = await self.post(fields)
        else:
            # With tools litellm would import a package for tools of another kind.
            tools = {"_skip_mcp_handler": True} if fields.get("tools") else {}
            call: Any = {"timeout_s": self.timeout_s, "own": bool(self.address), **fields, **tools, **self.connection}
            reply = await call_litellm("acompletion", self._asked_as, **call)
        self.answered = True
        provider = str(reply["provider"]) if reply.get("provider") else None
        self._providers.update(filter(None, [provider]))
        usage = reply.get("usage")
        cost = usage.get("cost") if isinstance(usage, Mapping) else None
        # Perplexity reports its parts too.
        cost = cost.get("total_cost") if isinstance(cost, Mapping) else cost
        cost = cost if cost is not None or self._has_own_price else reply.get(LIST_COST)
        usd = float(cost) if isinstance(cost, int | float) and 0 <= cost < _MOST_USD else None
        return replace(read_chat(reply, self.model)[0], provider=provider, cost_usd=usd)

    def describe_loss(self, fault: CallError) -> EndpointUnreachableError:
        """Build the error to raise where asking again did not help."""
        if self.address and self.answered and isinstance(fault, TransportError):
            return EndpointUnreachableError(
                f"the server at {self.address} answered, then stopped answering ({fault.message}); look into "
                "its log, and start it again"
            )
        way_out = "; wait and ask again, or raise the account's quota" if isinstance(fault, RateLimitError) else ""
        return EndpointUnreachableError(f"{self.model} does not answer: {cite(fault)}{way_out}")


def cite(fault: Exception) -> str:
    """Return what a fault says, in a line, without litellm's advice for programs that call it."""
    return " ".join(_ADVICE.split(str(fault), maxsplit=1)[0].split())[:_MESSAGE_CHARS]


def read_reply_choice(generation: Generation, choices: Sequence[str]) -> str | None:
    """Read the choice that a reply makes, as a tool's argument or as JSON; None if it makes none."""
    calls = [call.args for call in generation.tool_calls]
    return parse_guided_choice(json.dumps(calls[0]) if calls else generation.words, choices)


def _cut(generation: Generation, stop: str | Sequence[str] | None) -> Generation:
    """Cut a reply at the texts at which the request ends it, where the model takes no such texts."""
    text, stopped = cut_at_stop(generation.words, [stop] if isinstance(stop, str) else list(stop or ()))
    if not stopped:
        return generation
    thinking = generation.thinking
    reply, text_alone = (text, None) if thinking is None else (join_thinking(thinking, text), text)
    return replace(generation, reply=reply, text=text_alone, finish_reason="stop", source=None)
