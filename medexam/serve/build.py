"""From the `model` part of a spec to a live engine.

Each engine's libraries are imported only when a spec asks for that engine: torch and transformers for `embedded`,
litellm for the hosted ones.
"""

import asyncio

from medexam.serve.contract import Engine
from medexam.serve.engines.scripted import ScriptedEngine
from medexam.specs import NO_NEEDS, EngineNeeds, ModelSpec


async def build_engine(spec: ModelSpec, needs: EngineNeeds = NO_NEEDS, *, near: str | None = None) -> Engine:
    """Load or reach the model of a spec; raises `EngineError` where it cannot be used.

    An engine whose server does not honour what requests need refuses here, before anything is asked. Of the servers of
    a registry those on the machine `near` are taken alone, where it has some; None takes all.
    """
    if spec.engine == "scripted":
        assert spec.path is not None  # noqa: S101 - the spec's own validator requires it
        return ScriptedEngine.from_file(spec.path)
    if spec.engine == "embedded":
        from medexam.serve.engines.embedded import EmbeddedEngine

        return await asyncio.to_thread(EmbeddedEngine, spec)
    from medexam.serve.engines.hosted import build_hosted_engine

    return await build_hosted_engine(spec, needs, near=near)
