"""A scripted engine that takes its time, so that a run is still going on when it is broken off."""

import asyncio
import itertools

LATENCY_S = 0.1
CONCURRENCY = 4


def answer_slowly(at_most: int | None = None) -> None:
    """Patch this process's scripted engine; Ray calls it in each worker before anything else.

    After `at_most` replies the engine gives none any more.
    """
    from medexam.serve import ScriptedEngine

    at_once, given = ScriptedEngine.reply, itertools.count(1)

    async def reply(self, dialogue):
        await asyncio.sleep(LATENCY_S)
        if at_most is not None and next(given) > at_most:
            await asyncio.Event().wait()
        return await at_once(self, dialogue)

    ScriptedEngine.reply = reply
    ScriptedEngine.concurrency = CONCURRENCY


def answer_ten() -> None:
    """Patch this process's scripted engine so that no run of more questions than that ends."""
    answer_slowly(at_most=10)
