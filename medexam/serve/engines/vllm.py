"""The `vllm` engine: one model on one or several vLLM servers.

A choice is asked as the next token: the dialogue is rendered, the reply's opening words are appended, and one token is
allowed among the choices' own. One request holds many such prompts. If a choice is no single token, or the server
ignores `allowed_token_ids`, a grammar enforces it, which is slower. Free replies are completions of rendered text too,
several in a request if they are short. If the model may reason, or its template cannot be seen, they are asked on the
chat endpoint, whose parser separates reasoning from the reply. This module knows messages, tokens and choices, not what
they mean.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, TypeVar

from medexam.errors import (
    EndpointSilentError,
    EndpointUnreachableError,
    LogprobsUnavailableError,
    ProviderError,
    ServerError,
    UnsupportedFeatureError,
)
from medexam.model_calls import ChatMessage, ContinuationRequest, Dialogue, Generation, Sampling, is_cut
from medexam.serve.chat_messages import TemplateRules, chat_fields, plain_text, put_pictures
from medexam.serve.contract import EngineInfo
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.discovery.requests import LIMITS, TOOL_PARAMS, UNLIMITED, rename_limit
from medexam.serve.engines.hosted import HostedEngine
from medexam.serve.engines.litellm_calls import (
    OneReplyError,
    call_litellm,
    check_ending,
    check_several,
    read_chat,
    read_usage,
    reading_reply,
)
from medexam.serve.engines.prompt_text import Renderer
from medexam.serve.logprobs.tokens import TokenPath, build_reading
from medexam.serve.logprobs.vllm import Tokenizer, read_continuations
from medexam.serve.pool import Batcher, Server, ServerPool
from medexam.serve.request_settings import RequestSettings
from medexam.serve.thinking import CLOSED, CLOSING, append, find_thinking, whole_reply
from medexam.text import writable

_BATCHES = 4
"""Requests over which the prompts of a server are spread, so that it works on one while the client reads another."""
_MOST_PROMPTS = 64
"""The most prompts of one request: if it fails, all of them are lost."""
_MOST_REPLIES = 32
"""The most free replies of one request: all of them wait for the longest."""
_SHORT = 128
"""Tokens of a short reply; longer ones differ so much in length that each is asked alone."""
_GRAMMAR_TOKENS = 64
"""Room for a choice of several tokens; the grammar ends the reply."""
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

T = TypeVar("T")
_Written = tuple[Generation, tuple[int, ...] | None]
"""A completion and its tokens; None if the server does not return them."""


class VLLMEngine(HostedEngine):
    """An engine of one model on its servers."""

    def __init__(
        self,
        pool: ServerPool,
        capabilities: Sequence[Capabilities],
        renderer: Renderer | None,
        tokenizer: Tokenizer | None = None,
        settings: RequestSettings | None = None,
        room: int = 0,
        opens_thinking: bool = False,
    ) -> None:
        """Ask the servers of a pool; `capabilities` is what was seen of each, and servers that join honour the same.

        `renderer` and `tokenizer` are None if the servers do not render or tokenise, `settings` are fields of every
        request, `room` the tokens that a free reply may think beside its own budget. `opens_thinking`: the chat
        template leaves a block of thinking open, which the reply fills.
        """
        super().__init__(pool.limit)
        self.pool, self.capabilities, self.renderer, self.tokenizer = pool, capabilities, renderer, tokenizer
        self.settings = settings = settings or RequestSettings()
        self.room, self.opens_thinking = room, opens_thinking
        first = capabilities[0]
        self.model = first.model
        self._rules = TemplateRules(
            system=all(server.system_turn for server in capabilities),
            repeats=all(server.repeated_turns for server in capabilities),
            empty_system=all(server.empty_system_turn for server in capabilities),
        )
        self._next_token = renderer is not None and all(server.guided_by == "prefill" for server in capabilities)
        self._grammar = all(server.structured_outputs for server in capabilities)
        thinks = renderer is not None and renderer.may_reason and settings.thinks is not False
        self._writes_plainly = renderer is not None and not thinks and not settings.chat_only
        """Whether free replies are completions of rendered text: nothing is lost without the chat endpoint."""
        self._ids: dict[tuple[str, tuple[str, ...]], tuple[int, ...] | None] = {}
        """The end of a prompt and choices -> a token of each choice; None where they are no single tokens."""
        self._enforced, self._read = Counter[str](), Counter[str]()
        self._fields = lru_cache(maxsize=64)(self._build_fields)
        self._choice_body = lru_cache(maxsize=1024)(self._build_choice_body)
        self._lists = self._gives_several = all(server.is_vllm for server in capabilities)
        batcher: Any = partial(Batcher, busy_at=lambda: pool.limit.value // 2)
        self._choices: Batcher[str, list[_Written]] = batcher(self._complete, self._most_prompts)
        self._replies: Batcher[str, list[_Written]] = batcher(
            self._complete, lambda: min(self._most_prompts(), _MOST_REPLIES)
        )
        self._readings: Batcher[TokenPath, Any] = batcher(self._complete_tokens, self._most_prompts)

    def _most_prompts(self) -> int:
        """Return how many prompts one request may hold."""
        share = self.pool.limit.value // (_BATCHES * max(len(self.pool.active), 1))
        return min(share, _MOST_PROMPTS) if self._lists else 1

    @property
    def supports_function_calling(self) -> bool:
        """Whether all servers take tools, and say what their model calls."""
        return all(server.takes_tools for server in self.capabilities)

    @property
    def supports_response_schema(self) -> bool:
        """Whether all servers hold a reply to a JSON schema."""
        return all(server.takes_schema for server in self.capabilities)

    @property
    def supported_params(self) -> frozenset[str]:
        """OpenAI's fields that the servers take."""
        formed = ("response_format",) if self.supports_response_schema else ()
        return frozenset((*_PLAIN_FIELDS, *formed, *(TOOL_PARAMS if self.supports_function_calling else ())))

    @property
    def shares_prompts(self) -> bool:
        """Whether one request brings several replies to its prompt."""
        return self._gives_several

    def info(self) -> EngineInfo:
        """Describe what really runs; `guided_by` is what enforced most choices, if any were asked."""
        first = self.capabilities[0]
        able = "prefill" if self._next_token else "structured_outputs" if self._grammar else None
        contexts = [server.max_context for server in self.capabilities if server.max_context is not None]
        versions = {server.server_version for server in self.capabilities if server.server_version}
        unlimited = None if first.limit else UNLIMITED.format(first.endpoint)
        return EngineInfo(
            engine="vllm",
            model=self.model,
            identity=first.identity,
            endpoints=tuple(dict.fromkeys(server.endpoint.base for server in self.pool.ever)),
            server_version=", ".join(sorted(versions)) or None,
            max_context=min(contexts, default=None),
            chat_template=self.renderer.template if self.renderer else None,
            system_turn="kept" if self._rules.system else "merged",
            guided_by=self._enforced.most_common(1)[0][0] if self._enforced else able,
            details={
                "source": first.source,
                "sampling": first.sampling,
                "warnings": [warning for warning in (unlimited, self.cut_warning) if warning],
                **self._rules.details,
                **({"open_thinking": CLOSED} if self.opens_thinking else {}),
                **({"read_by": dict(self._read)} if self._read else {}),
            },
        )

    async def compare(self) -> list[str]:
        """Look again at each server; one that is silent shows no difference."""
        for server in self.pool.active:
            try:
                if self.pool.check is not None:
                    await self.pool.check(server.endpoint)
            except EndpointSilentError:
                continue
            except EndpointUnreachableError as error:
                return [f"{server.endpoint.base}: {error}"]
        return []

    async def close(self) -> None:
        """Close the connections."""
        await self.pool.close()

    async def answer(self, dialogue: Dialogue) -> list[Generation]:
        """Return the replies to one dialogue, one for each sample."""
        try:
            return await self._answer(dialogue)
        except OneReplyError:
            # A gateway that drops `n`: each reply is asked for by itself, under the seed that vLLM gives it.
            self._gives_several = False
        singles = (self._answer(dialogue.with_samples(1, number)) for number in range(dialogue.sampling.samples))
        return [reply for (reply,) in await asyncio.gather(*singles)]

    async def _answer(self, dialogue: Dialogue) -> list[Generation]:
        sampling = dialogue.sampling
        if dialogue.continuations is not None:
            if dialogue.pictures or dialogue.turns is not None:
                raise UnsupportedFeatureError("log-probabilities are read behind texts alone", feature="messages")
            return [await self._score(dialogue, dialogue.continuations)]
        if dialogue.plain:
            # The tokenizer writes what opens every text.
            fields = {**json.loads(self._fields(sampling)), "add_special_tokens": True}
            return await self._write(plain_text(dialogue), json.dumps(fields, sort_keys=True), sampling.max_tokens)
        if dialogue.turns is not None:
            return await self._chat(dialogue.turns, self._chat_fields(dialogue))
        messages = self._rules.fit(dialogue.messages)
        if dialogue.choices is not None and (dialogue.pictures or self.renderer is None):
            return await self._choose_in_chat(
                put_pictures(messages, dialogue.pictures), dialogue.opening, dialogue.choices, sampling
            )
        if dialogue.choices is not None:
            return await self._choose(messages, dialogue.opening, dialogue.choices, sampling)
        if dialogue.pictures:
            if dialogue.opening:
                raise UnsupportedFeatureError(
                    "a reply to a picture cannot be made to continue given words, except by a choice",
                    feature="messages",
                )
            return await self._chat(put_pictures(messages, dialogue.pictures), self._chat_fields(dialogue))
        if dialogue.opening or (self._writes_plainly and not dialogue.fields):
            prompt = await self._render(messages, dialogue.opening)
            others = json.dumps(self._chat_fields(dialogue), sort_keys=True) if dialogue.fields else None
            return await self._write(prompt, others or self._fields(sampling), sampling.max_tokens)
        return await self._chat(messages, self._chat_fields(dialogue))

    def _build_fields(self, sampling: Sampling, *, choosing: bool = False) -> str:
        """Build the fields of a completions request as JSON; those of a choice say nothing of its length."""
        settings = self.settings
        fields = {**sampling.drawing(), **settings.choosing} if choosing else {**sampling.fields(), **settings.sampling}
        return json.dumps({**self.capabilities[0].neutral, **fields, **_several(sampling)}, sort_keys=True)

    def _chat_fields(self, dialogue: Dialogue) -> dict[str, Any]:
        """Build the fields of a request to the chat endpoint."""
        fields = chat_fields(dialogue) | self.settings.sampling | _several(dialogue.sampling)
        fields = self.capabilities[0].neutral | fields
        return fields | {name: fields[name] + self.room for name in LIMITS if self.room and name in fields}

    async def _render(self, messages: list[ChatMessage], prefill: str, *, choosing: bool = False) -> str:
        """Render the prompt's text; `choosing`: something is chosen or read behind it, so no thought is left open.

        A template would trim the opening words, so they are appended.
        """
        if self.renderer is None:
            raise UnsupportedFeatureError(
                "the server does not render its chat template, so a reply's opening words cannot be appended exactly",
                feature="messages",
            )
        return append(await self.renderer.render(messages), prefill, choosing=choosing)

    async def _score(self, dialogue: Dialogue, request: ContinuationRequest) -> Generation:
        if self.tokenizer is None:
            raise LogprobsUnavailableError(
                "the server does not tokenise, so it is unknown which tokens its log-probabilities belong to; "
                "serve the model with vLLM, or use the embedded engine"
            )
        if request.template and self.renderer is None:
            raise LogprobsUnavailableError(
                "the server does not render its chat template exactly; set program.chat_template to false"
            )
        messages = self._rules.fit(dialogue.messages)
        rendered = request.template
        prompt = await self._render(messages, dialogue.opening, choosing=True) if rendered else plain_text(dialogue)
        methods = frozenset.intersection(*(server.reads for server in self.capabilities))
        echo = max(server.echo_logprobs or 0 for server in self.capabilities)
        reading = await read_continuations(self._readings.submit, self.tokenizer, methods, prompt, request, echo)
        self._read[reading.read_by] += 1
        return build_reading(reading, request.texts, self.model)

    async def _choose(
        self, messages: list[ChatMessage], prefill: str, choices: tuple[str, ...], sampling: Sampling
    ) -> list[Generation]:
        """Ask for replies that are choices behind `prefill`: the next token, or else by a grammar."""
        prompt = await self._render(messages, prefill, choosing=True)
        ids = await self._find_ids(prompt, prefill, choices) if self._next_token else None
        if ids is None:
            self._check_grammar(choices)
        body = self._choice_body(self._fields(sampling, choosing=True), choices, ids)
        replies = await self._choices.submit(body, prompt)
        self._enforced["prefill" if ids is not None else "structured_outputs"] += 1
        return [
            replace(_read_choice(generation, tokens, choices, ids), finish_reason="stop")
            for generation, tokens in replies
        ]

    # A run has as many bodies as numbers of options.
    def _build_choice_body(self, fields: str, choices: tuple[str, ...], ids: tuple[int, ...] | None) -> str:
        """Build a request for one of the choices, as JSON: one of their tokens `ids`, or by a grammar if that is
        None.
        """
        grammar = {"max_tokens": _GRAMMAR_TOKENS, "structured_outputs": {"choice": choices}}
        constraint = grammar if ids is None else {"max_tokens": 1, "allowed_token_ids": ids}
        return json.dumps({**json.loads(fields), **constraint}, sort_keys=True)

    async def _find_ids(self, prompt: str, prefill: str, choices: tuple[str, ...]) -> tuple[int, ...] | None:
        """Find one distinct token per choice right after a prompt, in order; None unless each is a single token there.

        It depends on the last characters of the prompt alone, so each ending is looked at once.
        """
        assert self.renderer is not None  # noqa: S101
        ending = prefill.rpartition("\n")[2] or prompt[-_TAIL:]
        if (ending, choices) not in self._ids:
            prefix, ids = await self.renderer.tokens(ending), list[int]()
            for choice in choices:
                tokens = await self.renderer.tokens(ending + choice)
                # Other tokens before the last one: the choice has merged with the end of the prompt, which as it is
                # sent ends in other tokens.
                if tokens[:-1] == prefix and tokens[-1] not in ids:
                    ids.append(tokens[-1])
            if len(self._ids) >= _MOST_ENDINGS:
                self._ids.clear()
            self._ids[ending, choices] = tuple(ids) if len(ids) == len(choices) else None
        return self._ids[ending, choices]

    async def _choose_in_chat(
        self, messages: Sequence[Mapping[str, Any]], prefill: str, choices: tuple[str, ...], sampling: Sampling
    ) -> list[Generation]:
        """Let the grammar write the opening words too, because nothing can be appended to an unseen prompt."""
        self._check_grammar(choices)
        pattern = f"{_escape(prefill)}({'|'.join(map(_escape, choices))})"
        fields = {**json.loads(self._fields(sampling, choosing=True)), "structured_outputs": {"regex": pattern}}
        generations = await self._chat(messages, fields)
        self._enforced["structured_outputs"] += 1
        return [
            generation if generation.withheld else _strip(generation, prefill, choices) for generation in generations
        ]

    def _check_grammar(self, choices: Sequence[str]) -> None:
        if not self._grammar:
            refusals = (server.refusals.get("structured_outputs") for server in self.capabilities)
            refusal = next(filter(None, refusals), None)
            behaviour = "ignores structured_outputs" if refusal is None else f"refuses structured_outputs: {refusal}"
            raise UnsupportedFeatureError(
                f"the choices {list(choices)} are not single tokens, and the server {behaviour}",
                feature="config.extensions.choice",
            )

    async def _chat(self, messages: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]) -> list[Generation]:
        body = rename_limit({**self.settings.chat, **fields}, self.capabilities[0].limit)
        samples = body.get("n", 1)

        async def send(server: Server) -> list[Generation]:
            call: Any = {"messages": list(messages), "extra_body": body, "timeout_s": self.pool.timeout_s}
            raw = await call_litellm("acompletion", f"openai/{self.model}", own=True, **call, **server.connection)
            return read_chat(raw, self.model, samples)

        replies = await self.pool.call(send, weight=samples)
        self.count_prompt(messages, replies[0].prompt_tokens)
        return [await self._count_thinking(reply) for reply in replies]

    async def _count_thinking(self, generation: Generation) -> Generation:
        """Return a chat reply with its whole thinking and the tokens of it; these are not counted without a tokenizer.

        A server without a parser leaves it in the text, and vLLM counts 0 for a block that the prompt opened.
        """
        thinking = generation.thinking
        if thinking is None:
            text = generation.words
            # A parser that found nothing to tell apart leaves an answer, which is neither cut nor closes a block.
            opened = self.opens_thinking and (is_cut(generation.finish_reason) or CLOSING in text)
            block = find_thinking(text, opened=opened)
            if block is None:
                return generation
            thinking, reply = block[0], whole_reply(text, opened=opened)
            source = generation.source if reply == text else None
            generation = replace(generation, reply=reply, text=None, source=source)
        if generation.thinking_tokens or self.tokenizer is None:
            return generation
        return replace(generation, thinking_tokens=len(await self.tokenizer.tokens(thinking)))

    async def _write(self, prompt: str, fields: str, max_tokens: int | None) -> list[Generation]:
        """Write free replies to a prompt; `fields` is JSON."""
        if max_tokens is not None and max_tokens <= _SHORT:
            replies = await self._replies.submit(fields, prompt)
        else:
            (replies,) = await self._complete(fields, [prompt])
        return [generation for generation, _ in replies]

    async def _complete(self, body: str, prompts: list[str]) -> list[list[_Written]]:
        """Send one request for the replies to all of these prompts; `body` is JSON."""
        fields = {"add_special_tokens": False, **json.loads(body)}
        samples = fields.get("n", 1)
        try:
            raw = await self._post(prompts, fields, len(prompts) * samples)
        except OneReplyError:
            return await self._apart(partial(self._complete, body), prompts)
        return [raw[start : start + samples] for start in range(0, len(raw), samples)]

    async def _complete_tokens(self, body: str, prompts: list[TokenPath]) -> list[dict[str, Any]]:
        """Read what is told of prompts of token ids, in their order."""
        fields = {"return_tokens_as_token_ids": True, **json.loads(body)}
        try:
            return await self._post([list(prompt) for prompt in prompts], fields, len(prompts), raw=True)
        except OneReplyError:
            return await self._apart(partial(self._complete_tokens, body), prompts)

    async def _apart(self, complete: Callable[[list[Any]], Awaitable[list[T]]], prompts: list[Any]) -> list[T]:
        """Complete each of several prompts by itself, as behind a gateway that drops all prompts but the first."""
        if len(prompts) == 1:
            raise OneReplyError("the server ignores n", feature="n")
        # Of two prompts one reply may have been lost on its way.
        self._lists = self._lists and len(prompts) == 2
        return [reply for (reply,) in await asyncio.gather(*(complete([prompt]) for prompt in prompts))]

    async def _post(self, prompts: list[Any], fields: dict[str, Any], expected: int, *, raw: bool = False) -> list[Any]:
        """Ask for completions, whose choices are returned as they came if `raw`; a reply that lacks some is asked for
        again.
        """
        model, body = f"text-completion-openai/{self.model}", {"return_token_ids": True, **fields}
        # Servers that take no list of prompts take one as it is.
        prompt = prompts[0] if len(prompts) == 1 and isinstance(prompts[0], str) else prompts

        async def send(server: Server) -> list[Any]:
            call: Any = {"prompt": prompt, "extra_body": body, "timeout_s": self.pool.timeout_s}
            reply = await call_litellm("atext_completion", model, own=True, **call, **server.connection)
            with reading_reply():
                check_several(reply, len(prompts), expected)
                choices = _order_choices(reply, expected)
                return choices if raw else _read_completions(reply, choices, self.model, len(prompts))

        return await self.pool.call(send, weight=expected)


def _several(sampling: Sampling) -> dict[str, int]:
    """Build the field that asks for more than one reply."""
    return {"n": sampling.samples} if sampling.samples > 1 else {}


def _order_choices(raw: Mapping[str, Any], expected: int) -> list[dict[str, Any]]:
    """Sort the choices of a completions reply in the order of its prompts; raises `ServerError` unless each has one."""
    entries = raw.get("choices") or ()
    choices = {choice["index"]: choice for choice in entries if choice.get("text") is not None}
    if len(entries) != expected or set(choices) != set(range(expected)):
        raise ServerError(f"{expected} replies were asked for and {sorted(choices)} came back")
    return [choices[index] for index in range(expected)]


def _read_completions(
    raw: Mapping[str, Any], choices: Sequence[Mapping[str, Any]], model: str, prompts: int
) -> list[_Written]:
    """Read the replies to `prompts` prompts, as many to each; raises `TypeError` for a part of another type than the
    protocol's.

    Tokens are counted per prompt if the server returns their ids; its own totals are for the whole request. What is
    counted for several replies to one prompt is counted with the first.
    """
    samples, replies = len(choices) // prompts, list[_Written]()
    totals = read_usage(raw.get("usage"), wrote=any(map(_text, choices))) if prompts == 1 else {}
    for place, choice in enumerate(choices):
        text, tokens, prompt = _text(choice), _listed(choice, "token_ids"), _listed(choice, "prompt_token_ids")
        first = place % samples == 0
        if tokens is not None and prompt is not None:
            counts: tuple[int | None, int | None] = (len(prompt) if first else 0, len(tokens))
        elif first:
            counts = totals.get("prompt_tokens"), totals.get("completion_tokens")
        else:
            counts = (0, 0) if totals else (None, None)
        name, reason = writable(str(raw.get("model") or model)), check_ending(choice.get("finish_reason")) or "stop"
        replies.append((Generation(writable(text), reason, name, *counts), None if tokens is None else tuple(tokens)))
    return replies


def _text(choice: Mapping[str, Any]) -> str:
    text = choice["text"]
    if not isinstance(text, str):
        raise TypeError(f"a text of type {type(text).__name__}")
    return text


def _listed(choice: Mapping[str, Any], name: str) -> list[int] | None:
    ids = choice.get(name)
    if ids is not None and not (isinstance(ids, list) and {*map(type, ids)} <= {int}):
        raise TypeError(f"{name} that is no list of whole numbers")
    return ids


def _read_choice(
    generation: Generation, tokens: Sequence[int] | None, choices: Sequence[str], ids: Sequence[int] | None
) -> Generation:
    """Return the reply as the choice that it is; `ids` are the choices' tokens, None if one of them is several."""
    if ids is None or not tokens:
        return _strip(generation, "", choices)
    choice = dict(zip(ids, choices, strict=True)).get(tokens[0])
    return become_choice(generation, choice) if choice else _strip(generation, "", ())


def _strip(generation: Generation, prefill: str, choices: Sequence[str]) -> Generation:
    """Return a reply as the choice behind `prefill` that it is, however it is spaced; raises `ProviderError` if it is
    none.
    """
    text = generation.words
    if text.startswith(prefill):
        text = text[len(prefill) :]
        matches = [choice for choice in choices if choice == text] or [c for c in choices if c.strip() == text.strip()]
        if matches:
            return become_choice(generation, matches[0])
    raise ProviderError(f"the server replied {generation.words!r}, which is not {prefill!r} and one of {list(choices)}")


def become_choice(generation: Generation, choice: str) -> Generation:
    """Return the generation with this choice as all that it says."""
    return replace(generation, reply=choice, text=None, thinking=None, tool_calls=(), source=None)


def _escape(text: str) -> str:
    """Escape the text as a pattern; `re.escape` would also escape spaces, which grammar engines refuse."""
    return re.sub(r"([\\.^$*+?{}\[\]|()/-])", r"\\\1", text)
