"""Asks the examples of an evaluation of the model that a script has made, as its module and its metric call it."""

from collections.abc import Callable, Mapping
from typing import Any

import dspy

from medexam.dspy_internals import prices_looked_up_once
from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.run.executor import RunObserver
from medexam.experiments.run.language_model import EngineLM
from medexam.experiments.run.scheduler import Scheduler, Work
from medexam.experiments.run.spending import Spending
from medexam.experiments.store.environment import Invocation
from medexam.gc_pause import gc_paused
from medexam.serve import EngineInfo
from medexam.serve.engines.dspy_model import IN_FLIGHT, describe_dspy_model
from medexam.signatures.direct import in_bulk
from medexam.specs import EngineNeeds
from medexam.specs.model import ModelSpec


class ObjectExecutor:
    """An `Executor` for one model, which stays the script's own: it is neither built nor closed here."""

    def __init__(self, lm: Any, in_flight: int | None) -> None:
        """Ask `lm`, a model of DSPy's, or None if the program has its own.

        `in_flight` examples at once; None: as many as keep the model busy.
        """
        self._lm = lm
        self._in_flight = in_flight

    @property
    def concurrency(self) -> Callable[[], int]:
        """How many examples are in flight at once; it may change."""
        engine = self._lm.live_engine if isinstance(self._lm, EngineLM) else None
        if self._in_flight is not None:
            return lambda: self._in_flight or 1
        return lambda: getattr(engine, "concurrency", IN_FLIGHT)

    async def prepare(self, planned: AnyCell, observer: RunObserver, needs: Mapping[ModelSpec, EngineNeeds]) -> None:
        """Do nothing: the model is there."""

    def info(self, planned: AnyCell, name: str | None = None) -> EngineInfo:  # noqa: ARG002 - there is one model
        """Return what answers: what an engine of ours says of itself, else the model's name."""
        engine = self._lm.live_engine if isinstance(self._lm, EngineLM) else None
        describe = getattr(engine, "info", None)
        if describe is not None:
            info: EngineInfo = describe()
            return info
        return describe_dspy_model(self._lm)

    async def ask(
        self,
        planned: AnyCell,
        observer: RunObserver,
        spending: Spending,
        invocation: Invocation,  # noqa: ARG002 - the model's servers are not looked at
    ) -> None:
        """Ask the pending examples."""
        with planned.folder.appending() as log, self._settings(), gc_paused(), prices_looked_up_once():
            await Scheduler(Work.of(planned), log, observer, spending, self.concurrency, planned.pending).run()

    def _settings(self) -> Any:
        """Return DSPy's context in which examples are asked; a model of DSPy's keeps its history as the script says."""
        return in_bulk(self._lm) if isinstance(self._lm, EngineLM) else dspy.context(lm=self._lm, trace=None)

    def describe(self) -> None:
        """Describe nothing."""
