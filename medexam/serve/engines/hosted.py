"""What engines behind a server or a provider share: callers on any event loop, and a limit of requests in flight.

Their traffic runs on the process's background loop, so that an engine serves any event loop. This module knows
dialogues and loops; the engines know the wire.
"""

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from medexam.errors import EngineError, FilteredError, LogprobsUnavailableError
from medexam.event_loop import background_loop
from medexam.model_calls import Dialogue, Generation
from medexam.serve.contract import EngineInfo
from medexam.serve.pool import Limit
from medexam.specs import EngineNeeds, ModelSpec

E = TypeVar("E")
P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger(__name__)
_FEWEST = 3
"""Prompts at the same most tokens; natural texts of such different lengths never count alike."""
_LONGER = 1.25


def on_background_loop(
    method: Callable[Concatenate[E, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[E, P], Coroutine[Any, Any, T]]:
    """Let any event loop await a method, which runs on the background loop."""

    @wraps(method)
    async def crossing(engine: E, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await background_loop().run_async(method(engine, *args, **kwargs))

    return crossing


class HostedEngine:
    """An engine on the background loop; build one there, with `medexam.serve.build_engine`."""

    def __init__(self, limit: Limit) -> None:
        """Set up the engine; `limit` says how many requests may be in flight, and adapts to the answers."""
        self.limit = limit
        self.cut_warning: str | None = None
        """Says that the server cuts prompts, as its counts of tokens show; None if nothing shows it."""
        self._most, self._lengths = 0, list[int]()
        """The most tokens of a prompt, and the characters of those that counted as many: fewest, most, how many."""
        self._answerer: str | None = None
        """The model as the latest reply names it; None before the first."""

    @property
    def concurrency(self) -> int:
        """How many requests keep the servers busy; it adapts to their answers."""
        return self.limit.value

    async def answer(self, dialogue: Dialogue) -> list[Generation]:
        """Return the replies to one dialogue, one for each sample, on the background loop."""
        raise NotImplementedError

    def info(self) -> EngineInfo:
        """Describe what really runs."""
        raise NotImplementedError

    @on_background_loop
    async def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the replies to one dialogue, one for each sample."""
        with self.limit.track():
            try:
                replies = await self.answer(dialogue)
            except FilteredError:
                if dialogue.continuations is not None:
                    raise
                withheld = Generation("", "content_filter", self._answerer or self.info().identity.name, 0, 0)
                return [withheld] * dialogue.sampling.samples
        self._answerer = replies[0].model
        return replies

    def count_prompt(self, messages: Sequence[Mapping[str, Any]], tokens: int | None) -> None:
        """Count a dialogue of text in; say once that prompts are cut, where longer ones count no more tokens."""
        contents = [message.get("content") for message in messages]
        if tokens is None or tokens < self._most or not all(isinstance(content, str) for content in contents):
            return
        length, earlier = sum(map(len, filter(None, contents))), self.cut_warning
        if tokens > self._most:
            self._most, self._lengths, self.cut_warning = tokens, [length, length, 0], None
        shortest, longest, prompts = min(self._lengths[0], length), max(self._lengths[1], length), self._lengths[2] + 1
        self._lengths = [shortest, longest, prompts]
        if prompts >= _FEWEST and longest >= _LONGER * shortest:
            self.cut_warning = (
                f"the server counted {tokens:,} tokens for each of {prompts:,} prompts of {shortest:,} to {longest:,} "
                "characters: it cuts prompts there without saying so; give it a larger context (Ollama: num_ctx) or "
                "shorter prompts"
            )
            if earlier is None:
                _log.warning("medexam: warning: %s", self.cut_warning)


def check_needs(spec: ModelSpec, needs: EngineNeeds) -> None:
    """Raise for what an engine that only asks for replies to dialogues cannot give, as `build_engine` does."""
    name = f"engine {spec.engine!r}"
    if needs.logprobs:
        raise LogprobsUnavailableError(
            f"{name} writes replies and reports no log-probabilities of given texts; use model.engine vllm or embedded"
        )
    if needs.plain:
        raise EngineError(f"{name} cannot continue plain text; use model.engine vllm or embedded")
    if needs.closes:
        raise EngineError(
            f"{name} cannot have a model continue its own thinking: leave program.answer_after_budget out, or use "
            "model.engine vllm or embedded"
        )
