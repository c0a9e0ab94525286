"""What the batch engines share: they ask from a run's folder, where their batches are kept, and never live.

`model.engine: batch` takes all questions of a cell at once, and each reply comes when the wave that its request goes
with has been merged.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from medexam.errors import UnsupportedFeatureError
from medexam.model_calls import Dialogue
from medexam.serve import background_loop
from medexam_companions.batches.batch_folder import MOST_REQUESTS, BatchFolder
from medexam_companions.batches.waves import BatchService, Waves


class BatchingEngine:
    """Sends requests in the waves of the run that is being asked."""

    concurrency = MOST_REQUESTS
    """Questions in flight: all of a cell, as far as one batch takes them."""

    def __init__(self, service: BatchService, reply: Callable[[Dialogue], Any], *, resumes: bool) -> None:
        self._service, self._resumes = service, resumes
        self._waves: Waves | None = None
        self.sync: Any = SimpleNamespace(reply=lambda dialogue: background_loop().run(reply(dialogue)))

    @asynccontextmanager
    async def work_in(
        self, folder: Path, in_flight: Callable[[], int], submitted: Callable[[], object] | None = None
    ) -> AsyncIterator[None]:
        """Keep the batches of a run's folder while its questions are asked, as `contract.FolderEngine` says."""
        batches = await asyncio.to_thread(BatchFolder, folder, resumes=self._resumes)
        self._waves = waves = Waves(batches, self._service, in_flight, submitted)
        working = asyncio.create_task(waves.run())
        try:
            yield
        finally:
            self._waves = None
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    @property
    def waves(self) -> Waves:
        """The waves of the run; raises `UnsupportedFeatureError` outside one."""
        if self._waves is None:
            raise UnsupportedFeatureError(
                "engine batch works only with `medexam run` on one machine, because the run folder keeps the "
                "batches; use engine litellm or vllm",
                feature="model.engine",
            )
        return self._waves
