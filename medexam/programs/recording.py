"""Which calls a question's program makes, wherever in the user's code it makes them.

A `RecordingEngine` stands between DSPy and an engine. What is asked within `recorded_calls` is kept in order, also in
DSPy's threads, to which its settings are handed on. A server gives one seed and one prompt one reply, so an equal
request is sent under the next seed.
"""

import hashlib
import json
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from typing import Any, Protocol

import dspy
from dspy.lm15 import Request, Response, response_to_events

from medexam.dspy_internals import CALL_ERRORS, dspy_faults, model_check
from medexam.model_calls import DRAWN_SEED, SAMPLES, Dialogue, Generation
from medexam.signatures.direct import DialogueWriter
from medexam.signatures.requests import read_generation

_KEY = "medexam_calls"
_DRAWS = "medexam_draws"


class Draws:
    """Which seeds each prompt that is drawn at a temperature was sent under, by whatever thread."""

    def __init__(self) -> None:
        self._seeds: defaultdict[str, set[int]] = defaultdict(set)
        self._lock = threading.Lock()

    def redraw(self, request: Request) -> Request:
        """Return the request to send: at a temperature and with a seed, under the first seed from its own that is
        free.
        """
        config = request.config
        if not config.temperature or config.seed is None:
            return request
        digest = digest_request(request, seed=False)
        # A request for several replies takes as many seeds, one after the other.
        count, seed = (config.extensions or {}).get(SAMPLES, 1), config.seed
        with self._lock:
            used_seeds = self._seeds[digest]
            while not used_seeds.isdisjoint(range(seed, seed + count)):
                seed += 1
            used_seeds.update(range(seed, seed + count))
        return request if seed == config.seed else replace(request, config=replace(config, seed=seed))


@dataclass
class Calls:
    """The calls of one question."""

    draws: Draws = field(default_factory=Draws)
    generations: list[Generation] = field(default_factory=list)
    """Each reply, in the order in which they came."""
    over: bool = False
    """Whether nobody waits for the question any more."""
    fault: Exception | None = None
    """What the last call broke with; None if it brought a reply."""

    @contextmanager
    def noting_fault(self) -> Iterator[None]:
        """Keep what the call in the block breaks with; raises `OverError` if the question is over."""
        if self.over:
            raise OverError
        self.fault = None
        try:
            yield
        except CALL_ERRORS as error:
            self.fault = error
            raise


class OverError(BaseException):
    """A module asks for a question whose time was over; no `except Exception` of its own continues it."""


def digest_request(request: Request, *, seed: bool = True) -> str:
    """Compute half a SHA-256 over everything that the reply depends on, or all but the seed."""
    fields = _plain(request)
    if not seed:
        fields["config"]["seed"] = None
    text = json.dumps(fields, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def shared_draws() -> AbstractContextManager[None]:
    """Return a context in which all that is recorded, apart or not, draws each prompt under seeds of its own."""
    context: AbstractContextManager[None] = dspy.context(**{_DRAWS: Draws()})
    return context


@contextmanager
def recorded_calls() -> Iterator[Calls]:
    """Keep the calls that are made in the block."""
    draws: Draws | None = dspy.settings.get(_DRAWS)
    calls = Calls() if draws is None else Calls(draws)
    with dspy.context(**{_KEY: calls}):
        yield calls


class OtherModelError(BaseException):
    """Code of a question's program asks another model than the run's, whose calls nobody would keep or count.

    No `Exception`: code that asks it may take those for faults of the model.
    """


def no_other_model(lm: Any) -> dict[str, Any]:
    """Return the setting of `dspy.context` under which only `lm` and its copies, which share its engine, are asked.

    Any other model raises `OtherModelError` before it is asked.
    """

    def check(instance: Any) -> None:
        if getattr(instance, "engine", None) is not lm.engine:
            raise OtherModelError(
                f"{instance.model} is not the run's model: ask dspy.settings.lm, name further models in `models` of "
                "a program of steps, or use medexam.Evaluate, where a module may ask any model"
            )

    return model_check(check)


class _Sync(Protocol):
    def complete(self, request: Request) -> Response: ...


class _Async(Protocol):
    async def complete(self, request: Request) -> Response: ...


class RecordingEngine:
    """A synchronous engine whose calls are kept."""

    def __init__(self, engine: _Sync, draws: Draws | None = None, declaring: object = None) -> None:
        """Stand before the engine; `draws` counts the calls that nobody keeps, None where those keep their seeds.

        `declaring` is the engine that says what the model takes in the form of its server; None: it takes words alone.
        """
        self._engine = engine
        self._draws = draws
        # What DSPy's adapters look up before they write a request, under DSPy's names.
        self.supports_function_calling: bool = getattr(declaring, "supports_function_calling", False)
        self.supports_response_schema: bool = getattr(declaring, "supports_response_schema", False)
        self.supported_params = frozenset(getattr(declaring, "supported_params", ()))

    def complete(self, request: Request) -> Response:
        """Return the engine's reply."""
        calls: Calls | None = dspy.settings.get(_KEY)
        draws = calls.draws if calls else self._draws
        sent = draws.redraw(request) if draws else request
        with dspy_faults(), calls.noting_fault() if calls else nullcontext():
            response = _with_seed(self._engine.complete(sent), request, sent)
        if calls is not None:
            calls.generations.append(read_generation(response))
        return response

    def stream(self, request: Request) -> Iterator[Any]:
        """Yield the events of the reply, which comes whole, as `dspy.streamify` reads them."""
        yield from response_to_events(self.complete(request))


class RecordingWriter:
    """An engine that replies to dialogues, whose replies are kept; `calls` None keeps none."""

    def __init__(self, writer: DialogueWriter, calls: Calls | None) -> None:
        self._writer = writer
        self._calls = calls

    def writes(self, dialogue: Dialogue) -> bool:
        """Return whether it can reply; what is drawn at a temperature is a request, whose seed may have to change."""
        return not dialogue.sampling.temperature and self._writer.writes(dialogue)

    async def write(self, dialogue: Dialogue) -> Generation:
        """Return the engine's reply."""
        calls = self._calls
        with calls.noting_fault() if calls else nullcontext():
            generation = await self._writer.write(dialogue)
        if calls is not None:
            calls.generations.append(generation)
        return generation


class AsyncRecordingEngine:
    """An asynchronous engine whose calls are kept."""

    def __init__(self, engine: _Async, draws: Draws | None = None) -> None:
        """Stand before the engine; `draws` counts the calls that nobody keeps, None where those keep their seeds."""
        self._engine = engine
        self._draws = draws
        self._writer: DialogueWriter | None = engine if isinstance(engine, DialogueWriter) else None

    @property
    def writer(self) -> DialogueWriter | None:
        """The engine as one that replies to dialogues, and keeps them while calls are kept; None if it is none."""
        if self._writer is None:
            return None
        calls: Calls | None = dspy.settings.get(_KEY)
        if calls is None and self._draws is None:
            return self._writer
        return RecordingWriter(self._writer, calls)

    async def complete(self, request: Request) -> Response:
        """Return the engine's reply."""
        calls: Calls | None = dspy.settings.get(_KEY)
        draws = calls.draws if calls else self._draws
        sent = draws.redraw(request) if draws else request
        with dspy_faults(), calls.noting_fault() if calls else nullcontext():
            response = _with_seed(await self._engine.complete(sent), request, sent)
        if calls is not None:
            calls.generations.append(read_generation(response))
        return response

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        """Yield the events of the reply, which comes whole, as `dspy.streamify` reads them."""
        for event in response_to_events(await self.complete(request)):
            yield event


def _with_seed(response: Response, request: Request, sent: Request) -> Response:
    """Return the response, with its seed where that is a later one than the request's."""
    if sent is request:
        return response
    return replace(response, provider_data={**(response.provider_data or {}), DRAWN_SEED: sent.config.seed})
