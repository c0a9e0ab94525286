"""One question asked with everything seen: each call's messages and settings, its reply, and what came out.

Nothing is kept, so that the question is still pending afterwards. This module knows calls; who prints them is the
caller's business.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from dspy.lm15 import Request, Response
from dspy.utils.exceptions import LMError

from medexam.dspy_internals import CALL_ERRORS
from medexam.errors import ProgramFaultError
from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.run.language_model import build_lm
from medexam.predictions import Prediction
from medexam.programs import AskingProgram, build_failure, build_prediction, read_both
from medexam.programs.replay import request_turns
from medexam.serve import Engine, build_engine
from medexam.serve.contract import EngineInfo, SyncEngine
from medexam.signatures.direct import in_bulk, run_program
from medexam.signatures.requests import read_generation

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
        self.sync = SyncEngine(self._answer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def info(self) -> EngineInfo:
        """Describe what really runs."""
        return self._engine.info()

    async def complete(self, request: Request) -> Response:
        """Answer one request, and show it."""
        try:
            response = await self._engine.complete(request)
        except CALL_ERRORS as error:
            self._see(request, fault=error)
            raise
        self._see(request, response)
        return response

    def _answer(self, request: Request) -> Response:
        try:
            response = self._engine.sync.complete(request)
        except CALL_ERRORS as error:
            self._see(request, fault=error)
            raise
        self._see(request, response)
        return response

    def _see(self, request: Request, response: Response | None = None, fault: Exception | None = None) -> None:
        config = request.config
        names = ("temperature", "top_p", "top_k", "seed", "max_tokens", "stop", "response_format", "tool_choice")
        settings = {name: value for name in names if (value := getattr(config, name, None)) not in (None, ())}
        settings |= config.extensions or {}
        if request.tools:
            settings["tools"] = [tool.name for tool in request.tools]
        call: dict[str, Any] = {"messages": request_turns(request), "settings": settings}
        if response is None:
            self._show({**call, "fault": f"{type(fault).__name__}: {fault}"})
            return
        generation = read_generation(response)
        told = {
            "reply": generation.reply,
            "tool_calls": [one.model_dump() for one in generation.tool_calls] or None,
            "continuations": (response.provider_data or {}).get("continuations"),
            "finish_reason": generation.finish_reason,
            "prompt_tokens": generation.prompt_tokens,
            "completion_tokens": generation.completion_tokens,
        }
        self._show({**call, **{name: value for name, value in told.items() if value is not None}})
