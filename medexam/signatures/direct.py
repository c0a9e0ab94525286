"""Calls of DSPy's predictors and models without what nobody listens to.

Around each call DSPy looks for callbacks, streams, traces, usage trackers, histories, caches, retries and prices, which
takes half of a client's time. A bulk run has none of them. There a call is made here: the same adapter makes the same
request of the same engine, and the same errors come out. If anything listens, it gets DSPy's own call.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Protocol, cast, runtime_checkable

import dspy
from dspy.lm15 import Request, Response
from pydantic_core import PydanticUndefined

from medexam.dspy_internals import current_settings, dspy_errors
from medexam.model_calls import Dialogue, Generation
from medexam.signatures.requests import build_request, drawn_seed, read_generations

Fields = dict[str, Any]
_OTHERS = "medexam_models"
_SEVERAL = {"n", "num_generations"}
"""Settings of a call for several replies, under which DSPy raises the temperature."""


@runtime_checkable
class DialogueWriter(Protocol):
    """An engine that replies to dialogues."""

    def writes(self, dialogue: Dialogue) -> bool:
        """Return whether it can reply to this one; if not, it is asked by a request."""
        ...

    async def write(self, dialogue: Dialogue) -> Generation:
        """Return the reply to a request of the same messages under the same settings."""
        ...


class DirectEngine(Protocol):
    """An engine that a language model may be asked through."""

    @property
    def writer(self) -> DialogueWriter | None:
        """The engine as one that replies to dialogues; None if it does not, or if its requests are to be kept."""
        ...

    async def complete(self, request: Request) -> Response:
        """Return one reply to one request."""
        ...


def in_bulk(lm: dspy.LM | None, others: Mapping[str, dspy.LM] = MappingProxyType({})) -> Any:
    """Return a context of DSPy in which questions are asked of `lm` and nobody reads what the calls leave behind.

    `others` are the experiment's further models, by name.
    """
    return dspy.context(lm=lm, disable_history=True, trace=None, **({_OTHERS: others} if others else {}))


def find_lm(name: str | None, temperature: float | None) -> dspy.LM | None:
    """Find the further model of this name (None: the run's), at another temperature unless that is None.

    None where it is the run's as it is, and where prompts are looked at without asking.
    """
    others: Mapping[str, dspy.LM] | None = dspy.settings.get(_OTHERS)
    lm = dspy.settings.lm if name is None or others is None else others[name]
    if temperature is None or lm is None:
        return None if lm is dspy.settings.lm else lm
    copied: dspy.LM = lm.copy(temperature=temperature)
    return copied


def is_heard() -> bool:
    """Return whether anything of DSPy's listens to calls now."""
    settings = current_settings()
    listeners = settings["callbacks"] or settings["track_usage"] or settings["usage_tracker"] or settings["send_stream"]
    return bool(listeners) or settings["trace"] is not None or not settings["disable_history"]


async def ask_dialogue(lm: dspy.LM, dialogue: Dialogue, settings: Fields, *, heard: bool) -> list[Generation]:
    """Return the replies that `lm.acall` gives to a dialogue; `heard` says whether anything of DSPy's listens.

    Directly only for a model with a `direct_engine`, which itself retries and never caches.
    """
    engine: DirectEngine | None = getattr(lm, "direct_engine", None)
    options = _call_options(settings)
    if engine is None or options or lm.callbacks or heard or not dialogue.is_encodable:
        return read_generations(await lm.acall(build_request(lm.model, dialogue), **options), dialogue, settings)
    writer = engine.writer
    if writer is not None and dialogue.is_chat and writer.writes(dialogue):
        with dspy_errors(lm.model):
            generation = await writer.write(dialogue)
        seed = drawn_seed(settings)
        return [generation if seed is None else replace(generation, seed=seed)]
    request = build_request(lm.model, dialogue)
    with dspy_errors(lm.model):
        response = await engine.complete(request)
    return read_generations(response, dialogue, settings)


def ask_blocking(lm: dspy.LM, dialogue: Dialogue, settings: Fields) -> list[Generation]:
    """Return the replies that `lm` gives to a dialogue, in a thread that waits."""
    response = lm(build_request(lm.model, dialogue), **_call_options(settings))
    return read_generations(response, dialogue, settings)


def _call_options(settings: Fields) -> Fields:
    return {} if settings.get("rollout_id") is None else {"rollout_id": settings["rollout_id"]}


def find_writer(lm: dspy.LM) -> DialogueWriter | None:
    """Find what replies to dialogues for `lm`, where nobody listens to calls; None if only requests can be made."""
    engine: DirectEngine | None = getattr(lm, "direct_engine", None)
    return None if engine is None or lm.callbacks else engine.writer


async def run_program(program: dspy.Module, question: Any) -> dspy.Prediction:
    """Return what `program.acall` gives."""
    has_listeners = program.callbacks or is_heard() or type(program).acall is not dspy.Module.acall
    prediction: dspy.Prediction = await (program.acall if has_listeners else program.aforward)(question=question)
    return prediction


async def ask_predictor(
    predictor: dspy.Module, inputs: Mapping[str, Any], options: Fields, adapter: dspy.Adapter
) -> dspy.Prediction:
    """Return what `predictor.acall` gives under an adapter.

    Directly only for a plain `dspy.Predict` with exactly its signature's inputs.
    """
    if type(predictor) is dspy.Predict and getattr(adapter, "calls_once", False) and not is_heard():
        # Looked up once: a module of DSPy's takes a function's time for each of its attributes.
        attributes = vars(predictor)
        signature, config = attributes["signature"], {**attributes["config"], **options.get("config", {})}
        lm = attributes["lm"] or dspy.settings.lm
        listeners = attributes["callbacks"] or adapter.callbacks or attributes["fields"]
        if (
            lm is not None
            and not listeners
            and _takes(signature, inputs)
            and _SEVERAL.isdisjoint([*config, *lm.kwargs])
        ):
            outputs = await adapter.ask(lm, config, signature, attributes["demos"], dict(inputs))
            return dspy.Prediction.from_completions(outputs, signature=signature)
    with dspy.context(adapter=adapter):
        return await predictor.acall(**inputs, **options)


def _takes(signature: type[dspy.Signature], inputs: Mapping[str, Any]) -> bool:
    names = _inputs(cast("Any", signature))
    return names is not None and names == inputs.keys()


@lru_cache(maxsize=256)
def _inputs(signature: Any) -> frozenset[str] | None:
    """Return the names of a signature's inputs; None if one has a default, which DSPy would fill in."""
    fields = signature.input_fields
    if any(field.default is not PydanticUndefined for field in fields.values()):
        return None
    return frozenset(fields)
