"""What engines behind a server or a provider share: callers on any event loop, and a limit of requests in flight.

Their traffic runs on the process's background loop, so that an engine serves any event loop. This module knows
dialogues and loops; the engines know the wire.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from medexam.errors import EngineError, FilteredError, LogprobsUnavailableError
from medexam.event_loop import background_loop
from medexam.model_calls import Dialogue, Generation
from medexam.serve.contract import EngineInfo
from medexam.serve.pool import Limit
from medexam.specs import EngineNeeds, ModelSpec

_log = logging.getLogger(__name__)
_FEWEST = 3
"""Prompts at the same most tokens; natural texts of such different lengths never count alike."""
_LONGER = 1.25


class HostedEngine(ABC):
    """An engine on the background loop; build one there, with `medexam.serve.build_engine`."""

    def __init__(self, limit: Limit) -> None:
        """Set up the engine; `limit` says how many requests may be in flight, and adapts to the answers."""
        self.limit = limit
        self.cut_warning: str | None = None
        """Says that the server cuts prompts, as its counts of tokens show; None if nothing shows it."""
        self._most = (0, 0, 0, 0)
        """The most tokens of a prompt, how many prompts counted as many, and their fewest and most characters."""
        self.answerer: str | None = None
        """The model as the latest reply names it; None before the first."""

    def count_prompt(self, messages: Sequence[Mapping[str, Any]], tokens: int | None) -> None:
        """Count a dialogue of text in; say once that prompts are cut, where longer ones count no more tokens."""
        contents = [message.get("content") for message in messages]
        if tokens is None or tokens < self._most[0] or not all(isinstance(content, str) for content in contents):
            return
        length, earlier = sum(map(len, filter(None, contents))), self.cut_warning
        _, prompts, shortest, longest = self._most if tokens == self._most[0] else (tokens, 0, length, length)
        prompts, shortest, longest = prompts + 1, min(shortest, length), max(longest, length)
        self._most, self.cut_warning = (tokens, prompts, shortest, longest), None
        if prompts >= _FEWEST and longest >= _LONGER * shortest:
            self.cut_warning = (
                f"the server counted {tokens:,} tokens for each of {prompts:,} prompts of {shortest:,} to {longest:,} "
                "characters: it cuts prompts there without saying so; give it a larger context (Ollama: num_ctx) or "
                "shorter prompts"
            )
            if earlier is None:
                _log.warning("medexam: warning: %s", self.cut_warning)

    @property
    def concurrency(self) -> int:
        """How many requests keep the servers busy; it adapts to their answers."""
        return self.limit.value

    async def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the replies to one dialogue, one for each sample."""
        return await background_loop().run_async(self._reply_tracked(dialogue))

    async def find_changes(self) -> list[str]:
        """Look again which model answers, and describe what tells it from the first; empty where nothing does."""
        return await background_loop().run_async(self.compare())

    async def aclose(self) -> None:
        """Close the connections; the engine is unusable afterwards."""
        await background_loop().run_async(self.close())

    @abstractmethod
    async def compare(self) -> list[str]:
        """Do what `find_changes` says, on the background loop."""

    @abstractmethod
    def info(self) -> EngineInfo:
        """Describe what really runs."""

    @abstractmethod
    async def answer(self, dialogue: Dialogue) -> list[Generation]:
        """Return the replies to one dialogue, one for each sample, on the background loop."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connections, on the background loop."""

    async def _reply_tracked(self, dialogue: Dialogue) -> list[Generation]:
        with self.limit.track():
            try:
                replies = await self.answer(dialogue)
            except FilteredError:
                if dialogue.continuations is not None:
                    raise
                withheld = Generation("", "content_filter", self.answerer or self.info().identity.name, 0, 0)
                return [withheld] * dialogue.sampling.samples
        self.answerer = replies[0].model
        return replies


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
