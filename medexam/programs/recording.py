"""Which calls a question's program makes, wherever in the user's code it makes them.

A `RecordingEngine` stands between DSPy, whose requests it reads and whose responses it writes, and an engine. What is
asked within `recorded_calls` is kept in order, also in DSPy's threads, to which its settings are handed on. A server
gives one seed and one prompt one reply, so an equal dialogue is sent under the next seed.
"""

import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import dspy
from dspy.lm15 import Request, Response

from medexam.dspy_internals import CALL_ERRORS, current_settings, dspy_faults, model_check
from medexam.dspy_requests import read_dialogue, stream_response, write_response
from medexam.model_calls import Dialogue, Generation
from medexam.predictions.calls import ModelCall

_KEPT = "medexam_kept_calls"
_KEY = "medexam_calls"
_DRAWS = "medexam_draws"


class Draws:
    """Which seeds each prompt that is drawn at a temperature was sent under, by whatever thread."""

    def __init__(self) -> None:
        self._seeds: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        self._lock = threading.Lock()

    def redraw(self, dialogue: Dialogue, model: str) -> Dialogue:
        """Return the dialogue to send to a model: at a temperature and with a seed, under the first seed from its own
        that is free.
        """
        sampling, seed = dialogue.sampling, dialogue.sampling.drawn_seed
        if seed is None:
            return dialogue
        key = model, dialogue.key
        with self._lock:
            used_seeds = self._seeds[key]
            # A dialogue that asks for several replies takes as many seeds, one after the other.
            while not used_seeds.isdisjoint(range(seed, seed + sampling.samples)):
                seed += 1
            used_seeds.update(range(seed, seed + sampling.samples))
        return dialogue if seed == sampling.seed else dialogue.with_seed(seed)


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


class KeptCalls:
    """The calls of one question, the program's own and those of its parts, in the order in which they are begun."""

    def __init__(self) -> None:
        self._calls: list[ModelCall] = []
        self._lock = threading.Lock()

    def begin(self, call: ModelCall, replies: int) -> range:
        """Keep a call that asks for `replies` replies; return their places."""
        with self._lock:
            begin = len(self._calls)
            self._calls += [call] * replies
        return range(begin, begin + replies)

    def end(self, place: int, call: ModelCall) -> None:
        """Keep what came of the call at this place."""
        self._calls[place] = call

    def all(self) -> tuple[ModelCall, ...]:
        """Return what was kept so far."""
        return tuple(self._calls)


@contextmanager
def kept_calls() -> Iterator[KeptCalls]:
    """Keep every call of a model that the block makes."""
    calls = KeptCalls()
    with dspy.context(**{_KEPT: calls}):
        yield calls


def keep_call(call: ModelCall) -> None:
    """Keep a call that was made past the recorders, if calls are kept."""
    keeper: KeptCalls | None = dspy.settings.get(_KEPT)
    if keeper is not None:
        keeper.begin(call, 1)


class OverError(BaseException):
    """A module asks for a question whose time was over; no `except Exception` of its own continues it."""


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
    def reply(self, dialogue: Dialogue) -> list[Generation]: ...


class _Async(Protocol):
    async def reply(self, dialogue: Dialogue) -> list[Generation]: ...


class _Recorder:
    """What keeps calls, and writes the replies to DSPy's requests."""

    def __init__(self, draws: Draws | None, declaring: object, model: str, asked: str | None) -> None:
        """Keep calls; `draws` counts those that nobody keeps, None where those keep their seeds.

        `declaring` is the engine that says what the model takes in the form of its server; None: it takes words alone.
        Models of one name draw an equal dialogue under one seed after the other. `asked` is the name of a further
        model in the spec.
        """
        self._draws = draws
        self._model = model
        self._asked = asked
        # What DSPy's adapters look up before they write a request, under DSPy's names.
        self.supports_function_calling: bool = getattr(declaring, "supports_function_calling", False)
        self.supports_response_schema: bool = getattr(declaring, "supports_response_schema", False)
        self.supported_params = frozenset(getattr(declaring, "supported_params", ()))
        self._takes_seed: bool = getattr(declaring, "takes_seed", True)

    @contextmanager
    def _call(self, dialogue: Dialogue) -> Iterator["_Call"]:
        """Keep the call in the block, which raises what it breaks with as DSPy's error."""
        settings = current_settings()
        calls: Calls | None = settings.get(_KEY)
        keeper: KeptCalls | None = settings.get(_KEPT)
        draws = calls.draws if calls else self._draws
        call = _Call(draws.redraw(dialogue, self._model) if draws else dialogue)
        sent = call.sent if self._takes_seed else call.sent.with_seed(None)
        record, sampling = ModelCall.of(sent, self._asked), sent.sampling
        places = keeper.begin(record, sampling.samples) if keeper else range(0)
        try:
            with calls.noting_fault() if calls else nullcontext():
                yield call
        except CALL_ERRORS as error:
            if keeper is not None:
                for place in places:
                    keeper.end(place, replace(record, fault=f"{type(error).__name__}: {error}"))
            raise
        seed = sampling.drawn_seed
        if seed is not None or keeper:
            call.generations = [
                replace(
                    one,
                    seed=None if seed is None else seed + number,
                    place=places[number] if number < len(places) else None,
                )
                for number, one in enumerate(call.generations)
            ]
        if keeper is not None:
            for number, (place, generation) in enumerate(zip(places, call.generations, strict=False)):
                keeper.end(place, record.with_reply(generation, number))
        if calls is not None:
            calls.generations.append(call.generations[0])

    def _write(self, generations: list[Generation]) -> Response:
        return write_response(generations, takes_seed=self._takes_seed)


def _read(request: Request) -> Dialogue:
    calls: Calls | None = dspy.settings.get(_KEY)
    with calls.noting_fault() if calls else nullcontext():
        return read_dialogue(request)


@dataclass
class _Call:
    """One call of a model."""

    sent: Dialogue
    generations: list[Generation] = field(default_factory=list)
    """The replies, when they are there."""


class RecordingEngine(_Recorder):
    """A synchronous engine whose calls are kept."""

    def __init__(
        self,
        engine: _Sync,
        draws: Draws | None = None,
        *,
        declaring: object = None,
        model: str = "",
        asked: str | None = None,
    ) -> None:
        super().__init__(draws, declaring, model, asked)
        self._engine = engine

    def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the engine's replies, under their seeds where they were drawn."""
        with self._call(dialogue) as call:
            call.generations = self._engine.reply(call.sent)
        return call.generations

    def complete(self, request: Request) -> Response:
        """Return the engine's reply to a request of DSPy's."""
        with dspy_faults():
            return self._write(self.reply(_read(request)))

    def stream(self, request: Request) -> Iterator[Any]:
        """Yield the events of the reply, which comes whole, as `dspy.streamify` reads them."""
        yield from stream_response(self.complete(request))


class AsyncRecordingEngine(_Recorder):
    """An asynchronous engine whose calls are kept."""

    def __init__(
        self, engine: _Async, draws: Draws | None = None, *, model: str = "", asked: str | None = None
    ) -> None:
        super().__init__(draws, engine, model, asked)
        self._engine = engine

    async def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the engine's replies, under their seeds where they were drawn."""
        with self._call(dialogue) as call:
            call.generations = await self._engine.reply(call.sent)
        return call.generations

    async def complete(self, request: Request) -> Response:
        """Return the engine's reply to a request of DSPy's."""
        with dspy_faults():
            return self._write(await self.reply(_read(request)))

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        """Yield the events of the reply, which comes whole, as `dspy.streamify` reads them."""
        for event in stream_response(await self.complete(request)):
            yield event
