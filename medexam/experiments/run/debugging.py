"""One question asked and nothing kept, so that it is still pending afterwards."""

import asyncio
import time
from typing import Any

from dspy.utils.exceptions import LMError

from medexam.errors import ProgramFaultError
from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.run.language_model import build_lm
from medexam.predictions import Prediction
from medexam.programs import AskingProgram, build_failure, build_prediction
from medexam.programs.outcome import read_both
from medexam.programs.recording import kept_calls
from medexam.serve import build_engine
from medexam.signatures.direct import in_bulk, run_program


async def ask_one(planned: AnyCell, question: Any) -> Prediction:
    """Ask one question of a cell, and return its prediction; raises `EngineError` if the model cannot be had."""
    if planned.retrieval is not None:
        await asyncio.to_thread(planned.retrieval.fill, [question], None)
    if planned.nearest is not None:
        await asyncio.to_thread(planned.nearest.fill, [question])
    model, program = planned.cell.model, planned.program
    engine = await build_engine(model, planned.cell.program.engine_needs) if planned.asks_model else None
    label, digest = planned.cell.program.label, planned.spec_digest
    start = time.monotonic()
    try:
        with in_bulk(build_lm(model, engine) if engine else None), kept_calls() as calls:
            output = await run_program(program, question)
            latency_s = time.monotonic() - start
            prediction = build_prediction(
                question, output, calls.all(), program=label, spec_digest=digest, latency_s=latency_s
            )
            return await read_both(program, question, prediction) if isinstance(program, AskingProgram) else prediction
    except (LMError, ProgramFaultError) as error:
        return build_failure(question, error, calls.all(), program=label, spec_digest=digest)
    finally:
        if engine is not None:
            await engine.aclose()
