"""Calls of DSPy's predictors and models without what nobody listens to.

Around each call DSPy looks for callbacks, streams, traces, usage trackers, histories, caches, retries and prices, which
takes half of a client's time. A bulk run has none of them. There a call is made here: the same adapter makes the same
request of the same engine, and the same errors come out. If anything listens, it gets DSPy's own call.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol, cast

import dspy
from dspy.clients.errors import error_boundary
from dspy.lm15 import Request, Response
from pydantic_core import PydanticUndefined

Fields = dict[str, Any]
_SEVERAL = {"n", "num_generations"}
"""Settings of a call for several replies, under which DSPy raises the temperature."""


class DirectEngine(Protocol):
    """An engine that a language model may be asked through."""

    async def complete(self, request: Request) -> Response:
        """One reply to one request."""
        ...


def in_bulk(lm: dspy.LM | None) -> Any:
    """A context of DSPy in which questions are asked of `lm` and nobody reads what the calls leave behind."""
    return dspy.context(lm=lm, disable_history=True, trace=None)


def is_heard() -> bool:
    """Whether anything of DSPy's listens to calls now."""
    told = dspy.settings
    return bool(
        told.trace is not None
        or not told.disable_history
        or told.callbacks
        or told.track_usage
        or told.usage_tracker
        or told.send_stream
    )


async def ask_model(lm: dspy.LM, request: Request, options: Fields) -> Response:
    """What `lm.acall` gives for a request.

    Directly only for a model with a `direct_engine`, which itself retries and never caches.
    """
    engine: DirectEngine | None = getattr(lm, "direct_engine", None)
    if engine is None or options or lm.callbacks or is_heard() or not _is_writable(request):
        reply: Response = await lm.acall(request, **options)
        return reply
    with error_boundary(lm.model, unexpected=True):
        return await engine.complete(request)


async def ask_predictor(predictor: dspy.Module, inputs: Mapping[str, Any], options: Fields) -> dspy.Prediction:
    """What `predictor.acall` gives; directly only for a plain `dspy.Predict` with exactly its signature's inputs."""
    adapter = dspy.settings.adapter
    plain = type(predictor) is dspy.Predict and getattr(adapter, "calls_once", False)
    if not plain or predictor.callbacks or adapter.callbacks or is_heard() or not _takes(predictor.signature, inputs):
        return await predictor.acall(**inputs, **options)
    config = {**predictor.config, **options.get("config", {})}
    lm = predictor.lm or dspy.settings.lm
    if lm is None or predictor.fields or not _SEVERAL.isdisjoint([*config, *lm.kwargs]):
        return await predictor.acall(**inputs, **options)
    outputs = await adapter.acall(
        lm, lm_kwargs=config, signature=predictor.signature, demos=predictor.demos, inputs=dict(inputs)
    )
    return dspy.Prediction.from_completions(outputs, signature=predictor.signature)


def _takes(signature: type[dspy.Signature], inputs: Mapping[str, Any]) -> bool:
    names = _inputs(cast("Any", signature))
    return names is not None and names == inputs.keys()


@lru_cache(maxsize=256)
def _inputs(signature: Any) -> frozenset[str] | None:
    """The names of a signature's inputs; None if one has a default, which DSPy would fill in."""
    fields = signature.input_fields
    if any(field.default is not PydanticUndefined for field in fields.values()):
        return None
    return frozenset(fields)


def _is_writable(request: Request) -> bool:
    """Whether its texts can be sent; DSPy says of those that cannot, halves of surrogate pairs, what is wrong."""
    system = request.system
    texts = [system] if isinstance(system, str) else [getattr(part, "text", "") for part in system or ()]
    texts += [getattr(part, "text", "") for message in request.messages for part in message.parts]
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True
