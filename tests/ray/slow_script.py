"""A scripted engine that takes its time, so that a run is still going on when it is broken off."""

import asyncio

LATENCY_S = 0.1
CONCURRENCY = 4


def answer_slowly() -> None:
    """Patch this process's scripted engine; Ray calls it in each worker before anything else."""
    from medexam.serve import ScriptedEngine

    at_once = ScriptedEngine.complete

    async def complete(self, request):
        await asyncio.sleep(LATENCY_S)
        return await at_once(self, request)

    ScriptedEngine.complete = complete
    ScriptedEngine.concurrency = CONCURRENCY
