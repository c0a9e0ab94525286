"""A `dspy.LM` that a script has made, as an engine: it is asked as it is, by its own client and with its own retries.

Its cache is left out, for a run's folder remembers what was answered.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import dspy
from dspy.lm15 import Request, Response

from medexam.errors import AnswerFormatError
from medexam.model_identity import ModelIdentity
from medexam.serve.contract import EngineInfo, SyncEngine
from medexam.serve.engines.hosted import check_needs
from medexam.specs import EngineNeeds, ModelSpec

IN_FLIGHT = 64
"""Requests in flight, for DSPy's models do not say how many keep them busy."""
_UNHEARD: Mapping[str, Any] = {"callbacks": [], "track_usage": False, "usage_tracker": None, "disable_history": True}
"""Settings under which nobody hears of a call twice: listeners heard of the run's own model."""
_KEPT = ("top_p", "top_k", "stop")
"""Settings of the model that a request without them gets."""


class DSPyModelEngine:
    """Replies to dialogues by a `dspy.LM`."""

    concurrency = IN_FLIGHT

    def __init__(self, lm: dspy.BaseLM) -> None:
        self._lm = lm
        self.sync = SyncEngine(self._complete)

    async def complete(self, request: Request) -> Response:
        """Answer one request with one reply."""
        with dspy.context(**_UNHEARD):
            response: Response = await self._lm.acall(self._addressed(request), cache=False)
        return response

    def _complete(self, request: Request) -> Response:
        with dspy.context(**_UNHEARD):
            response: Response = self._lm(self._addressed(request), cache=False)
        return response

    def _addressed(self, request: Request) -> Request:
        """Return the request to this model, with its own settings where the request says nothing."""
        settings = {
            name: tuple(value) if name == "stop" else value
            for name in _KEPT
            if (value := self._lm.kwargs.get(name)) is not None and not getattr(request.config, name)
        }
        return replace(request, model=self._lm.model, config=replace(request.config, **settings))

    def info(self) -> EngineInfo:
        """Describe what really runs."""
        return describe_dspy_model(self._lm)

    async def aclose(self) -> None:
        """Do nothing: the model is the script's."""


def build_dspy_engine(lm: dspy.BaseLM, spec: ModelSpec, needs: EngineNeeds) -> DSPyModelEngine:
    """Build the engine; raises `EngineError` for what a `dspy.LM` cannot give."""
    check_needs(spec, needs)
    if needs.guided:
        raise AnswerFormatError(
            f"{lm.model} is a dspy.LM, which cannot be held to legal answers: set program.answer_format to free, or "
            "give medexam.lm(...) or the `model` part of a spec"
        )
    return DSPyModelEngine(lm)


def describe_dspy_model(lm: Any) -> EngineInfo:
    """Describe a model of DSPy's by its name; None is one that the script's modules have themselves."""
    name = getattr(lm, "model", "") or "set by the module"
    return EngineInfo(engine="dspy", model=name, identity=ModelIdentity(engine="dspy", name=name))
