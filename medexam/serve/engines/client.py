"""The engine of one model behind a wire: on one or several servers, or at a provider that litellm knows.

A choice is asked as the next token where the server shows it: the dialogue is rendered, the reply's opening words are
appended, and one token is allowed among the choices' own. One request holds many such prompts. Elsewhere a JSON schema
enforces it. Free replies are completions of rendered text too, several in a request if they are short. If
the model may reason, or its template cannot be seen, they are asked on the chat endpoint. This module knows messages,
tokens and choices, not what they mean; litellm carries every request.
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Any

import dspy

from medexam.errors import (
    CallError,
    EndpointSilentError,
    EngineError,
    FilteredError,
    LogprobsUnavailableError,
    ProviderError,
    ServerError,
    UnsupportedFeatureError,
)
from medexam.model_calls import (
    ChatMessage,
    ContinuationRequest,
    Dialogue,
    Generation,
    is_cut,
    join_thinking,
    put_pictures,
)
from medexam.process import background_loop
from medexam.serve.chat_messages import (
    CLOSED,
    CLOSING,
    OPENING,
    TAKES_ALL,
    append,
    cut_at_stop,
    find_thinking,
    plain_text,
    whole_reply,
)
from medexam.serve.choice_schema import SCHEMA_FORMS, SCHEMA_TOKENS, choice_fields, read_choice
from medexam.serve.contract import EngineInfo
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.discovery.requests import LIMITS, TOOL_PARAMS, UNLIMITED, rename_limit
from medexam.serve.engines.litellm_calls import LIST_COST, PASS_ON, check_ending, read_chat, read_usage
from medexam.serve.engines.prompt_text import Renderer
from medexam.serve.logprobs import read_continuations
from medexam.serve.network.http_calls import reading_reply
from medexam.serve.pool import Batcher, Server, ServerPool
from medexam.serve.request_settings import CHAT_ONLY, completion_fields
from medexam.text import writable

_IN_FLIGHT, _IN_FLIGHT_HOSTED = 256, 32
"""Requests that keep a server busy; and a provider, which limits rates."""
_MOST_PROMPTS = 64
"""The most prompts of one request: if it fails, all of them are lost."""
_MOST_REPLIES = 32
"""The most free replies of one request: all of them wait for the longest."""
_SHORT = 128
"""Tokens of a short reply; longer ones differ so much in length that each is asked alone."""
_LENGTHS = ("min_tokens", "ignore_eos", "stop_token_ids", "stop")
"""Fields that say how long a reply may be; a choice is as long as it is."""
_TAIL = 24
"""Characters of a prompt that decide a choice's tokens if the opening words end with a line: more than any merge
spans."""
_MOST_ENDINGS = 4096
"""Endings of prompts whose choices' tokens are kept; long reasoning makes many."""
_PLAIN_FIELDS = (
    *("max_tokens", "temperature", "top_p", "top_k", "seed", "stop"),
    *("frequency_penalty", "presence_penalty"),
)
"""Fields that mean the same on the chat and the completions endpoint, so that either can answer."""
_MOST_USD = 1e6
"""No call costs as much."""
_FEWEST, _LONGER = 3, 1.25
"""Prompts at the same most tokens, and how much longer one is than another: natural texts never count alike so."""

_log = logging.getLogger(__name__)


class ClientEngine:
    """An engine on the background loop; build one there, with `medexam.serve.build_engine`."""

    def __init__(
        self,
        pool: ServerPool,
        record: Capabilities,
        fields: Mapping[str, Any],
        *,
        tokenizer: Renderer | None = None,
        thinks: bool | None = None,
        room: int = 0,
        opens_thinking: bool = False,
        has_price: bool = False,
    ) -> None:
        """Ask the servers of a pool; `record` is what all of them honour.

        `tokenizer` is None if the servers do not tokenise; it renders dialogues if they do. `fields` are those of every
        request to the chat endpoint. `thinks`: whether the spec has the model think, and `room` are the tokens that a
        reply may think beside its own budget. `opens_thinking`: the chat template leaves a block of thinking open,
        which the reply fills. `has_price`: the spec says what tokens cost.
        """
        self.pool, self.model, self._record, self._identity = pool, record.model, record, pool.identity
        self._guided_by, self._network = record.guided_by, background_loop()
        self._fit: Any = list if record.rules == TAKES_ALL else record.rules.fit
        self._tokenizer, self._renderer = tokenizer, tokenizer if record.renders else None
        self._chat_settings, self._settings = dict(fields), completion_fields(fields)
        self._room, self._opens_thinking, self._has_price = room, opens_thinking, has_price
        reasons = self._renderer is None or (self._renderer.may_reason and thinks is not False)
        self._writes_plainly = not reasons and not fields.keys() & CHAT_ONLY
        """Whether free replies are completions of rendered text: nothing is lost without the chat endpoint."""
        self._ids: dict[tuple[str, tuple[str, ...]], tuple[int, ...] | None] = {}
        """The end of a prompt and choices -> a token of each choice; None where they are no single tokens."""
        self._enforced, self._providers = Counter[str](), Counter[str]()
        self.takes_seed = record.seeds
        self.supports_function_calling = bool(record.takes_tools)
        self.supports_response_schema = bool(record.takes_schema)
        support = {"seed": record.seeds, "stop": record.stops, "response_format": self.supports_response_schema}
        support |= dict.fromkeys(TOOL_PARAMS, self.supports_function_calling)
        names = record.fields or (*_PLAIN_FIELDS, "response_format", *TOOL_PARAMS)
        self.supported_params = frozenset(name for name in names if support.get(name, True))
        self._choices = self._batch(self._complete, _MOST_PROMPTS)
        self._replies = self._batch(self._complete, _MOST_REPLIES)
        self._readings = self._batch(partial(self._complete, raw=True), _MOST_PROMPTS)
        self._cut_warning: str | None = None
        """Says that the server cuts prompts, as its counts of tokens show; None if nothing shows it."""
        self._most, self._lengths = 0, list[int]()
        """The most tokens of a prompt, and the characters of those that counted as many: fewest, most, how many."""
        self._answerer = pool.identity.name
        """The model as the latest reply names it."""

    def _batch(self, send: Any, most: int) -> "Batcher[Any, Any]":
        most = most if self._record.takes_lists else 1
        return Batcher(send, most, lambda: self.concurrency // most)

    @property
    def concurrency(self) -> int:
        """How many requests keep the servers busy."""
        return (_IN_FLIGHT_HOSTED if self._record.provider else _IN_FLIGHT) * max(len(self.pool.servers), 1)

    def info(self) -> EngineInfo:
        """Describe what really runs; `guided_by` is what enforced most choices, if any were asked."""
        record = self._record
        guided_by = self._enforced.most_common(1)[0][0] if self._enforced else record.guided_by
        hosted = {
            "litellm": version("litellm"),
            "capabilities": record.model_dump(mode="json", exclude={"variables", "missing"}),
        }
        return EngineInfo(
            engine=self._identity.engine,
            model=self.model,
            identity=self._identity,
            endpoints=tuple(dict.fromkeys(server.endpoint.base for server in self.pool.opened if server.endpoint)),
            server_version=record.server_version,
            max_context=record.max_context,
            chat_template=self._renderer.template if self._renderer else None,
            system_turn="kept" if record.rules.system else "merged",
            guided_by="structured_outputs" if guided_by in SCHEMA_FORMS else guided_by,
            details={
                "source": record.source,
                "sampling": record.sampling,
                "warnings": self._warnings(),
                **record.rules.details,
                **(hosted if record.provider else {}),
                **({"open_thinking": CLOSED} if self._opens_thinking else {}),
                **({"providers": dict(self._providers)} if self._providers else {}),
            },
        )

    def _warnings(self) -> list[str]:
        unlimited = None if self._record.limit else UNLIMITED.format(self._record.endpoint)
        several = None
        if len(self._providers) > 1:
            counts = ", ".join(f"{name}: {count:,}" for name, count in self._providers.most_common())
            several = (
                f"several providers replied ({counts}), which may run the model in different ways; name one in "
                "model.extra_body, such as provider: {order: [NAME], allow_fallbacks: false}"
            )
        return [warning for warning in (unlimited, several, self._cut_warning) if warning]

    async def find_changes(self) -> list[str]:
        """Look again at each server, as the contract says; one that is silent shows no difference."""
        return await self._network.run_async(self._find_changes())

    async def _find_changes(self) -> list[str]:
        for base, server in list(self.pool.servers.items()):
            try:
                await self.pool.check(server)
            except (EndpointSilentError, CallError):
                continue
            except EngineError as error:
                return [f"{base}: {error}" if base else str(error)]
        return []

    async def aclose(self) -> None:
        """Close the connections."""
        await self._network.run_async(self.pool.close())

    async def reply(self, dialogue: Dialogue) -> Generation:
        """Return the reply to one dialogue."""
        PASS_ON.set(None if (stream := dspy.settings.send_stream) is None else _sender(stream))
        try:
            work, is_here = self._answer(dialogue), asyncio.get_running_loop() is self._network.loop
            reply = await (work if is_here else self._network.run_async(work))
        except FilteredError:
            if dialogue.continuations is not None:
                raise
            return Generation("", "content_filter", self._answerer, 0, 0)
        self._answerer = reply.model or self._answerer
        return reply

    async def _answer(self, dialogue: Dialogue) -> Generation:
        opening, choices = dialogue.opening, dialogue.choices
        if dialogue.continuations is not None:
            return await self._score(dialogue, dialogue.continuations)
        fields = self._build_fields(dialogue)
        if dialogue.plain:
            if not self._record.completes:
                raise UnsupportedFeatureError(f"{self.model} cannot continue plain text", feature="plain")
            # The tokenizer writes what opens every text.
            return await self._write(plain_text(dialogue), {**fields, "add_special_tokens": True})
        if dialogue.turns is not None:
            return await self._chat(dialogue.turns, fields)
        messages = self._fit(dialogue.messages)
        if choices is not None and (dialogue.pictures or self._renderer is None):
            return await self._choose_in_chat(put_pictures(messages, dialogue.pictures), opening, choices, fields)
        if choices is not None:
            return await self._choose(messages, opening, choices, fields)
        if dialogue.pictures and opening:
            raise UnsupportedFeatureError(
                "a reply to a picture cannot be made to continue given words, except by a choice", feature="messages"
            )
        if opening or not (dialogue.fields or dialogue.pictures or PASS_ON.get() or not self._writes_plainly):
            return await self._write(await self._render(messages, opening), fields)
        return await self._chat(put_pictures(messages, dialogue.pictures), fields)

    def _build_fields(self, dialogue: Dialogue) -> dict[str, Any]:
        """Build the fields of a request to either endpoint; those of a choice name no end."""
        fields = {**self._record.neutral, **dialogue.sampling, **dialogue.fields, **self._settings}
        for name in _LENGTHS if dialogue.choices is not None else ():
            fields.pop(name, None)
        return fields

    async def _render(self, messages: list[ChatMessage], prefill: str, *, choosing: bool = False) -> str:
        """Render the prompt's text; `choosing`: something is chosen or read behind it, so no thought is left open.

        A template would trim the opening words, so they are appended.
        """
        if self._renderer is None:
            raise UnsupportedFeatureError(
                f"{self.model} does not show its chat template, so it cannot be made to continue given words exactly; "
                "serve it with vLLM, or use engine embedded",
                feature="messages",
            )
        prompt = await self._renderer.render(messages)
        is_open = prompt.rstrip().endswith(OPENING)
        return append(prompt, prefill, choosing=choosing) if is_open else prompt + prefill

    async def _score(self, dialogue: Dialogue, request: ContinuationRequest) -> Generation:
        if dialogue.pictures or dialogue.turns is not None:
            raise UnsupportedFeatureError("log-probabilities are read behind texts alone", feature="messages")
        if self._tokenizer is None or (request.template and self._renderer is None):
            raise LogprobsUnavailableError(
                "the server does not tokenise, or not render its chat template exactly, so it is unknown which tokens "
                "its log-probabilities belong to; serve the model with vLLM, or set program.chat_template to false"
            )
        messages = self._fit(dialogue.messages)
        rendered = await self._render(messages, dialogue.opening, choosing=True) if request.template else None
        prompt = plain_text(dialogue) if rendered is None else rendered
        methods, alternatives = self._record.reads, self._record.echo_logprobs or 0
        submit, tokens = self._readings.submit, self._tokenizer.tokens
        return await read_continuations(submit, tokens, methods, prompt, request, alternatives, self.model)

    async def _choose(
        self, messages: list[ChatMessage], prefill: str, choices: tuple[str, ...], fields: dict[str, Any]
    ) -> Generation:
        """Ask for a choice behind `prefill`, as the next token if each is one."""
        prompt = await self._render(messages, prefill, choosing=True)
        ids = await self._find_ids(prompt, prefill, choices) if self._guided_by == "prefill" else None
        if ids is None:
            return await self._choose_in_chat(messages, prefill, choices, fields)
        body = json.dumps({**fields, "max_tokens": 1, "allowed_token_ids": ids}, sort_keys=True)
        generation, tokens = await self._choices.submit(body, prompt)
        self._enforced["prefill"] += 1
        by_token = dict(zip(ids, choices, strict=True))
        # A server that returns no tokens returns a text, however it is spaced.
        by_text = {} if tokens else {choice.strip(): choice for choice in reversed(choices)}
        if (choice := by_token.get(tokens[0]) if tokens else by_text.get(generation.words.strip())) is None:
            raise ProviderError(f"the server replied {generation.words!r} instead of one of {list(choices)}")
        reply: Generation = replace(generation, text=choice, finish_reason="stop")
        return reply

    async def _find_ids(self, prompt: str, prefill: str, choices: tuple[str, ...]) -> tuple[int, ...] | None:
        """Find one distinct token per choice right after a prompt, in order; None unless each is a single token there.

        It depends on the last characters of the prompt alone, so each ending is looked at once.
        """
        assert self._renderer is not None  # noqa: S101
        ending = prefill.rpartition("\n")[2] or prompt[-_TAIL:]
        if (ending, choices) not in self._ids:
            prefix = await self._renderer.tokens(ending)
            wholes = [await self._renderer.tokens(ending + choice) for choice in choices]
            # Other tokens before the last one: the choice has merged with the end of the prompt, which as it is sent
            # ends in other tokens.
            ids = tuple(dict.fromkeys(tokens[-1] for tokens in wholes if tokens[:-1] == prefix))
            if len(self._ids) >= _MOST_ENDINGS:
                self._ids.clear()
            self._ids[ending, choices] = ids if len(ids) == len(choices) else None
        return self._ids[ending, choices]

    async def _choose_in_chat(
        self, messages: Sequence[Mapping[str, Any]], prefill: str, choices: tuple[str, ...], fields: Mapping[str, Any]
    ) -> Generation:
        """Ask for JSON with one of the choices, behind the opening words as a message if the model takes that."""
        record = self._record
        if record.choice_form is None:
            raise UnsupportedFeatureError(
                f"the choices {list(choices)} are not single tokens, and nothing else holds {self.model} to them",
                feature="config.extensions.choice",
            )
        opening = prefill if record.prefills else ""
        reply = await self._chat(*choice_call(record, messages, opening, choices, fields))
        self._enforced[record.choice_form] += 1
        if reply.withheld:
            return reply
        if (choice := read_choice(reply, choices)) is None:
            raise ProviderError(f"the model replied {reply.words[:200]!r} instead of one of {list(choices)}")
        return replace(reply, text=choice, content=None, thinking=None, tool_calls=())

    async def _chat(self, messages: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]) -> Generation:
        body = fit_fields(self._record, {**self._chat_settings, **fields}, self._room)

        async def send(server: Server) -> Generation:
            raw = await server.chat({"messages": list(messages), **body}, self.pool.timeout_s)
            return self._count_cost(read_chat(raw, self.model), raw)

        reply = await self.pool.call(send)
        self._count_prompt(messages, reply.prompt_tokens)
        return await self._count_thinking(reply if self._record.stops else _cut(reply, fields.get("stop")))

    def _count_cost(self, reply: Generation, raw: Mapping[str, Any]) -> Generation:
        """Return the reply with the provider and the cost that its gateway names."""
        provider = str(raw["provider"]) if raw.get("provider") else None
        if provider:
            self._providers[provider] += 1
        usage = usage if isinstance(usage := raw.get("usage"), Mapping) else {}
        cost = usage.get("cost")
        # Perplexity reports its parts too.
        cost = cost.get("total_cost") if isinstance(cost, Mapping) else cost
        cost = cost if cost is not None or self._has_price else raw.get(LIST_COST)
        if provider is None and cost is None:
            return reply
        # With a key of the user's own, OpenRouter's cost is its fee alone.
        details = (usage.get("is_byok") and usage.get("cost_details")) or {}
        costs: list[Any] = [cost, details.get("upstream_inference_cost") or 0]
        usd = sum(map(float, costs)) if all(isinstance(c, int | float) and 0 <= c < _MOST_USD for c in costs) else None
        return replace(reply, provider=provider, cost_usd=usd)

    def _count_prompt(self, messages: Sequence[Mapping[str, Any]], tokens: int | None) -> None:
        """Count a dialogue of text in; say once that prompts are cut, where longer ones count no more tokens."""
        contents = [message.get("content") for message in messages]
        if tokens is None or tokens < self._most or not all(isinstance(content, str) for content in contents):
            return
        length, earlier = sum(map(len, filter(None, contents))), self._cut_warning
        if tokens > self._most:
            self._most, self._lengths, self._cut_warning = tokens, [length, length, 0], None
        shortest, longest, prompts = min(self._lengths[0], length), max(self._lengths[1], length), self._lengths[2] + 1
        self._lengths = [shortest, longest, prompts]
        if prompts >= _FEWEST and longest >= _LONGER * shortest:
            self._cut_warning = (
                f"the server counted {tokens:,} tokens for each of {prompts:,} prompts of {shortest:,} to {longest:,} "
                "characters: it cuts prompts there without saying so; give it a larger context (Ollama: num_ctx) or "
                "shorter prompts"
            )
            if earlier is None:
                _log.warning("medexam: warning: %s", self._cut_warning)

    async def _count_thinking(self, generation: Generation) -> Generation:
        """Return a chat reply with its whole thinking and the tokens of it; these are not counted without a tokenizer.

        A server without a parser leaves it in the text, and vLLM counts 0 for a block that the prompt opened.
        """
        thinking = generation.thinking
        if thinking is None:
            text = generation.words
            # A parser that found nothing to tell apart leaves an answer, which is neither cut nor closes a block.
            opened = self._opens_thinking and (is_cut(generation.finish_reason) or CLOSING in text)
            block = find_thinking(text, opened=opened)
            if block is None:
                return generation
            thinking, reply = block[0], whole_reply(text, opened=opened)
            generation = replace(generation, text=reply, content=None)
        if generation.thinking_tokens or self._tokenizer is None:
            return generation
        return replace(generation, thinking_tokens=len(await self._tokenizer.tokens(thinking)))

    async def _write(self, prompt: str, fields: Mapping[str, Any]) -> Generation:
        body = json.dumps(fields, sort_keys=True)
        if (fields.get("max_tokens") or _SHORT + 1) <= _SHORT:
            completion = await self._replies.submit(body, prompt)
        else:
            (completion,) = await self._complete(body, [prompt])
        generation: Generation = completion[0]
        return generation

    async def _complete(self, body: str, prompts: list[Any], *, raw: bool = False) -> list[Any]:
        """Ask for completions of all of these prompts in one request, and return one of each; `body` is JSON.

        A completion is a reply and its tokens, None if the server does not return them. With `raw`, prompts are tokens,
        and each completion is as it came. A reply that lacks some is asked for again.
        """
        options = {"return_tokens_as_token_ids": True} if raw else {"add_special_tokens": False}
        fields = {"return_token_ids": True, **options, **json.loads(body)}
        # Servers that take no list of prompts take one as it is.
        prompt = prompts[0] if len(prompts) == 1 and not raw else [list(one) if raw else one for one in prompts]

        async def send(server: Server) -> list[Any]:
            reply = await server.complete(prompt, fields, self.pool.timeout_s)
            with reading_reply():
                choices, replies = _read_completions(reply, self.model, len(prompts))
                return choices if raw else replies

        return await self.pool.call(send, weight=len(prompts))


def _sender(stream: Any) -> Callable[[Any], Awaitable[None]]:
    """Return what sends chunks to `dspy.streamify`, whose loop this is."""
    loop, predictor = asyncio.get_running_loop(), dspy.settings.caller_predict

    async def send(chunk: Any) -> None:
        chunk.predict_id = None if predictor is None else id(predictor)
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(stream.send(chunk), loop))

    return send


def fit_fields(record: Capabilities, fields: Mapping[str, Any], room: int) -> dict[str, Any]:
    """Return the fields of a chat request without those that the model does not take, and with room to think."""
    support = {"seed": record.seeds, "stop": record.stops}
    fitting = rename_limit({name: value for name, value in fields.items() if support.get(name, True)}, record.limit)
    return fitting | {name: fitting[name] + room for name in LIMITS if fitting.get(name) is not None}


def choice_call(
    record: Capabilities,
    messages: Sequence[Mapping[str, Any]],
    opening: str,
    choices: Sequence[str],
    fields: Mapping[str, Any],
) -> tuple[list[Mapping[str, Any]], dict[str, Any]]:
    """Return the messages and fields of a chat request whose reply is JSON with one of the choices."""
    assert record.choice_form is not None  # noqa: S101 - the caller looked
    form = choice_fields(choices, record.choice_form)
    if record.provider and "response_format" in form and "response_format" not in record.fields:
        # The provider may take it all the same, in its own words.
        form["allowed_openai_params"] = ["response_format"]
    turns = [*messages, *([{"role": "assistant", "content": opening}] if opening.strip() else [])]
    return turns, {**fields, "max_tokens": (fields.get("max_tokens") or 0) + SCHEMA_TOKENS, **form}


def _cut(generation: Generation, stop: str | Sequence[str] | None) -> Generation:
    text, stopped = cut_at_stop(generation.words, [stop] if isinstance(stop, str) else list(stop or ()))
    if not stopped:
        return generation
    thinking = generation.thinking
    reply, content = (text, None) if thinking is None else (join_thinking(thinking, text), text)
    return replace(generation, text=reply, content=content, finish_reason="stop")


def _read_completions(
    raw: Mapping[str, Any], model: str, prompts: int
) -> tuple[list[dict[str, Any]], list[tuple[Generation, list[int] | None]]]:
    """Return the choices of a reply in the order of its prompts; and as replies, with their tokens.

    Tokens are counted per prompt if the server returns their ids; its own totals are for the whole request. Raises
    `ServerError` unless each has one.
    """
    entries = raw.get("choices") or ()
    by_place = {choice["index"]: choice for choice in entries if choice.get("text") is not None}
    if len(entries) != prompts or set(by_place) != set(range(prompts)):
        raise ServerError(f"{prompts} replies were asked for and {sorted(by_place)} came back")
    choices = [by_place[place] for place in range(prompts)]
    replies = list[tuple[Generation, list[int] | None]]()
    totals = read_usage(raw.get("usage"), wrote=any(choice["text"] for choice in choices)) if prompts == 1 else {}
    name = writable(str(raw.get("model") or model))
    for choice, text in zip(choices, writable([choice["text"] for choice in choices]), strict=True):
        tokens, prompt = choice.get("token_ids"), choice.get("prompt_token_ids")
        if not isinstance(text, str):
            raise TypeError(f"a text of type {type(text).__name__}")
        counts = totals.get("prompt_tokens"), totals.get("completion_tokens")
        if tokens is not None and prompt is not None:
            counts = len(prompt), len(tokens)
        reason = check_ending(choice.get("finish_reason")) or "stop"
        replies.append((Generation(text, reason, name, *counts), tokens))
    return choices, replies
