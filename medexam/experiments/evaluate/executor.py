"""Asks the examples of an evaluation of the model that a script has made, as its module and its metric call it."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import dspy

from medexam.errors import EngineError
from medexam.experiments.evaluate.counted import counted_calls
from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.run.runner import Executor
from medexam.experiments.run.scheduler import Scheduler
from medexam.experiments.run.spending import Spending
from medexam.gc_pause import gc_seldom
from medexam.programs.lm import EngineLM, held_models, in_bulk
from medexam.serve import EngineInfo
from medexam.serve.contract import find_changes
from medexam.serve.engines.dspy_model import IN_FLIGHT, LookedAtModel, describe_dspy_model
from medexam.specs import EngineNeeds
from medexam.specs.model import ModelSpec

if TYPE_CHECKING:
    from medexam.experiments.entry.progress import RunProgress


class ObjectExecutor(Executor):
    """An executor for one model, which stays the script's own: it is neither built nor closed here."""

    def __init__(self, lm: Any, in_flight: int | None) -> None:
        """Ask `lm`, a model of DSPy's, or None if the program has its own.

        `in_flight` examples at once; None: as many as keep the model busy.
        """
        super().__init__()
        self._lm = lm
        self._in_flight = in_flight
        self._engine: Any = lm.live_engine if isinstance(lm, EngineLM) else None

    @property
    def concurrency(self) -> Callable[[], int]:
        """How many examples are in flight at once; it may change."""
        if self._in_flight is not None:
            return lambda: self._in_flight or 1
        return lambda: getattr(self._engine, "concurrency", IN_FLIGHT)

    async def prepare(
        self,
        planned: AnyCell,  # noqa: ARG002 - there is one model
        observer: "RunProgress",  # noqa: ARG002 - a look takes no time
        needs: Mapping[ModelSpec, EngineNeeds],  # noqa: ARG002 - the model is there
    ) -> None:
        """Look which model answers: it may have changed since the script made it, or was made from other code.

        Raises `EngineError` if an engine of ours reached another one when it was made.
        """
        if not isinstance(self._lm, EngineLM):
            self._engine = await asyncio.to_thread(LookedAtModel, self._lm)
        elif changes := await find_changes(self._engine):
            raise EngineError(
                f"{self._lm.model}: another model answers than when it was made ({'; '.join(changes)}); make it again"
            )

    def info(self, planned: AnyCell, name: str | None = None) -> EngineInfo:  # noqa: ARG002 - there is one model
        """Return what answers: what an engine of ours says of itself, else the model's name and replies."""
        info: EngineInfo = self._engine.info() if hasattr(self._engine, "info") else describe_dspy_model(self._lm)
        return info

    async def ask(
        self,
        planned: AnyCell,
        observer: "RunProgress",
        spending: Spending,
        log: Any = None,  # noqa: ARG002 - one process asks
    ) -> None:
        """Ask the pending examples."""
        program = planned.program.calls.program
        models = [self._lm, dspy.settings.lm, *held_models(program)]
        with (
            planned.folder.appending() as lines,
            self._settings(),
            counted_calls(models, spending.add_call),
            gc_seldom(),
        ):
            await Scheduler(planned, lines, observer, spending, self.concurrency, planned.pending).run()

    async def find_changes(self, planned: AnyCell) -> list[str]:  # noqa: ARG002 - there is one model
        """Look again which model answers."""
        return await find_changes(self._engine)

    def _settings(self) -> Any:
        """Return DSPy's context in which examples are asked; a model of DSPy's keeps its history as the script says."""
        return in_bulk(self._lm) if isinstance(self._lm, EngineLM) else dspy.context(lm=self._lm, trace=None)
