"""The `batch` engine of hosted models: requests as engine `litellm` writes them, answered by the provider's batches.

What the model honours is asked live when the run begins, as the `litellm` engine does; that is a handful of short
requests at the full price. All questions of a cell are then asked at once, and each reply comes when the wave that its
request goes with has been merged.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from medexam.errors import UnsupportedFeatureError
from medexam.model_calls import Dialogue, Generation
from medexam.serve import EngineInfo
from medexam_companions.batches.batch_folder import MOST_REQUESTS, BatchFolder
from medexam_companions.batches.provider import HostedBatches
from medexam_companions.batches.waves import Waves

PROVIDER = "openai"
"""The one whose batches are taken; its models answer live too."""


class ProviderBatchEngine:
    """An engine of a provider's batches, beside the live engine that writes and reads them."""

    concurrency = MOST_REQUESTS
    """Questions in flight: all of a cell, as far as one batch takes them."""

    def __init__(self, live: Any, batches: HostedBatches, name: str) -> None:
        self._live, self._batches, self._name = live, batches, name
        self._waves: Waves | None = None
        """Those of the run that is being asked."""
        self._bodies: dict[str, dict[str, Any]] = {}
        """Fields of a request as JSON -> the same in the provider's words."""

    @asynccontextmanager
    async def work_in(self, folder: Path, in_flight: Callable[[], int]) -> AsyncIterator[None]:
        """Keep the batches of a run's folder while its questions are asked, as `medexam/serve/contract.py` says.

        The live engine's requests are answered by these batches meanwhile.
        """
        batches = await asyncio.to_thread(BatchFolder, folder)
        self._waves = waves = Waves(batches, self._batches.work, in_flight)
        working = asyncio.create_task(waves.run())
        pool = self._live.pool
        pool.opened[0].chat, pool.patience_s = self._chat, 0.0
        try:
            yield
        finally:
            del pool.opened[0].chat
            self._waves = pool.patience_s = None
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def reply(self, dialogue: Dialogue) -> Generation:
        """Return the reply to one dialogue; raises `UnsupportedFeatureError` outside a run."""
        if self._waves is None:
            raise UnsupportedFeatureError(
                "engine batch works only with `medexam run` on one machine, because the run folder keeps the "
                "batches; use engine litellm or vllm",
                feature="model.engine",
            )
        generation: Generation = await self._live.reply(dialogue)
        return generation

    def info(self) -> EngineInfo:
        """Describe what really runs."""
        info: EngineInfo = self._live.info()
        identity = info.identity.model_copy(update={"engine": "batch"})
        return info.model_copy(update={"engine": "batch", "identity": identity})

    async def find_changes(self) -> list[str]:
        """Look again which model answers live, and describe what tells it from the first."""
        changes: list[str] = await self._live.find_changes()
        return changes

    async def aclose(self) -> None:
        """Close the connections."""
        await self._batches.aclose()
        await self._live.aclose()

    async def _chat(self, fields: Mapping[str, Any], _: float) -> dict[str, Any]:
        """Ask by a batch, in the provider's own words, as litellm would send it live."""
        others = {name: value for name, value in fields.items() if name != "messages"}
        key = json.dumps(others, sort_keys=True)
        if key not in self._bodies:
            from litellm.utils import get_optional_params

            own = get_optional_params(model=self._name, custom_llm_provider=PROVIDER, **others)
            extra = own.pop("extra_body", None) or {}
            own.pop("stream", None)
            self._bodies[key] = {"model": self._name, **own, **extra}
        assert self._waves is not None  # noqa: S101 - it is the live engine's way in `work_in` alone
        return await self._waves.ask({**self._bodies[key], "messages": fields["messages"]})
