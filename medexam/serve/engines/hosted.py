"""What engines behind a server or a provider share: callers on any event loop, and a limit of requests in flight.

Their traffic runs on the process's background loop, so that the asynchronous engine serves any event loop and its
synchronous twin needs none. This module knows requests and loops; the engines know the wire.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from dspy.lm15 import Request, Response

from medexam.errors import EngineError, LogprobsUnavailableError
from medexam.serve.contract import EngineInfo, SyncEngine
from medexam.serve.engines.prompt_counts import PromptCounts
from medexam.serve.network.event_loop import background_loop
from medexam.serve.pool.adaptive_limit import AdaptiveLimit
from medexam.specs import EngineNeeds, ModelSpec

_log = logging.getLogger(__name__)


class HostedEngine(ABC):
    """An engine on the background loop; build one there, with `medexam.serve.build_engine`."""

    def __init__(self, limit: AdaptiveLimit) -> None:
        """Set up the engine; `limit` says how many requests may be in flight, and adapts to the answers."""
        self.limit = limit
        self.prompts = PromptCounts()
        """What the tokens of the dialogues tell that were asked."""
        self.sync = SyncEngine(lambda request: background_loop().run(self._complete(request)))

    def count_prompt(self, messages: Sequence[Mapping[str, Any]], response: Response) -> None:
        """Count a dialogue of text in; the first one that shows that prompts are cut is told at once."""
        contents = [message.get("content") for message in messages]
        if not all(isinstance(content, str) for content in contents):
            return
        if self.prompts.add(sum(len(content) for content in contents if content), response.usage.input_tokens):
            _log.warning("medexam: warning: %s", self.prompts.warning)

    @property
    def concurrency(self) -> int:
        """How many requests keep the servers busy; it adapts to their answers."""
        return self.limit.value

    async def complete(self, request: Request) -> Response:
        """Answer one request with one reply."""
        return await background_loop().run_async(self._complete(request))

    async def aclose(self) -> None:
        """Close the connections; the engine is unusable afterwards."""
        await background_loop().run_async(self.close())

    @abstractmethod
    def info(self) -> EngineInfo:
        """Describe what really runs."""

    @abstractmethod
    async def answer(self, request: Request) -> Response:
        """Answer one request with one reply, on the background loop."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connections, on the background loop."""

    async def _complete(self, request: Request) -> Response:
        with self.limit.track():
            return await self.answer(request)


def check_needs(spec: ModelSpec, needs: EngineNeeds) -> None:
    """Raise for what an engine that only asks for replies to dialogues cannot give, as `build_engine` does."""
    if needs.logprobs:
        raise LogprobsUnavailableError(
            f"engine {spec.engine!r} writes replies and reports no log-probabilities of given texts; "
            "use model.engine vllm or embedded"
        )
    if needs.plain:
        raise EngineError(f"engine {spec.engine!r} cannot continue plain text; use model.engine vllm or embedded")
    if needs.closes:
        raise EngineError(
            f"engine {spec.engine!r} cannot have a model continue its own thinking: leave program.answer_after_budget "
            "out, or use model.engine vllm or embedded"
        )
