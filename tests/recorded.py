"""An engine as a run hands it to DSPy: what a call breaks with reaches DSPy as its own error."""

from typing import Any

from medexam.programs import EngineLM


def recorded(engine: Any, **sampling: Any) -> EngineLM:
    """Return the language model that asks `engine`."""
    return EngineLM(engine, "medexam/scripted", **{"temperature": None, "max_tokens": None, **sampling})
