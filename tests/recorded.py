"""An engine as a run hands it to `dspy.LM`: what a call breaks with reaches DSPy as its own error."""

from typing import Any

from medexam.programs import AsyncRecordingEngine, RecordingEngine


def recorded(engine: Any) -> dict[str, Any]:
    """Return the two arguments of `dspy.LM` that make it ask `engine`."""
    return {"engine": RecordingEngine(engine.sync), "async_engine": AsyncRecordingEngine(engine)}
