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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from medexam.errors import (
    EndpointSilentError,
    EndpointUnreachableError,
    LogprobsUnavailableError,
    ProviderError,
    ServerError,
    UnsupportedFeatureError,
)
from medexam.model_calls import ChatMessage, ContinuationRequest, Dialogue, Generation, Sampling, is_cut
from medexam.model_identity import ModelIdentity
from medexam.serve.chat_messages import chat_fields, plain_text, put_pictures
from medexam.serve.contract import EngineInfo
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.discovery.requests import LIMITS, TOOL_PARAMS, UNLIMITED, rename_limit
from medexam.serve.engines.hosted import HostedEngine, on_background_loop
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
from medexam.serve.logprobs import read_continuations
from medexam.serve.pool import Batcher, Server, ServerPool
from medexam.serve.request_settings import CHAT_ONLY, completion_fields
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
_LENGTHS = ("min_tokens", "ignore_eos", "stop_token_ids")
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


class VLLMEngine(HostedEngine):
    """An engine of one model on its servers."""

    def __init__(
        self,
        pool: ServerPool,
        honoured: Capabilities,
        identity: ModelIdentity,
        tokenizer: Renderer | None,
        fields: Mapping[str, Any],
        *,
        thinks: bool | None,
        room: int,
        opens_thinking: bool,
    ) -> None:
        """Ask the servers of a pool; `honoured` is what all of them do, and servers that join honour the same.

        `tokenizer` is None if the servers do not tokenise; it renders dialogues if they do. `fields` are those of every
        request to the chat endpoint. `thinks`: whether the spec has the model think, and `room` are the tokens that a
        free reply may think beside its own budget. `opens_thinking`: the chat template leaves a block of thinking open,
        which the reply fills.
        """
        super().__init__(pool.limit)
        self.pool, self.model, self._honoured, self._identity = pool, honoured.model, honoured, identity
        self._tokenizer, self._renderer = tokenizer, tokenizer if honoured.renders else None
        self._chat_settings, self._settings = dict(fields), completion_fields(fields)
        self._room, self._opens_thinking = room, opens_thinking
        reasons = self._renderer is None or (self._renderer.may_reason and thinks is not False)
        self._writes_plainly = not reasons and not fields.keys() & CHAT_ONLY
        """Whether free replies are completions of rendered text: nothing is lost without the chat endpoint."""
        self._ids: dict[tuple[str, tuple[str, ...]], tuple[int, ...] | None] = {}
        """The end of a prompt and choices -> a token of each choice; None where they are no single tokens."""
        self._enforced, self._read = Counter[str](), Counter[str]()
        self._fields = lru_cache(maxsize=64)(self._build_fields)
        self._choice_body = lru_cache(maxsize=1024)(self._build_choice_body)
        self.supports_function_calling = bool(honoured.takes_tools)
        self.supports_response_schema = bool(honoured.takes_schema)
        formed = ("response_format",) if honoured.takes_schema else ()
        self.supported_params = frozenset((*_PLAIN_FIELDS, *formed, *(TOOL_PARAMS if honoured.takes_tools else ())))
        self.shares_prompts = honoured.is_vllm
        """Whether a request may hold several prompts and bring several replies to each."""
        batcher: Any = partial(Batcher, busy_at=lambda: pool.limit.value // 2)
        self._choices = batcher(self._complete, partial(self._most_prompts, _MOST_PROMPTS))
        self._replies = batcher(self._complete, partial(self._most_prompts, _MOST_REPLIES))
        self._readings = batcher(partial(self._complete, raw=True), partial(self._most_prompts, _MOST_PROMPTS))

    def _most_prompts(self, most: int) -> int:
        """Return how many prompts one request may hold."""
        share = self.pool.limit.value // (_BATCHES * max(len(self.pool.servers), 1))
        return min(share, most) if self.shares_prompts else 1

    def info(self) -> EngineInfo:
        """Describe what really runs; `guided_by` is what enforced most choices, if any were asked."""
        honoured = self._honoured
        unlimited = None if honoured.limit else UNLIMITED.format(honoured.endpoint)
        return EngineInfo(
            engine="vllm",
            model=self.model,
            identity=self._identity,
            endpoints=tuple(self.pool.clients),
            server_version=honoured.server_version,
            max_context=honoured.max_context,
            chat_template=self._renderer.template if self._renderer else None,
            system_turn="kept" if honoured.system_turn else "merged",
            guided_by=self._enforced.most_common(1)[0][0] if self._enforced else honoured.guided_by,
            details={
                "source": honoured.source,
                "sampling": honoured.sampling,
                "warnings": [warning for warning in (unlimited, self.cut_warning) if warning],
                **honoured.rules.details,
                **({"open_thinking": CLOSED} if self._opens_thinking else {}),
                **({"read_by": dict(self._read)} if self._read else {}),
            },
        )

    @on_background_loop
    async def find_changes(self) -> list[str]:
        """Look again at each server, as the contract says; one that is silent shows no difference."""
        for base, server in list(self.pool.servers.items()):
            try:
                await self.pool.check(server.endpoint)
            except EndpointSilentError:
                continue
            except EndpointUnreachableError as error:
                return [f"{base}: {error}"]
        return []

    @on_background_loop
    async def aclose(self) -> None:
        """Close the connections."""
        await self.pool.close()

    async def answer(self, dialogue: Dialogue) -> list[Generation]:
        """Return the replies to one dialogue, one for each sample."""
        try:
            return await self._answer(dialogue)
        except OneReplyError:
            # A gateway that drops `n`: each reply is asked for by itself, under the seed that vLLM gives it.
            self.shares_prompts = False
        singles = (self._answer(dialogue.with_samples(1, number)) for number in range(dialogue.sampling.samples))
        return [reply for (reply,) in await asyncio.gather(*singles)]

    async def _answer(self, dialogue: Dialogue) -> list[Generation]:
        sampling, opening, choices = dialogue.sampling, dialogue.opening, dialogue.choices
        if dialogue.continuations is not None:
            return [await self._score(dialogue, dialogue.continuations)]
        if dialogue.plain:
            # The tokenizer writes what opens every text.
            fields = {**json.loads(self._fields(sampling)), "add_special_tokens": True}
            return await self._write(plain_text(dialogue), json.dumps(fields, sort_keys=True), sampling.max_tokens)
        if dialogue.turns is not None:
            return await self._chat(dialogue.turns, self._chat_fields(dialogue))
        messages = self._honoured.rules.fit(dialogue.messages)
        if choices is not None and (dialogue.pictures or self._renderer is None):
            return await self._choose_in_chat(put_pictures(messages, dialogue.pictures), opening, choices, sampling)
        if choices is not None:
            return await self._choose(messages, opening, choices, sampling)
        if dialogue.pictures and opening:
            raise UnsupportedFeatureError(
                "a reply to a picture cannot be made to continue given words, except by a choice", feature="messages"
            )
        if opening or (self._writes_plainly and not dialogue.fields and not dialogue.pictures):
            prompt = await self._render(messages, opening)
            others = json.dumps(self._chat_fields(dialogue), sort_keys=True) if dialogue.fields else None
            return await self._write(prompt, others or self._fields(sampling), sampling.max_tokens)
        return await self._chat(put_pictures(messages, dialogue.pictures), self._chat_fields(dialogue))

    def _build_fields(self, sampling: Sampling, *, choosing: bool = False) -> str:
        """Build the fields of a completions request as JSON; those of a choice say nothing of its length."""
        own = {name: value for name, value in self._settings.items() if not choosing or name not in _LENGTHS}
        fields = {**(sampling.drawing() if choosing else sampling.fields()), **own, **_several(sampling)}
        return json.dumps({**self._honoured.neutral, **fields}, sort_keys=True)

    def _chat_fields(self, dialogue: Dialogue) -> dict[str, Any]:
        """Build the fields of a request to the chat endpoint."""
        fields = chat_fields(dialogue) | self._settings | _several(dialogue.sampling)
        fields = self._honoured.neutral | fields
        return fields | {name: fields[name] + self._room for name in LIMITS if self._room and name in fields}

    async def _render(self, messages: list[ChatMessage], prefill: str, *, choosing: bool = False) -> str:
        """Render the prompt's text; `choosing`: something is chosen or read behind it, so no thought is left open.

        A template would trim the opening words, so they are appended.
        """
        if self._renderer is None:
            raise UnsupportedFeatureError(
                "the server does not render its chat template, so a reply's opening words cannot be appended exactly",
                feature="messages",
            )
        return append(await self._renderer.render(messages), prefill, choosing=choosing)

    async def _score(self, dialogue: Dialogue, request: ContinuationRequest) -> Generation:
        if dialogue.pictures or dialogue.turns is not None:
            raise UnsupportedFeatureError("log-probabilities are read behind texts alone", feature="messages")
        if self._tokenizer is None:
            raise LogprobsUnavailableError(
                "the server does not tokenise, so it is unknown which tokens its log-probabilities belong to; "
                "serve the model with vLLM, or use the embedded engine"
            )
        if request.template and self._renderer is None:
            raise LogprobsUnavailableError(
                "the server does not render its chat template exactly; set program.chat_template to false"
            )
        messages = self._honoured.rules.fit(dialogue.messages)
        rendered = await self._render(messages, dialogue.opening, choosing=True) if request.template else None
        prompt = plain_text(dialogue) if rendered is None else rendered
        methods, alternatives = self._honoured.reads, self._honoured.echo_logprobs or 0
        submit, tokens = self._readings.submit, self._tokenizer.tokens
        reply = await read_continuations(submit, tokens, methods, prompt, request, alternatives, self.model)
        assert reply.reading is not None  # noqa: S101 - it is what was asked for
        self._read[reply.reading.read_by] += 1
        return reply

    async def _choose(
        self, messages: list[ChatMessage], prefill: str, choices: tuple[str, ...], sampling: Sampling
    ) -> list[Generation]:
        """Ask for replies that are choices behind `prefill`: the next token, or else by a grammar."""
        prompt = await self._render(messages, prefill, choosing=True)
        ids = await self._find_ids(prompt, prefill, choices) if self._honoured.guided_by == "prefill" else None
        if ids is None:
            self._check_grammar(choices)
        body = self._choice_body(self._fields(sampling, choosing=True), choices, ids)
        replies = await self._choices.submit(body, prompt)
        self._enforced["prefill" if ids is not None else "structured_outputs"] += 1
        by_token, chosen = dict(zip(ids or (), choices, strict=False)), []
        for generation, tokens in replies:
            is_told = bool(by_token and tokens)
            choice = by_token.get(tokens[0]) if is_told else None
            one = become_choice(generation, choice) if choice else _strip(generation, "", () if is_told else choices)
            chosen.append(replace(one, finish_reason="stop"))
        return chosen

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
        self, messages: Sequence[Mapping[str, Any]], prefill: str, choices: tuple[str, ...], sampling: Sampling
    ) -> list[Generation]:
        """Let the grammar write the opening words too, because nothing can be appended to an unseen prompt."""
        self._check_grammar(choices)
        pattern = f"{_escape(prefill)}({'|'.join(map(_escape, choices))})"
        fields = {**json.loads(self._fields(sampling, choosing=True)), "structured_outputs": {"regex": pattern}}
        generations = await self._chat(messages, fields)
        self._enforced["structured_outputs"] += 1
        return [one if one.withheld else _strip(one, prefill, choices) for one in generations]

    def _check_grammar(self, choices: Sequence[str]) -> None:
        if not self._honoured.structured_outputs:
            refusal = self._honoured.refusals.get("structured_outputs")
            behaviour = "ignores structured_outputs" if refusal is None else f"refuses structured_outputs: {refusal}"
            raise UnsupportedFeatureError(
                f"the choices {list(choices)} are not single tokens, and the server {behaviour}",
                feature="config.extensions.choice",
            )

    async def _chat(self, messages: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]) -> list[Generation]:
        body = rename_limit({**self._chat_settings, **fields}, self._honoured.limit)
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
            opened = self._opens_thinking and (is_cut(generation.finish_reason) or CLOSING in text)
            block = find_thinking(text, opened=opened)
            if block is None:
                return generation
            thinking, reply = block[0], whole_reply(text, opened=opened)
            source = generation.source if reply == text else None
            generation = replace(generation, reply=reply, text=None, source=source)
        if generation.thinking_tokens or self._tokenizer is None:
            return generation
        return replace(generation, thinking_tokens=len(await self._tokenizer.tokens(thinking)))

    async def _write(self, prompt: str, fields: str, max_tokens: int | None) -> list[Generation]:
        """Write free replies to a prompt; `fields` is JSON."""
        if max_tokens is not None and max_tokens <= _SHORT:
            replies = await self._replies.submit(fields, prompt)
        else:
            (replies,) = await self._complete(fields, [prompt])
        return [generation for generation, _ in replies]

    async def _complete(self, body: str, prompts: list[Any], *, raw: bool = False) -> list[Any]:
        """Ask for completions of all of these prompts in one request, and return those of each; `body` is JSON.

        A completion is a reply and its tokens, None if the server does not return them. With `raw`, prompts are tokens,
        and each has one completion, as it came. A reply that lacks some is asked for again.
        """
        options = {"return_tokens_as_token_ids": True} if raw else {"add_special_tokens": False}
        fields = {"return_token_ids": True, **options, **json.loads(body)}
        samples = fields.get("n", 1)
        expected = len(prompts) * samples
        # Servers that take no list of prompts take one as it is.
        prompt = prompts[0] if len(prompts) == 1 and not raw else [list(one) if raw else one for one in prompts]

        async def send(server: Server) -> list[Any]:
            model = f"text-completion-openai/{self.model}"
            call: Any = {"prompt": prompt, "extra_body": fields, "timeout_s": self.pool.timeout_s}
            reply = await call_litellm("atext_completion", model, own=True, **call, **server.connection)
            with reading_reply():
                check_several(reply, len(prompts), expected)
                choices = _order_choices(reply, expected)
                return choices if raw else _read_completions(reply, choices, self.model, len(prompts))

        try:
            completions = await self.pool.call(send, weight=expected)
        except OneReplyError:
            if len(prompts) == 1:
                raise
            # A gateway that drops all prompts but the first. Of two prompts one reply may have been lost on its way.
            self.shares_prompts = self.shares_prompts and len(prompts) == 2
            singles = (self._complete(body, [prompt], raw=raw) for prompt in prompts)
            return [completion for (completion,) in await asyncio.gather(*singles)]
        if raw:
            return completions
        return [completions[start : start + samples] for start in range(0, expected, samples)]


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
) -> list[tuple[Generation, list[int] | None]]:
    """Read the replies to `prompts` prompts, as many to each, and their tokens; raises `TypeError` for a part of
    another type than the protocol's.

    Tokens are counted per prompt if the server returns their ids; its own totals are for the whole request. What is
    counted for several replies to one prompt is counted with the first.
    """
    samples, replies = len(choices) // prompts, list[tuple[Generation, list[int] | None]]()
    totals = read_usage(raw.get("usage"), wrote=any(choice["text"] for choice in choices)) if prompts == 1 else {}
    name = writable(str(raw.get("model") or model))
    for place, choice in enumerate(choices):
        text, tokens, prompt = choice["text"], choice.get("token_ids"), choice.get("prompt_token_ids")
        for ids in (tokens, prompt):
            if ids is not None and not (isinstance(ids, list) and {*map(type, ids)} <= {int}):
                raise TypeError("token ids that are no list of whole numbers")
        if not isinstance(text, str):
            raise TypeError(f"a text of type {type(text).__name__}")
        is_first = place % samples == 0
        counts: tuple[int | None, int | None] = (0, 0) if totals else (None, None)
        if tokens is not None and prompt is not None:
            counts = (len(prompt) if is_first else 0, len(tokens))
        elif is_first:
            counts = totals.get("prompt_tokens"), totals.get("completion_tokens")
        reason = check_ending(choice.get("finish_reason")) or "stop"
        replies.append((Generation(writable(text), reason, name, *counts), tokens))
    return replies


def _strip(generation: Generation, prefill: str, choices: Sequence[str]) -> Generation:
    """Return a reply as the choice behind `prefill` that it is, however it is spaced; raises `ProviderError` if it is
    none.
    """
    text = generation.words
    rest = text.removeprefix(prefill) if text.startswith(prefill) else None
    matches = [choice for choice in choices if rest is not None and choice.strip() == rest.strip()]
    choice = rest if rest in choices else next(iter(matches), None)
    if choice is None:
        raise ProviderError(f"the server replied {text!r}, which is not {prefill!r} and one of {list(choices)}")
    return become_choice(generation, choice)


def become_choice(generation: Generation, choice: str) -> Generation:
    """Return the generation with this choice as all that it says."""
    return replace(generation, reply=choice, text=None, thinking=None, tool_calls=(), source=None)


def _escape(text: str) -> str:
    """Escape the text as a pattern; `re.escape` would also escape spaces, which grammar engines refuse."""
    return re.sub(r"([\\.^$*+?{}\[\]|()/-])", r"\\\1", text)
