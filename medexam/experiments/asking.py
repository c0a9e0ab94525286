"""Asking the questions of one cell: many in flight, each kept as it comes, none lost when the run is interrupted.

It knows programs and run folders; which engine answers and what the answers are worth is known elsewhere.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import dspy
from dspy.utils.exceptions import (
    ContextWindowExceededError,
    LMAuthError,
    LMConfigurationError,
    LMError,
    LMUnsupportedFeatureError,
    LMUnsupportedModelError,
)

from medexam.errors import EngineError
from medexam.experiments.planning import PlannedCell
from medexam.experiments.run_folder import PredictionLog
from medexam.predictions import Prediction, Status
from medexam.programs import build_failure, build_prediction
from medexam.questions import Question

FLUSH_S = 0.5
"""Seconds that a finished prediction waits at most for its place on the disk."""
GIVE_UP_AFTER = 32
"""Failures in a row after which the server is taken for gone and the rest stays owed."""

_HOPELESS = (LMAuthError, LMConfigurationError, LMUnsupportedFeatureError, LMUnsupportedModelError)

Observer = Callable[[Prediction], None]


@dataclass
class _Asking:
    planned: PlannedCell
    log: PredictionLog
    observe: Observer
    waiting: Iterator[Question]
    failures: int = 0
    gave_up: bool = False
    hopeless: list[LMError] = field(default_factory=list)


async def ask(planned: PlannedCell, log: PredictionLog, observe: Observer, *, concurrency: int) -> None:
    """Ask every question that the cell owes, `concurrency` at a time.

    A failed question is logged as failed and stays owed. Raises `EngineError` for a fault that no other question would
    escape, such as a refused key; cancelling loses nothing that was finished.
    """
    asking = _Asking(planned, log, observe, iter(planned.owed))
    flusher = asyncio.create_task(_flush_regularly(log))
    workers = [asyncio.create_task(_work(asking)) for _ in range(min(concurrency, len(planned.owed)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for task in (*workers, flusher):
            task.cancel()
        await asyncio.gather(*workers, flusher, return_exceptions=True)
        log.flush()
    if asking.hopeless:
        raise EngineError(f"{planned.folder.run_id}: {asking.hopeless[0]}")


async def _work(asking: _Asking) -> None:
    for question in asking.waiting:
        if asking.gave_up or asking.hopeless:
            return
        prediction = await _answer(asking, question)
        asking.failures = asking.failures + 1 if prediction.status is Status.FAILED else 0
        asking.gave_up = asking.failures >= GIVE_UP_AFTER
        asking.log.append(prediction)
        asking.observe(prediction)


async def _answer(asking: _Asking, question: Question) -> Prediction:
    planned = asking.planned
    names = {"program": planned.cell.program.label, "spec_digest": planned.spec_digest}
    begun = time.monotonic()
    try:
        said: dspy.Prediction = await planned.program.acall(question=question)
    except _HOPELESS as error:
        asking.hopeless.append(error)
        return build_failure(question, error, **names)
    except (LMError, ContextWindowExceededError) as error:
        return build_failure(question, error, **names)
    return build_prediction(question, said, latency_s=time.monotonic() - begun, **names)


async def _flush_regularly(log: PredictionLog) -> None:
    while True:
        await asyncio.sleep(FLUSH_S)
        log.flush()
