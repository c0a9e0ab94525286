"""What the batch engines share: they ask from a run's folder, where their batches are kept, and never live.

`model.engine: batch` is an engine like the others. It takes all questions of a cell at once, and each `complete`
returns when the wave that its request goes with has been merged.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from medexam.errors import UnsupportedFeatureError
from medexam_companions.batches.batch_folder import BatchFolder
from medexam_companions.batches.waves import BatchService, Waves

CONCURRENCY = 50_000
"""Questions in flight: all of a cell, as far as one batch takes them."""


class Batching:
    """Sends requests in the waves of the run that is being asked."""

    def __init__(self, service: BatchService) -> None:
        self._service = service
        self._waves: Waves | None = None

    @asynccontextmanager
    async def work_in(
        self, folder: Path, in_flight: Callable[[], int], submitted: Callable[[], object] | None
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

    async def ask(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Ask a chat request with its wave and return the reply's body; raises `CallError`s."""
        return await self.check().ask(body)

    def check(self) -> Waves:
        """Return the waves of the run; raises `UnsupportedFeatureError` outside one."""
        if self._waves is None:
            raise UnsupportedFeatureError(
                "engine batch works only with `medexam run` on one machine, because the run folder keeps the "
                "batches; use engine litellm or vllm",
                feature="model.engine",
            )
        return self._waves

    @property
    def is_open(self) -> bool:
        """Whether a run is being asked."""
        return self._waves is not None
