"""From the `model` part of a spec to a live engine.

Each engine's libraries are imported only when a spec asks for that engine: torch and transformers for `embedded`,
litellm for the hosted ones.
"""

import asyncio
from typing import Any

from medexam.errors import EngineError, SpecError
from medexam.event_loop import background_loop
from medexam.plugins import is_live_name, load_object
from medexam.serve.contract import Engine
from medexam.serve.local_model.weights import check_local_extra
from medexam.specs import EngineNeeds, ModelSpec
from medexam.specs.base import ENGINES
from medexam.specs.programs.needs import NO_NEEDS


async def build_engine(spec: ModelSpec, needs: EngineNeeds = NO_NEEDS) -> Engine:
    """Load the model of a spec, or connect to it; raises `EngineError` if it cannot be used.

    If a server does not honour what the requests need, this raises before anything is asked: `AnswerFormatError` if it
    is choices, `LogprobsUnavailableError` if it is log-probabilities of given texts.
    """
    if spec.engine == "scripted":
        from medexam.serve.engines.scripted import ScriptedEngine

        assert spec.path is not None  # noqa: S101 - the spec's own validator requires it
        return ScriptedEngine.from_file(spec.path)
    if spec.engine == "embedded":
        return await asyncio.to_thread(_load_embedded, spec, needs)
    if spec.engine == "litellm" and not spec.endpoints:
        from medexam.serve.engines.provider import connect_provider

        return await background_loop().run_async(connect_provider(spec, needs))
    if spec.engine in ("vllm", "litellm"):
        from medexam.serve.engines.connect import connect_servers

        return await background_loop().run_async(connect_servers(spec, needs))
    building = spec.ask_engine("from_spec", spec, needs)
    return await (asyncio.to_thread(_build_own, spec, needs) if building is None else building)


def _load_embedded(spec: ModelSpec, needs: EngineNeeds) -> Engine:
    """Load the libraries and the model, which takes seconds; raises `EngineError` if the `local` extra is missing."""
    check_local_extra()
    try:
        from medexam.serve.engines.embedded import EmbeddedEngine
    except ImportError as error:
        raise EngineError(f"the embedded engine's libraries cannot be loaded: {error}") from error
    return EmbeddedEngine(spec, needs)


def _build_own(spec: ModelSpec, needs: EngineNeeds) -> Engine:
    """Build an instance of the user's class; raises `SpecError` if it cannot be made or lacks what an engine has."""
    from medexam.serve.engines.dspy_model import DSPyModelEngine, RequestEngine

    engine_class = load_object(spec.engine, ENGINES)
    if is_live_name(spec.engine):
        return DSPyModelEngine(engine_class, spec, needs)
    try:
        engine: Any = engine_class(**spec.args)
    except Exception as error:
        raise SpecError(f"engine {spec.engine}: making it failed: {type(error).__name__}: {error}") from error
    if hasattr(engine, "reply") and not hasattr(engine, "complete"):
        asked: Engine = engine
        return asked
    lacking = [name for name in ("concurrency", "complete", "info", "aclose") if not hasattr(engine, name)]
    if lacking:
        raise SpecError(f"engine {spec.engine} lacks {', '.join(lacking)}: see docs/your-own-parts.md")
    return RequestEngine(engine, f"medexam/{spec.label}")
