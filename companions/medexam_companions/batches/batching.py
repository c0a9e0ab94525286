"""What the batch engines share: they ask from a run's folder, where their batches are kept, and never live.

`model.engine: batch` takes all questions of a cell at once, and each reply comes when the wave that its request goes
with has been merged.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from medexam.errors import UnsupportedFeatureError
from medexam.model_calls import Dialogue, Generation
from medexam.serve import EngineInfo, background_loop
from medexam_companions.batches.batch_folder import BatchFolder
from medexam_companions.batches.waves import BatchService, Waves

CONCURRENCY = 50_000
"""Questions in flight: all of a cell, as far as one batch takes them."""


class BatchingEngine(ABC):
    """Sends requests in the waves of the run that is being asked."""

    concurrency = CONCURRENCY

    def __init__(self, service: BatchService) -> None:
        self._service = service
        self._waves: Waves | None = None
        self.sync: Any = SimpleNamespace(reply=lambda dialogue: background_loop().run(self.reply(dialogue)))

    @asynccontextmanager
    async def work_in(
        self, folder: Path, in_flight: Callable[[], int], submitted: Callable[[], object] | None = None
    ) -> AsyncIterator[None]:
        """Keep the batches of a run's folder while its questions are asked, as `contract.FolderEngine` says."""
        batches = await asyncio.to_thread(BatchFolder, folder, resumes=self._service.resumes)
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

    @abstractmethod
    async def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the reply to one dialogue, alone in a list."""

    @abstractmethod
    def info(self) -> EngineInfo:
        """Describe what really runs."""

    async def aclose(self) -> None:  # noqa: B027 - an engine of a provider closes more
        """Do nothing: batches go on at the provider, and a process ends with its batch."""
