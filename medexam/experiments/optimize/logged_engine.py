"""An engine whose calls are counted on a budget and answered from the log where it knows the reply."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from dspy.lm15 import Message, Request, Response, TextPart, ThinkingPart, Usage

from medexam.experiments.optimize.budget import Budget
from medexam.experiments.optimize.call_log import CallLog, LoggedCall
from medexam.model_identity import Answerer
from medexam.programs.recording import digest_request
from medexam.serve import Engine
from medexam.serve.contract import CHOICE, EngineInfo, SyncEngine
from medexam.serve.network.event_loop import background_loop

TEMPLATE_TOKENS = 16
"""Tokens that a chat template adds to a message at most."""
DEFAULT_REPLY_TOKENS = 4096
"""Tokens counted for a reply without a limit of its own, until it is there."""


@dataclass
class CallGroup:
    """Calls that are counted together."""

    name: str
    """A trial's digest, or what is done beside the trials, such as `bootstrapping`."""
    reserved: int = 0
    """Calls that the budget keeps for it."""


_group: ContextVar[CallGroup | None] = ContextVar("group", default=None)
_OTHER = CallGroup("instructions")


@contextmanager
def call_group(group: CallGroup) -> Iterator[None]:
    """Count what is called in the block, and in threads and tasks that copy its context, to this group."""
    token = _group.set(group)
    try:
        yield
    finally:
        _group.reset(token)


class LoggedEngine:
    """The engine of one model of an optimization."""

    def __init__(self, engine: Engine, answerer: Answerer, log: CallLog, budget: Budget) -> None:
        self._engine = engine
        self._answerer = answerer
        # What the server of a script's own `dspy.LM` calls its model is known with the first reply.
        self._served_name = None if engine.info().engine == "dspy" else answerer.name
        self._log = log
        self._budget = budget
        self._in_flight: dict[str, asyncio.Future[Response]] = {}
        # DSPy's optimizers call this from threads of their own.
        self.sync = SyncEngine(lambda request: background_loop().run(self.complete(request)))

    @property
    def concurrency(self) -> int:
        """The engine's own."""
        return self._engine.concurrency

    def info(self) -> EngineInfo:
        """Return the engine's own description."""
        return self._engine.info()

    async def aclose(self) -> None:
        """Close the engine."""
        await self._engine.aclose()

    async def complete(self, request: Request) -> Response:
        """Return the logged reply, or the engine's; raises `StoppedError` if the budget allows no further call."""
        key, repeatable = digest_request(request), not request.config.temperature
        reply = self._log.recall(self._answerer.print, key, repeatable=repeatable)
        if reply is not None:
            return _from_json(reply)
        if not repeatable:
            return await self._call(self._reseed(request, key), key, repeatable=False)
        if key in self._in_flight:
            # Candidates that are tried at once often share a request. A shield: a candidate that is cancelled
            # must not cancel the call for the others.
            return await asyncio.shield(self._in_flight[key])
        self._in_flight[key] = asyncio.ensure_future(self._call(request, key, repeatable=True))
        try:
            return await self._in_flight[key]
        finally:
            self._in_flight.pop(key, None)

    def _reseed(self, request: Request, key: str) -> Request:
        """Return the request under a seed of its own: asked twice at a temperature, it shall be answered twice."""
        log_key = self._answerer.print, key
        times = self._log.times_asked[log_key]
        self._log.times_asked[log_key] += 1
        if not times or request.config.seed is None:
            return request
        return replace(request, config=replace(request.config, seed=request.config.seed + times))

    async def _call(self, request: Request, key: str, *, repeatable: bool) -> Response:
        group = _group.get() or _OTHER
        most_tokens = _most_tokens(request)
        # Taken before the budget is asked, which may wait: another call of the group must not count on the same one.
        reserved = group.reserved > 0
        group.reserved -= reserved
        await self._budget.begin(most_tokens, reserved=reserved)
        tokens, reply, answered_by = most_tokens, None, self._answerer.print
        try:
            response = await self._engine.complete(request)
            self._served_name = self._served_name or response.model
            if response.model == self._served_name:
                response = replace(response, model=self._answerer.name)
            usage = response.usage
            if usage.input_tokens is not None and usage.output_tokens is not None:
                tokens = usage.input_tokens + usage.output_tokens
            reply = _to_json(response)
            answered_by = self._answerer.print_of(response.model, cut=False)
            return response
        finally:
            # A failed or cancelled call may have cost as much as it could, and is counted so.
            await self._budget.end(most_tokens, tokens)
            call = LoggedCall(group=group.name, key=key, answered_by=answered_by, tokens=tokens, reply=reply)
            self._log.add(call, repeatable=repeatable)


def _most_tokens(request: Request) -> int:
    """Count tokens that the call cannot exceed: no tokenizer makes more of a text than it has bytes."""
    system = (
        [request.system] if isinstance(request.system, str) else [getattr(p, "text", "") for p in request.system or ()]
    )
    messages = [part.text for message in request.messages for part in message.parts if isinstance(part, TextPart)]
    prompt_tokens = sum(len(text.encode()) for text in (*system, *messages)) + TEMPLATE_TOKENS * (
        len(request.messages) + 2
    )
    extensions = request.config.extensions or {}
    if CHOICE in extensions:
        return prompt_tokens + max(len(choice.encode()) for choice in extensions[CHOICE])
    return prompt_tokens + (request.config.max_tokens or DEFAULT_REPLY_TOKENS)


def _to_json(response: Response) -> dict[str, Any]:
    parts = response.message.parts
    return {
        "model": response.model,
        "finish_reason": response.finish_reason,
        "text": "".join(part.text for part in parts if isinstance(part, TextPart)),
        "thinking": "".join(part.text for part in parts if isinstance(part, ThinkingPart)) or None,
        "input_tokens": response.usage.input_tokens,
        "output_tokens": response.usage.output_tokens,
        "provider_data": response.provider_data,
    }


def _from_json(reply: Mapping[str, Any]) -> Response:
    parts: list[Any] = [ThinkingPart(reply["thinking"])] if reply["thinking"] else []
    return Response(
        id=None,
        model=reply["model"],
        message=Message.assistant([*parts, TextPart(reply["text"])]),
        finish_reason=reply["finish_reason"],
        usage=Usage(input_tokens=reply["input_tokens"], output_tokens=reply["output_tokens"]),
        provider_data=reply["provider_data"],
    )
