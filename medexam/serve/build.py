"""From the `model` part of a spec to a live engine.

Each engine's libraries are imported only when a spec asks for that engine: torch and transformers for `embedded`,
litellm for the hosted ones.
"""

import asyncio

from medexam.serve.contract import Engine
from medexam.serve.engines.scripted import ScriptedEngine
from medexam.specs import NO_NEEDS, EngineNeeds, ModelSpec


async def build_engine(spec: ModelSpec, needs: EngineNeeds = NO_NEEDS, *, prefer_host: str | None = None) -> Engine:
    """Load the model of a spec, or connect to it; raises `EngineError` if it cannot be used.

    If a server does not honour what the requests need, this raises before anything is asked. Of a registry only the
    servers on the machine `prefer_host` are used, if it has some; None: those of all machines.
    """
    if spec.engine == "scripted":
        assert spec.path is not None  # noqa: S101 - the spec's own validator requires it
        return ScriptedEngine.from_file(spec.path)
    if spec.engine == "embedded":
        from medexam.serve.engines.embedded import EmbeddedEngine

        return await asyncio.to_thread(EmbeddedEngine, spec)
    from medexam.serve.engines.hosted import build_hosted_engine

    return await build_hosted_engine(spec, needs, prefer_host=prefer_host)
