"""One question asked with everything seen: each call's messages and settings, its reply, and what came out.

Nothing is kept, so that the question is still pending afterwards. This module knows calls; who prints them is the
caller's business.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dspy.utils.exceptions import LMError

from medexam.dspy_internals import CALL_ERRORS
from medexam.errors import ProgramFaultError
from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.run.language_model import build_lm
from medexam.model_calls import Dialogue, Generation
from medexam.predictions import Prediction
from medexam.programs import AskingProgram, build_failure, build_prediction
from medexam.programs.outcome import read_both
from medexam.serve import Engine, build_engine
from medexam.serve.contract import EngineInfo, SyncTwin
from medexam.signatures.direct import in_bulk, run_program

Show = Callable[[dict[str, Any]], None]
"""Takes what is known of one call: `messages`, `settings` and either `reply` with its tokens or `fault`."""


async def ask_one(planned: AnyCell, question: Any, show: Show) -> Prediction:
    """Ask one question of a cell, and return its prediction; `show` takes each call as it comes.

    Raises `EngineError` if the model cannot be had.
    """
    if planned.retrieval is not None:
        await asyncio.to_thread(planned.retrieval.fill, [question], None)
    if planned.nearest is not None:
        await asyncio.to_thread(planned.nearest.fill, [question])
    model, program = planned.cell.model, planned.program
    engine = await build_engine(model, planned.cell.program.engine_needs) if planned.asks_model else None
    label, digest = planned.cell.program.label, planned.spec_digest
    start = time.monotonic()
    try:
        with in_bulk(build_lm(model, _SeenEngine(engine, show)) if engine else None):
            output = await run_program(program, question)
    except (LMError, ProgramFaultError) as error:
        return build_failure(question, error, program=label, spec_digest=digest)
    finally:
        if engine is not None:
            await engine.aclose()
    latency_s = time.monotonic() - start
    prediction = build_prediction(question, output, program=label, spec_digest=digest, latency_s=latency_s)
    return read_both(program, question, prediction) if isinstance(program, AskingProgram) else prediction


class _SeenEngine:
    """An engine whose calls are shown; it declares what the engine behind it declares."""

    def __init__(self, engine: Engine, show: Show) -> None:
        self._engine = engine
        self._show = show
        self.sync = SyncTwin(self._reply_blocking)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def info(self) -> EngineInfo:
        """Describe what really runs."""
        return self._engine.info()

    async def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the replies to one dialogue, and show them."""
        with self._seeing_faults(dialogue):
            generations = await self._engine.reply(dialogue)
        self._see(dialogue, generations[0])
        return generations

    def _reply_blocking(self, dialogue: Dialogue) -> list[Generation]:
        with self._seeing_faults(dialogue):
            generations = self._engine.sync.reply(dialogue)
        self._see(dialogue, generations[0])
        return generations

    @contextmanager
    def _seeing_faults(self, dialogue: Dialogue) -> Iterator[None]:
        try:
            yield
        except CALL_ERRORS as error:
            self._show({**_describe(dialogue), "fault": f"{type(error).__name__}: {error}"})
            raise

    def _see(self, dialogue: Dialogue, generation: Generation) -> None:
        told = {
            "reply": generation.reply,
            "tool_calls": [call.model_dump() for call in generation.tool_calls] or None,
            "continuations": generation.reading.model_dump(mode="json") if generation.reading else None,
            "finish_reason": generation.finish_reason,
            "prompt_tokens": generation.prompt_tokens,
            "completion_tokens": generation.completion_tokens,
        }
        self._show({**_describe(dialogue), **{name: value for name, value in told.items() if value is not None}})


def _describe(dialogue: Dialogue) -> dict[str, Any]:
    """Return the messages of a dialogue and all that is set of its reply."""
    request = dialogue.continuations
    settings = {
        **dialogue.sampling.fields(),
        **dialogue.fields,
        "choice": dialogue.choices and list(dialogue.choices),
        "continuations": request and request.model_dump(mode="json"),
        "plain": dialogue.plain or None,
        "samples": dialogue.sampling.samples if dialogue.sampling.samples > 1 else None,
        "tools": [tool["function"]["name"] for tool in dialogue.fields.get("tools", ())] or None,
    }
    return {
        "messages": dialogue.turns_with_opening,
        "settings": {name: value for name, value in settings.items() if value is not None},
    }
