"""One question asked and nothing kept, so that it is still pending afterwards."""

import asyncio
from typing import Any

from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.run.scheduler import Work, answer
from medexam.predictions import Prediction
from medexam.programs.lm import build_lm, in_bulk
from medexam.serve import build_engine


async def ask_one(planned: AnyCell, question: Any) -> Prediction:
    """Ask one question of a cell, and return its prediction; raises `EngineError` if the model cannot be had."""
    if planned.retrieval is not None:
        await asyncio.to_thread(planned.retrieval.fill, [question], None)
    if planned.nearest is not None:
        await asyncio.to_thread(planned.nearest.fill, [question])
    model = planned.cell.model
    engine = await build_engine(model, planned.cell.program.engine_needs) if planned.asks_model else None
    try:
        with in_bulk(build_lm(model, engine) if engine else None):
            return (await answer(Work.of(planned), question))[0]
    finally:
        if engine is not None:
            await engine.aclose()
