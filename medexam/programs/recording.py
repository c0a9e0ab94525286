"""Which calls a question's program makes, wherever in the user's code it makes them.

A `RecordingEngine` stands between DSPy and an engine. What is asked within `recorded_calls` is kept in order, also in
DSPy's threads, to which its settings are handed on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import dspy
from dspy.lm15 import Request, Response
from dspy.utils.callback import BaseCallback

from medexam.model_calls import Generation
from medexam.signatures.direct import DialogueWriter
from medexam.signatures.single_call import read_generation

_KEY = "medexam_calls"


@dataclass
class Calls:
    """The calls of one question."""

    requests: list[Request] = field(default_factory=list)
    generations: list[Generation] = field(default_factory=list)
    """Each reply, in the order in which they came."""

    def begin(self, request: Request) -> Request:
        """Return the request to send; at a temperature, one asked before gets another seed, to be answered anew."""
        times = self.requests.count(request)
        self.requests.append(request)
        config = request.config
        if not times or not config.temperature or config.seed is None:
            return request
        return replace(request, config=replace(config, seed=config.seed + times))


@contextmanager
def recorded_calls() -> Iterator[Calls]:
    """Keep the calls that are made in the block."""
    calls = Calls()
    with dspy.context(**{_KEY: calls}):
        yield calls


class OtherModelError(BaseException):
    """Code of a question's program asks another model than the run's, whose calls nobody would keep or count.

    No `Exception`: DSPy logs those that callbacks raise, and asks all the same.
    """


class OtherModels(BaseCallback):
    """A callback of DSPy's that stops every call of another model than `lm`, before it is asked."""

    def __init__(self, lm: Any) -> None:
        self._engine = getattr(lm, "engine", None)

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:  # noqa: ARG002 - DSPy's names
        """Raise `OtherModelError` unless it is `lm` or a copy, which share their engine."""
        if getattr(instance, "engine", None) is not self._engine:
            raise OtherModelError(
                f"the module asks {instance.model} beside the run's model, and nobody would keep or count its calls: "
                "ask dspy.settings.lm, and run the other model as a cell of its own"
            )


class _Sync(Protocol):
    def complete(self, request: Request) -> Response: ...


class _Async(Protocol):
    async def complete(self, request: Request) -> Response: ...


class RecordingEngine:
    """A synchronous engine whose calls are kept."""

    def __init__(self, engine: _Sync) -> None:
        self._engine = engine

    def complete(self, request: Request) -> Response:
        """Return the engine's reply."""
        calls: Calls | None = dspy.settings.get(_KEY)
        if calls is None:
            return self._engine.complete(request)
        response = self._engine.complete(calls.begin(request))
        calls.generations.append(read_generation(response))
        return response


class AsyncRecordingEngine:
    """An asynchronous engine whose calls are kept."""

    def __init__(self, engine: _Async) -> None:
        self._engine = engine
        self._writer: DialogueWriter | None = engine if isinstance(engine, DialogueWriter) else None

    @property
    def writer(self) -> DialogueWriter | None:
        """The engine as one that replies to dialogues; None while calls are kept, which are requests."""
        return None if self._writer is None or dspy.settings.get(_KEY) is not None else self._writer

    async def complete(self, request: Request) -> Response:
        """Return the engine's reply."""
        calls: Calls | None = dspy.settings.get(_KEY)
        if calls is None:
            return await self._engine.complete(request)
        response = await self._engine.complete(calls.begin(request))
        calls.generations.append(read_generation(response))
        return response
