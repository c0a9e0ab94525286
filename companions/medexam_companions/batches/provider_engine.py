"""The `batch` engine of hosted models: requests as engine `litellm` writes them, answered by the provider's batches.

What the model honours is asked live when the run begins, as the `litellm` engine does; that is a handful of short
requests at the full price.
"""

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, ClassVar

from medexam.errors import EngineError, FilteredError
from medexam.model_calls import Dialogue, Generation
from medexam.serve.engines.hosted import check_needs
from medexam.serve.engines.litellm import LiteLLMEngine
from medexam.serve.engines.litellm_calls import get_litellm, read_chat, reading_reply, withheld_generation
from medexam.serve.engines.litellm_probe import look
from medexam.serve.engines.provider_tables import find_provider
from medexam.specs import EngineNeeds, ModelSpec
from medexam_companions.batches.batching import CONCURRENCY, Batching
from medexam_companions.batches.provider import HostedBatches

BATCH_PROVIDERS = ("openai",)
"""Those whose batches take and give OpenAI's own file format; their models answer live too."""


async def connect_provider(spec: ModelSpec, needs: EngineNeeds) -> "ProviderBatchEngine":
    """Connect the engine of a spec, on the background loop; raises as `build_engine` does."""
    check_needs(spec, needs)
    await asyncio.to_thread(get_litellm)
    return await look(ProviderBatchEngine(spec), spec, needs)


class ProviderBatchEngine(LiteLLMEngine):
    """An engine of a provider's batches; raises `EngineError` for a provider whose batches litellm does not know."""

    kind: ClassVar[str] = "batch"

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self._name, self._provider = find_provider(self.model)
        if self._provider not in BATCH_PROVIDERS:
            raise EngineError(
                f"{self.model}: engine batch supports {', '.join(BATCH_PROVIDERS)}, not {self._provider}; use engine "
                "litellm"
            )
        self._batching = Batching(HostedBatches(self._provider, self._name, self.connection, self.timeout_s))
        self._bodies: dict[str, dict[str, Any]] = {}
        """Fields of a request as JSON -> the same in the provider's words."""

    @property
    def concurrency(self) -> int:
        """All questions of a cell."""
        return CONCURRENCY

    def work_in(
        self, folder: Path, in_flight: Callable[[], int], submitted: Callable[[], object] | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Work in the run's folder, as `contract.FolderEngine` says."""
        return self._batching.work_in(folder, in_flight, submitted)

    async def answer(self, dialogue: Dialogue) -> list[Generation]:
        """Return the reply to one dialogue, alone in a list."""
        self._batching.check()
        return await super().answer(dialogue)

    async def chat(
        self, fields: dict[str, Any], refusing: tuple[int, ...] = (), patience_s: float | None = None
    ) -> Generation:
        """Ask for one reply by a batch; ask live while it is not yet known what the model honours."""
        if not self._batching.is_open:
            return await super().chat(fields, refusing, patience_s)
        try:
            body = await self._batching.ask(self._body(fields))
        except FilteredError:
            return withheld_generation(self.model)
        with reading_reply():
            (generation,) = read_chat(body, self.model)
        return self.cut(generation, fields)

    def _body(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Build a request in the provider's own words, as litellm would send it live."""
        fields = {**self.settings, **self.fit(fields)}
        messages = fields.pop("messages")
        key = json.dumps(fields, sort_keys=True)
        if key not in self._bodies:
            from litellm.utils import get_optional_params

            provider_fields = get_optional_params(model=self._name, custom_llm_provider=self._provider, **fields)
            extra = provider_fields.pop("extra_body", None) or {}
            provider_fields.pop("stream", None)
            self._bodies[key] = {"model": self._name, **provider_fields, **extra}
        return {**self._bodies[key], "messages": messages}
