"""The `vllm` engine: one model on one or several vLLM servers.

A choice is asked as the next token: the dialogue is rendered, the reply's opening words are appended, and one token is
allowed among the choices' own. One request holds many such prompts. If a choice is no single token, or the server
ignores `allowed_token_ids`, a grammar enforces it, which is slower. Free replies are completions of rendered text too,
several in a request if they are short. If the model may reason, or its template cannot be seen, they are asked on the
chat endpoint, whose parser separates reasoning from the reply. This module knows messages, tokens and choices, not what
they mean.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from medexam.errors import (
    EndpointSilentError,
    EndpointUnreachableError,
    LogprobsUnavailableError,
    UnsupportedFeatureError,
)
from medexam.model_calls import ChatMessage, ContinuationRequest, Dialogue, Generation, Sampling
from medexam.serve.chat_messages import TemplateRules, chat_fields, plain_text, put_pictures, tool_turns
from medexam.serve.contract import EngineInfo
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.discovery.requests import LIMITS, TOOL_PARAMS, UNLIMITED, rename_limit
from medexam.serve.engines.choice_tokens import ChoiceTokens
from medexam.serve.engines.completions import Completions
from medexam.serve.engines.hosted import HostedEngine
from medexam.serve.engines.litellm_calls import call_litellm, read_replies, reading_reply
from medexam.serve.engines.prompt_text import Renderer
from medexam.serve.engines.thinking_count import count_thinking
from medexam.serve.engines.vllm_wire import (
    PLAIN_FIELDS,
    Completion,
    build_generation,
    choice_body,
    chosen_in_chat,
    chosen_text,
    escape_pattern,
)
from medexam.serve.logprobs.tokens import ReadMethods, build_reading
from medexam.serve.logprobs.vllm import ContinuationReader, Tokenizer
from medexam.serve.pool.server_pool import Server, ServerPool
from medexam.serve.request_settings import RequestSettings
from medexam.serve.thinking import CLOSED, append


@dataclass
class VLLMEngine(HostedEngine):
    """An engine of one model on its servers."""

    pool: ServerPool
    capabilities: Sequence[Capabilities]
    """What was seen of each server; those that join later honour the same."""
    renderer: Renderer | None
    """None if the servers do not render their chat template."""
    tokenizer: Tokenizer | None = None
    """None if the servers do not tokenise."""
    settings: RequestSettings = field(default_factory=RequestSettings)
    """Fields of every request that writes or chooses."""
    room: int = 0
    """Tokens that a free reply may think beside its own budget."""
    opens_thinking: bool = False
    """The chat template leaves a block of thinking open, which the reply fills."""
    _enforced: Counter[str] = field(default_factory=Counter)
    _read: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        super().__init__(self.pool.limit)
        self.model = self.capabilities[0].model
        self._completions = Completions(
            self.pool, self.model, lists=all(server.list_prompts for server in self.capabilities)
        )
        self._rules = TemplateRules(
            system=all(server.system_turn for server in self.capabilities),
            repeats=all(server.repeated_turns for server in self.capabilities),
            empty_system=all(server.empty_system_turn for server in self.capabilities),
        )
        next_token = self.renderer is not None and all(server.guided_by == "prefill" for server in self.capabilities)
        self._tokens = ChoiceTokens(self.renderer) if self.renderer and next_token else None
        self._grammar = all(server.structured_outputs for server in self.capabilities)
        thinks = self.renderer is not None and self.renderer.may_reason and self.settings.thinks is not False
        self._writes_plainly = self.renderer is not None and not thinks and not self.settings.chat_only
        """Whether free replies are completions of rendered text: nothing is lost without the chat endpoint."""
        self._neutral = dict(self.capabilities[0].neutral)
        """What every request that writes or chooses states of sampling, unless it or the spec says otherwise."""
        self._reader = self._build_reader() if self.tokenizer else None
        self._fields = lru_cache(maxsize=64)(self._build_fields)

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
        return frozenset((*PLAIN_FIELDS, *formed, *(TOOL_PARAMS if self.supports_function_calling else ())))

    def _build_fields(self, sampling: Sampling, *, choosing: bool = False) -> str:
        """Build the fields of a completions request as JSON; those of a choice say nothing of its length."""
        settings = self.settings
        fields = {**sampling.drawing(), **settings.choosing} if choosing else {**sampling.fields(), **settings.sampling}
        return json.dumps({**self._neutral, **fields, **_several(sampling)}, sort_keys=True)

    async def answer(self, dialogue: Dialogue) -> list[Generation]:
        """Return the replies to one dialogue, one for each sample."""
        if dialogue.continuations is not None:
            if dialogue.pictures or dialogue.turns is not None:
                raise UnsupportedFeatureError("log-probabilities are read behind texts alone", feature="messages")
            return [await self._score(dialogue, dialogue.continuations)]
        if dialogue.plain:
            return await self._continue(plain_text(dialogue), dialogue.sampling)
        if (turns := tool_turns(dialogue)) is not None:
            return await self._call_chat(turns, self._all_fields(dialogue))
        messages = self._rules.fit(dialogue.messages)
        if dialogue.pictures:
            return await self._answer_pictures(dialogue, put_pictures(messages, dialogue.pictures))
        if dialogue.choices is not None:
            return await self._choose(messages, dialogue.opening, dialogue.choices, dialogue.sampling)
        if dialogue.opening or (self._writes_plainly and not dialogue.fields):
            return await self._write(messages, dialogue)
        return await self._call_chat(messages, self._all_fields(dialogue))

    async def _answer_pictures(self, dialogue: Dialogue, messages: list[dict[str, Any]]) -> list[Generation]:
        """Reply to messages with pictures, which the chat endpoint alone takes."""
        if dialogue.choices is not None:
            return await self._choose_in_chat(messages, dialogue.opening, dialogue.choices, dialogue.sampling)
        if dialogue.opening:
            raise UnsupportedFeatureError(
                "a reply to a picture cannot be made to continue given words, except by a choice", feature="messages"
            )
        return await self._call_chat(messages, self._all_fields(dialogue))

    def _all_fields(self, dialogue: Dialogue) -> dict[str, Any]:
        """Build the fields of a request to the chat endpoint."""
        fields = self._neutral | chat_fields(dialogue) | self.settings.sampling | _several(dialogue.sampling)
        return fields | {name: fields[name] + self.room for name in LIMITS if self.room and name in fields}

    @property
    def shares_prompts(self) -> bool:
        """Whether one request brings several replies to its prompt."""
        return all(server.several_replies for server in self.capabilities)

    def info(self) -> EngineInfo:
        """Describe what really runs; `guided_by` is what enforced most choices, if any were asked."""
        first = self.capabilities[0]
        able = "prefill" if self._tokens else "structured_outputs" if self._grammar else None
        contexts = [server.max_context for server in self.capabilities if server.max_context is not None]
        versions = {server.server_version for server in self.capabilities if server.server_version}
        return EngineInfo(
            engine="vllm",
            model=self.model,
            identity=first.identity,
            endpoints=tuple(dict.fromkeys(server.endpoint.base for server in self.pool.servers)),
            server_version=", ".join(sorted(versions)) or None,
            max_context=min(contexts, default=None),
            chat_template=self.renderer.template if self.renderer else None,
            system_turn="kept" if self._rules.system else "merged",
            guided_by=self._enforced.most_common(1)[0][0] if self._enforced else able,
            details={
                "source": first.source,
                "sampling": first.sampling,
                "warnings": self._warnings(),
                **self._rules.details,
                **({"open_thinking": CLOSED} if self.opens_thinking else {}),
                **({"read_by": dict(self._read)} if self._read else {}),
            },
        )

    def _warnings(self) -> list[str]:
        """List what a reader of the replies should know."""
        unlimited = None if self.capabilities[0].limit else UNLIMITED.format(self.capabilities[0].endpoint)
        return [warning for warning in (unlimited, self.prompts.warning) if warning]

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
        for service in {id(part): part for part in (self.renderer, self.tokenizer) if part is not None}.values():
            await service.aclose()

    def _build_reader(self) -> ContinuationReader:
        assert self.tokenizer is not None  # noqa: S101
        return ContinuationReader(
            self.tokenizer,
            ReadMethods(frozenset.intersection(*(server.reads for server in self.capabilities))),
            self._completions.read,
            echo=max(server.echo_logprobs or 0 for server in self.capabilities),
            prompts=self._completions.most_prompts,
            busy_at=self._completions.busy_at,
        )

    async def _score(self, dialogue: Dialogue, continuations: ContinuationRequest) -> Generation:
        if self._reader is None:
            raise LogprobsUnavailableError(
                "the server does not tokenise, so it is unknown which tokens its log-probabilities belong to; "
                "serve the model with vLLM, or use the embedded engine"
            )
        if not continuations.template:
            prompt = plain_text(dialogue)
        elif self.renderer is not None:
            prompt = await self._render(self._rules.fit(dialogue.messages), dialogue.opening, choosing=True)
        else:
            raise LogprobsUnavailableError(
                "the server does not render its chat template exactly; set program.chat_template to false"
            )
        reading = await self._reader.read(prompt, continuations)
        self._read[reading.read_by] += 1
        return build_reading(reading, continuations.texts, self.model)

    async def _choose(
        self, messages: list[ChatMessage], opening: str, choices: tuple[str, ...], sampling: Sampling
    ) -> list[Generation]:
        if self.renderer is None:
            return await self._choose_in_chat(messages, opening, choices, sampling)
        prompt = await self._render(messages, opening, choosing=True)
        replies = await self._choose_token(prompt, opening, choices, self._fields(sampling, choosing=True))
        return [build_generation(reply, text, "stop") for reply, text in replies]

    async def _choose_token(
        self, prompt: str, prefill: str, choices: tuple[str, ...], fields: str
    ) -> list[tuple[Completion, str]]:
        """Ask for replies to a prompt that ends in `prefill`, and pair each with its choice; `fields` is JSON."""
        ids = await self._tokens.find(prompt, prefill, choices) if self._tokens else None
        if ids is None:
            self._check_grammar(choices)
        replies = await self._completions.choose(prompt, choice_body(fields, choices, ids))
        self._enforced["prefill" if ids is not None else "structured_outputs"] += 1
        return [(reply, chosen_text(reply, choices, ids)) for reply in replies]

    async def _choose_in_chat(
        self, messages: Sequence[Mapping[str, Any]], prefill: str, choices: tuple[str, ...], sampling: Sampling
    ) -> list[Generation]:
        """Let the grammar write the opening words too, because nothing can be appended to an unseen prompt."""
        self._check_grammar(choices)
        pattern = f"{escape_pattern(prefill)}({'|'.join(escape_pattern(choice) for choice in choices)})"
        fields = {**self._neutral, **sampling.drawing(), **self.settings.choosing, **_several(sampling)}
        generations = await self._call_chat(messages, {**fields, "structured_outputs": {"regex": pattern}})
        self._enforced["structured_outputs"] += 1
        return [chosen_in_chat(generation, prefill, choices) for generation in generations]

    def _check_grammar(self, choices: Sequence[str]) -> None:
        if not self._grammar:
            refusal = next(
                filter(None, (server.refusals.get("structured_outputs") for server in self.capabilities)), None
            )
            behaviour = "ignores structured_outputs" if refusal is None else f"refuses structured_outputs: {refusal}"
            raise UnsupportedFeatureError(
                f"the choices {list(choices)} are not single tokens, and the server {behaviour}",
                feature="config.extensions.choice",
            )

    async def _write(self, messages: list[ChatMessage], dialogue: Dialogue) -> list[Generation]:
        """Write a free reply that continues its opening words, if it has some; a template would trim them."""
        if self.renderer is None:
            raise UnsupportedFeatureError(
                "the server does not render its chat template, so a reply's opening words cannot be appended exactly",
                feature="messages",
            )
        if dialogue.fields:
            fields = json.dumps(self._all_fields(dialogue), sort_keys=True)
        else:
            fields = self._fields(dialogue.sampling)
        return await self._complete_one(await self._render(messages, dialogue.opening), fields, dialogue.sampling)

    async def _render(self, messages: list[ChatMessage], prefill: str, *, choosing: bool = False) -> str:
        """Render the prompt's text; `choosing`: something is chosen or read behind it, so no thought is left open."""
        assert self.renderer is not None  # noqa: S101
        return append(await self.renderer.render(messages), prefill, choosing=choosing)

    async def _continue(self, text: str, sampling: Sampling) -> list[Generation]:
        """Write a free reply to plain text, before which the tokenizer writes what opens every text."""
        fields = {**json.loads(self._fields(sampling)), "add_special_tokens": True}
        return await self._complete_one(text, json.dumps(fields, sort_keys=True), sampling)

    async def _complete_one(self, prompt: str, fields: str, sampling: Sampling) -> list[Generation]:
        """Write free replies to a prompt; `fields` is JSON."""
        replies = await self._completions.write(prompt, fields, sampling.max_tokens)
        return [build_generation(reply, reply.text, reply.finish_reason) for reply in replies]

    async def _call_chat(self, messages: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]) -> list[Generation]:
        body = rename_limit({**self.settings.chat, **fields}, self.capabilities[0].limit)
        call: dict[str, Any] = {"model": f"openai/{self.model}", "messages": list(messages), "extra_body": body}
        samples = body.get("n", 1)

        async def send(server: Server) -> list[Generation]:
            endpoint = server.endpoint
            connection = {"api_base": endpoint.base, "api_key": endpoint.key, "client": server.client}
            raw = await call_litellm("acompletion", timeout_s=self.pool.timeout_s, **call, **connection)
            with reading_reply():
                return read_replies(raw, self.model, samples)

        replies = await self.pool.call(send, weight=samples)
        self.count_prompt(messages, replies[0])
        return [await count_thinking(reply, self.tokenizer, opened=self.opens_thinking) for reply in replies]


def _several(sampling: Sampling) -> dict[str, int]:
    """Build the field that asks for more than one reply."""
    return {"n": sampling.samples} if sampling.samples > 1 else {}
