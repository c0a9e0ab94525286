"""Predictions of one call, made of what that brought."""

from typing import Any

from medexam.predictions import ModelCall, Prediction

_OF_CALL = ("reply", "finish_reason", "model", "prompt_tokens", "completion_tokens", "thinking_tokens", "cost_usd")


def predicted(**fields: Any) -> Prediction:
    """Make a prediction; `reply`, tokens, `model` and `finish_reason` are those of its one call, if any is given."""
    told = {name: value for name in _OF_CALL if (value := fields.pop(name, None)) is not None}
    if told:
        reply = told.pop("reply", None)
        finish_reason = told.pop("finish_reason", "stop" if reply is not None or told.keys() - {"model"} else None)
        fields["calls"] = (ModelCall(text=reply, finish_reason=finish_reason, **told),)
    return Prediction(**fields)
