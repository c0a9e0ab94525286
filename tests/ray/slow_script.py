"""A scripted engine that takes its time, and in which a worker may be told to die."""

import asyncio
import os
from pathlib import Path

DEATH = "MEDEXAM_TEST_DEATH"
"""The environment variable that names a file: the worker that finds it there dies, and no other."""


def answer_slowly() -> None:
    """Patch this process's scripted engine; Ray calls it in each worker before anything else."""
    from medexam.serve import ScriptedEngine

    at_once = ScriptedEngine.reply

    async def reply(self, dialogue):
        await asyncio.sleep(0.02)
        try:
            Path(os.environ[DEATH]).unlink()
        except OSError:
            return await at_once(self, dialogue)
        os._exit(1)

    ScriptedEngine.reply = reply
