"""Calls of DSPy's predictors and models without what nobody listens to.

Around each call DSPy looks for callbacks, streams, traces, usage trackers, histories, caches, retries and prices, which
takes half of a client's time. A bulk run has none of them. There a call is made here: the same adapter makes the same
request of the same engine, and the same errors come out. If anything listens, it gets DSPy's own call.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Protocol, cast

import dspy
from pydantic_core import PydanticUndefined

from medexam.dspy_internals import check_model, current_settings, dspy_errors
from medexam.dspy_requests import build_request, read_generations
from medexam.model_calls import Dialogue, Generation

Fields = dict[str, Any]
OTHER_MODELS = "medexam_models"
"""Setting of DSPy's context: the experiment's further models, by name."""
_SEVERAL = {"n", "num_generations"}
"""Settings of a call for several replies, under which DSPy raises the temperature."""


class DirectEngine(Protocol):
    """An engine that a language model may be asked through."""

    async def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the replies to one dialogue, one for each sample, under their seeds where they were drawn."""
        ...


def in_bulk(lm: dspy.LM | None, others: Mapping[str, dspy.LM] = MappingProxyType({})) -> Any:
    """Return a context of DSPy in which questions are asked of `lm` and nobody reads what the calls leave behind.

    `others` are the experiment's further models, by name.
    """
    return dspy.context(lm=lm, disable_history=True, trace=None, **({OTHER_MODELS: others} if others else {}))


def find_lm(name: str | None, temperature: float | None) -> dspy.LM | None:
    """Find the further model of this name (None: the run's), at another temperature unless that is None.

    None where it is the run's as it is, and where prompts are looked at without asking.
    """
    others: Mapping[str, dspy.LM] | None = dspy.settings.get(OTHER_MODELS)
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
    options, seed = _call_options(settings), _drawn_seed(settings)
    engine = None if options or heard else find_direct_engine(lm, dialogue)
    if engine is None:
        response = await lm.acall(build_request(lm.model, dialogue), **options)
        return read_generations(response, dialogue, seed)
    with dspy_errors(lm.model):
        generations = await engine.reply(dialogue)
    return generations if seed is not None else [replace(generation, seed=None) for generation in generations]


def ask_blocking(lm: dspy.LM, dialogue: Dialogue, settings: Fields) -> list[Generation]:
    """Return the replies that `lm` gives to a dialogue, in a thread that waits."""
    response = lm(build_request(lm.model, dialogue), **_call_options(settings))
    return read_generations(response, dialogue, _drawn_seed(settings))


def find_direct_engine(lm: dspy.LM, dialogue: Dialogue) -> DirectEngine | None:
    """Find what replies to a dialogue for `lm`, where nothing of DSPy's listens to calls; None if DSPy has to ask.

    DSPy says what is wrong with a turn that is empty, or that cannot be sent. Raises what `model_check` raises.
    """
    check_model(lm)
    engine: DirectEngine | None = getattr(lm, "direct_engine", None)
    asks_directly = engine is not None and not lm.callbacks and dialogue.is_encodable and not dialogue.has_empty_turn
    return engine if asks_directly else None


def _drawn_seed(settings: Fields) -> int | None:
    return settings.get("seed") if settings.get("temperature") else None


def _call_options(settings: Fields) -> Fields:
    return {} if settings.get("rollout_id") is None else {"rollout_id": settings["rollout_id"]}


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
