"""An engine whose calls are counted on a budget and answered from the log where it knows the reply."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from medexam.experiments.optimize.budget import Budget
from medexam.experiments.optimize.call_log import CallLog, LoggedCall, hash_request
from medexam.model_calls import Dialogue, Generation
from medexam.model_identity import Answerer
from medexam.predictions import ModelCall
from medexam.serve import Engine
from medexam.serve.contract import EngineInfo, SyncTwin
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
        """Stand before the engine of an answerer."""
        self._engine = engine
        self._answerer = answerer
        # What the server of a script's own `dspy.LM` calls its model is known with the first reply.
        self._served_name = None if engine.info().engine == "dspy" else answerer.name
        self._log = log
        self._budget = budget
        self._in_flight: dict[str, asyncio.Future[list[Generation]]] = {}
        self.sync = SyncTwin(lambda dialogue: background_loop().run(self.reply(dialogue)))

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

    @property
    def takes_seed(self) -> bool:
        """Whether a seed reaches the model."""
        return getattr(self._engine, "takes_seed", True)

    async def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the logged replies, or the engine's; raises `StoppedError` if the budget allows no further call."""
        # DSPy's optimizers ask from threads with loops of their own, which share what is in flight.
        return await background_loop().run_async(self._reply(dialogue))

    async def _reply(self, dialogue: Dialogue) -> list[Generation]:
        key = hash_request(dialogue)
        repeatable = not dialogue.sampling.temperature
        replies = self._log.recall(self._answerer.print, key, repeatable=repeatable)
        if replies is not None:
            return replies
        if not repeatable:
            return await self._call(self._reseed(dialogue, key), key, repeatable=False)
        if key in self._in_flight:
            # Candidates that are tried at once often share a request. A shield: a candidate that is cancelled
            # must not cancel the call for the others.
            return await asyncio.shield(self._in_flight[key])
        self._in_flight[key] = asyncio.ensure_future(self._call(dialogue, key, repeatable=True))
        try:
            return await self._in_flight[key]
        finally:
            self._in_flight.pop(key, None)

    def _reseed(self, dialogue: Dialogue, key: str) -> Dialogue:
        """Return the dialogue under a seed of its own: asked twice at a temperature, it shall be answered twice."""
        log_key = self._answerer.print, key
        times = self._log.times_asked[log_key]
        self._log.times_asked[log_key] += 1
        seed = dialogue.sampling.seed
        if not times or seed is None:
            return dialogue
        return dialogue.with_seed(seed + times)

    async def _call(self, dialogue: Dialogue, key: str, *, repeatable: bool) -> list[Generation]:
        group = _group.get() or _OTHER
        most_tokens = _most_tokens(dialogue)
        # Taken before the budget is asked, which may wait: another call of the group must not count on the same one.
        reserved = group.reserved > 0
        group.reserved -= reserved
        await self._budget.begin(most_tokens, reserved=reserved)
        tokens, answered_by, request = most_tokens, self._answerer.print, ModelCall.of(dialogue)
        calls: tuple[ModelCall, ...] = (request,)
        try:
            generations = [self._renamed(generation) for generation in await self._engine.reply(dialogue)]
            counts = [count for one in generations for count in (one.prompt_tokens, one.completion_tokens)]
            if None not in counts:
                tokens = sum(count or 0 for count in counts)
            calls = tuple(request.with_reply(generation, number) for number, generation in enumerate(generations))
            answered_by = self._answerer.print_of(generations[0].model, cut=False)
            return generations
        finally:
            # A failed or cancelled call may have cost as much as it could, and is counted so.
            await self._budget.end(most_tokens, tokens)
            call = LoggedCall(group=group.name, key=key, answered_by=answered_by, tokens=tokens, calls=calls)
            self._log.add(call, repeatable=repeatable)

    def _renamed(self, generation: Generation) -> Generation:
        """Return the generation under the answerer's name for the model that the server names as it did at first."""
        self._served_name = self._served_name or generation.model
        return replace(generation, model=self._answerer.name) if generation.model == self._served_name else generation


def _most_tokens(dialogue: Dialogue) -> int:
    """Count tokens that the call cannot exceed: no tokenizer makes more of a text than it has bytes."""
    texts = [*(message["content"] for message in dialogue.messages), dialogue.opening]
    turns = sum(message["role"] != "system" for message in dialogue.messages) + bool(dialogue.opening)
    prompt_tokens = sum(len(text.encode()) for text in texts) + TEMPLATE_TOKENS * (turns + 2)
    if dialogue.choices is not None:
        return prompt_tokens + max(len(choice.encode()) for choice in dialogue.choices)
    return prompt_tokens + (dialogue.sampling.max_tokens or DEFAULT_REPLY_TOKENS)
