"""What speaks DSPy's requests and responses, as an engine: one of the user's own, or a `dspy.LM` of a script.

A `dspy.LM` is asked as it is, by its own client and with its own retries. Its cache is left out, for a run's folder
remembers what was answered.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import dspy
from dspy.lm15 import request_from_openai_chat

from medexam.dspy_internals import CALL_ERRORS
from medexam.dspy_requests import build_request, read_generation
from medexam.errors import AnswerFormatError, EngineError
from medexam.model_calls import Dialogue, Generation
from medexam.model_identity import Behaviour, ModelIdentity
from medexam.serve.contract import EngineInfo
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.discovery.requests import DIALOGUE, HOSTED_TOKENS, LIMITS
from medexam.specs import EngineNeeds

IN_FLIGHT = 64
"""Requests in flight, for DSPy's models do not say how many keep them busy."""
_UNHEARD: dict[str, Any] = {"callbacks": [], "track_usage": False, "usage_tracker": None, "disable_history": True}
"""Settings under which nobody hears of a call twice: listeners heard of the run's own model."""
_OF_DSPY = frozenset(
    {
        *("api_key", "api_base", "base_url", "headers", "extra_headers", "timeout", "api_version", "organization"),
        *("azure_ad_token_provider", "project", "extra_query", "custom_llm_provider"),
        *("rollout_id", "prompt_cache"),
    }
)
"""Settings of a model that DSPy itself takes from it, for every request."""


class RequestEngine:
    """An engine of the user's own, which answers DSPy's requests; what else it has stays its own."""

    def __init__(self, engine: Any, model: str) -> None:
        """Ask the engine, whose requests name `model`."""
        self._engine, self._model = engine, model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def reply(self, dialogue: Dialogue) -> Generation:
        """Return the reply to one dialogue."""
        return read_generation(await self._engine.complete(build_request(self._model, dialogue)))


class LookedAtModel:
    """A model of DSPy's, and which one answered behind its name when it was looked at."""

    def __init__(self, lm: Any) -> None:
        """Look at `lm`; None is a model that the script's modules have themselves."""
        self._lm = lm
        self._identity = self._identify()

    def info(self) -> EngineInfo:
        """Describe what really runs."""
        return describe_dspy_model(self._lm).model_copy(update={"identity": self._identity})

    async def find_changes(self) -> list[str]:
        """Look again, as the contract says; twice, since a hosted model may reply otherwise once."""
        for _ in "12":
            now = await asyncio.to_thread(self._identify)
            if now.behaviour is None or not (differences := self._identity.differences(now)):
                return []
        return differences

    def _identify(self) -> ModelIdentity:
        """Ask a `dspy.LM` itself the fixed dialogue twice; other classes are known by their names.

        So are models that refuse it or are out of reach.
        """
        unseen = describe_dspy_model(self._lm).identity
        if type(self._lm) is not dspy.LM:
            return unseen
        dialogue = Dialogue(DIALOGUE, "", {"temperature": 0.0, "max_tokens": HOSTED_TOKENS})
        try:
            request = build_request(unseen.name, dialogue)
            with dspy.context(**_UNHEARD), ThreadPoolExecutor(2) as threads:
                calls = [threads.submit(copy_context().run, self._lm, request, cache=False) for _ in "12"]
            first, second = (read_generation(call.result()) for call in calls)
        except Exception:
            return unseen
        behaviour = Behaviour(reply=first.words, noise=0.0 if first.words == second.words else None)
        return unseen.model_copy(update={"hub_id": first.model or None, "behaviour": behaviour})


class DSPyModelEngine(LookedAtModel):
    """Replies to dialogues by a `dspy.LM`."""

    concurrency = IN_FLIGHT

    def __init__(self, lm: dspy.BaseLM, needs: EngineNeeds) -> None:
        """Ask `lm`; raises for what it cannot give, as `build_engine` does, and for settings that no request holds."""
        if needs.guided:
            raise AnswerFormatError(
                f"{lm.model} is a dspy.LM, which cannot be held to legal answers: set program.answer_format to free, "
                "or give medexam.lm(...) or the `model` part of a spec"
            )
        Capabilities(model=lm.model, provider="dspy", sees=True).check(needs)
        settings = {name: value for name, value in lm.kwargs.items() if value is not None and name not in _OF_DSPY}
        several = [name for name in ("n", "num_generations") if settings.pop(name, 1) != 1]
        try:
            if several:
                raise ValueError(f"{several[0]} asks for several replies")
            request_from_openai_chat({"model": lm.model, "messages": DIALOGUE, **settings})
        except (*CALL_ERRORS, TypeError, ValueError) as error:
            raise EngineError(
                f"{lm.model}: not all of its settings can be part of a run: {error}; leave it out, take "
                "medexam.Evaluate, or give the `model` part of a spec"
            ) from None
        self._settings = settings
        super().__init__(lm)

    async def reply(self, dialogue: Dialogue) -> Generation:
        """Return the reply to one dialogue; the model's settings hold where it says nothing."""
        fields = {*dialogue.sampling, *(LIMITS if "max_tokens" in dialogue.sampling else ())}
        own = {name: value for name, value in self._settings.items() if name not in fields}
        request = build_request(self._lm.model, dialogue.with_fields({**own, **dialogue.fields}))
        with dspy.context(**_UNHEARD):
            return read_generation(await self._lm.acall(request, cache=False))

    async def aclose(self) -> None:
        """Do nothing: the model is the script's."""


def describe_dspy_model(lm: Any) -> EngineInfo:
    """Describe a model of DSPy's by its name; None is one that the script's modules have themselves."""
    name = getattr(lm, "model", "set by the module")
    return EngineInfo(engine="dspy", model=name, identity=ModelIdentity(engine="dspy", name=name))
