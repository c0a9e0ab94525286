"""What an optimization may ask: calls and tokens, none of which is ever exceeded; no reply is paid for twice.

Replies lie in a cache of DSPy's in the optimization's folder, with the counts of what was spent. DSPy's optimizers are
deterministic in what the model replies, so an interrupted one is repeated: what was asked costs nothing.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import dspy
from dspy import lm15
from pydantic import TypeAdapter

from medexam.dspy_internals import CALL_ERRORS
from medexam.errors import ContextLengthError, MedExamError
from medexam.model_calls import Dialogue, Generation
from medexam.model_identity import Answerer
from medexam.predictions import ModelCall
from medexam.process import background_loop
from medexam.serve import Engine
from medexam.specs.experiment import OptimizerSpec

Ending = Literal["complete", "budget", "interrupted", "failed"]
TEMPLATE_TOKENS, DEFAULT_REPLY_TOKENS = 16, 4096
"""The most that a chat template adds to a message, and that is counted for a reply without a limit of its own."""
_CALL = TypeAdapter(ModelCall)


class StoppedError(BaseException):
    """The optimization ends here. No `Exception`: DSPy's optimizers count those as failures and continue."""

    def __init__(self, why: str, ending: Ending, cause: MedExamError | None = None) -> None:
        """`cause` is what the whole command ends with; None where the optimization ends in order."""
        super().__init__(why)
        self.ending: Ending = ending
        self.cause = cause


class Meter:
    """Counts what is spent, in all sessions together; its calls begin and end on the network loop."""

    def __init__(self, folder: Path, limits: OptimizerSpec, seconds: float) -> None:
        """Take up the counts in `folder`; `seconds` were spent before."""
        self.limits = limits
        self.cache: Any = dspy.clients.Cache(
            enable_disk_cache=True,
            enable_memory_cache=True,
            disk_cache_dir=str(folder),
            disk_size_limit_bytes=2**50,
            restrict_pickle=True,
        )
        self.spent = Counter({name: self.cache.disk_cache.get(name, 0) for name in ("calls", "replies", "tokens")})
        """Calls, those of them that were answered, and tokens; a call in flight counts with the most it can take."""
        self.stopped: StoppedError | None = None
        """Why nothing more may be asked; None while something may."""
        self.in_flight: dict[str, asyncio.Future[Generation]] = {}
        self.start = time.monotonic() - seconds
        self._open = 0
        self._call_ended = asyncio.Condition()

    def stop(self, why: str, ending: Ending, cause: MedExamError | None = None) -> StoppedError:
        """Let no further call begin; return what ends it."""
        self.stopped = self.stopped or StoppedError(why, ending, cause)
        return self.stopped

    @asynccontextmanager
    async def calling(self, engine: Engine, most_tokens: int) -> AsyncIterator[None]:
        """Make one call, counted with `most_tokens`, when there is room; raises `StoppedError` without budget."""
        limits = self.limits

        def fits() -> bool:
            return limits.max_tokens is None or self.spent["tokens"] + most_tokens <= limits.max_tokens

        async with self._call_ended:
            # A call that does not fit waits for those in flight, which mostly take less than they can.
            await self._call_ended.wait_for(
                lambda: (fits() and self._open < engine.concurrency) or not self._open or self.stopped
            )
            if not fits():
                self.stop(f"{limits.max_tokens} tokens are too few for another call", "budget")
            if limits.max_calls is not None and self.spent["calls"] >= limits.max_calls:
                self.stop(f"all {limits.max_calls} calls of the budget are used", "budget")
            if self.stopped is not None:
                raise self.stopped
            self._open += 1
            self.count(calls=1, tokens=most_tokens)
        try:
            yield
        finally:
            async with self._call_ended:
                self._open -= 1
                self._call_ended.notify_all()

    def count(self, **counts: int) -> None:
        """Add to the counts, on the disk too."""
        for name, count in counts.items():
            self.spent[name] += count
            self.cache.disk_cache.incr(name, count, retry=True)


class MeteredEngine:
    """The engine of one model, whose replies come from the cache where they lie there."""

    def __init__(self, engine: Engine, answerer: Answerer, meter: Meter) -> None:
        """Stand before the engine of an answerer."""
        self._engine, self.answerer, self._meter = engine, answerer, meter
        self._draws: Counter[str] = Counter()
        # What the server of a script's own `dspy.LM` calls its model is known with the first reply.
        self._served_name = None if engine.info().engine == "dspy" else answerer.name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def reply(self, dialogue: Dialogue) -> Generation:
        """Return the reply of the cache, or the engine's; raises `StoppedError` where nothing more may be asked."""
        # DSPy's optimizers ask from threads with loops of their own, which share what is in flight.
        return await background_loop().run_async(self._reply(dialogue))

    async def _reply(self, dialogue: Dialogue) -> Generation:
        meter, call = self._meter, ModelCall.of(dialogue)
        request: dict[str, Any] = {"model": self.answerer.print, "words": call.words_sent, "sampling": call.sampling}
        if dialogue.sampling.get("temperature"):
            # Asked twice at a temperature, it shall be answered twice.
            key = meter.cache.cache_key(request)
            request["draw"], self._draws[key] = self._draws[key], self._draws[key] + 1
            if request["draw"] and "seed" in dialogue.sampling:
                dialogue = dialogue.with_seed(dialogue.sampling["seed"] + request["draw"])
        if (stored := meter.cache.get(request)) is not None:
            return _CALL.validate_json(stored)
        key = meter.cache.cache_key(request)
        if key not in meter.in_flight:
            meter.in_flight[key] = asyncio.ensure_future(self._ask(dialogue, request))
            meter.in_flight[key].add_done_callback(lambda _: meter.in_flight.pop(key))
        try:
            # A shield: a program that is given up must not cancel the call for the others.
            return await asyncio.shield(meter.in_flight[key])
        except asyncio.CancelledError:
            if meter.stopped is not None:
                raise meter.stopped from None
            raise

    async def _ask(self, dialogue: Dialogue, request: dict[str, Any]) -> Generation:
        meter, most = self._meter, _most_tokens(dialogue)
        try:
            async with meter.calling(self._engine, most):
                generation = await self._engine.reply(dialogue)
                # A failed or cancelled call may have cost as much as it could, and stays counted so.
                if generation.prompt_tokens is not None and generation.completion_tokens is not None:
                    meter.count(tokens=generation.prompt_tokens + generation.completion_tokens - most)
        except CALL_ERRORS as error:
            if isinstance(error, ContextLengthError | lm15.ContextLengthError):
                raise
            # The engine tried again itself, and a program without answers has no score.
            raise meter.stop(f"a call failed ({type(error).__name__}: {error})", "failed") from error
        self._served_name = self._served_name or generation.model
        if generation.model != self._served_name:
            raise meter.stop(
                f"replies come from {generation.model}, not from {self.answerer.name}, and programs that two "
                "models answered cannot be ranked; resume once the first one answers again, or start over with --fresh",
                "failed",
            )
        generation = replace(generation, model=self.answerer.name)
        meter.cache.put(request, _CALL.dump_json(ModelCall.of(dialogue, generation), exclude_none=True).decode())
        meter.count(replies=1)
        return generation


def _most_tokens(dialogue: Dialogue) -> int:
    """Count tokens that the call cannot exceed: no tokenizer makes more of a text than it has bytes."""
    texts = [*(message["content"] for message in dialogue.messages), dialogue.opening]
    turns = sum(message["role"] != "system" for message in dialogue.messages) + bool(dialogue.opening)
    prompt_tokens = sum(len(text.encode()) for text in texts) + TEMPLATE_TOKENS * (turns + 2)
    if dialogue.choices is not None:
        return prompt_tokens + max(len(choice.encode()) for choice in dialogue.choices)
    return prompt_tokens + (dialogue.sampling.get("max_tokens") or DEFAULT_REPLY_TOKENS)
