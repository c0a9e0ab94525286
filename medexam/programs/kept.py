"""What is kept of a question's calls, by whatever part of its program and in whatever thread they are made.

The keepers stand in DSPy's settings, which it hands on to its threads. A server gives one seed and one prompt one
reply, so an equal dialogue of one question is sent under the next seed.
"""

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import dspy

from medexam.model_calls import Dialogue, Generation
from medexam.predictions.calls import ModelCall

T = TypeVar("T")
KEPT = "medexam_kept_calls"
"""Setting of DSPy's context: the `KeptCalls` of a question."""
CALLS = "medexam_calls"
"""Setting of DSPy's context: the `Calls` of a module of the user's own."""
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
        sampling, seed = dialogue.sampling, dialogue.sampling.seed
        if seed is None or not sampling.temperature:
            return dialogue
        with self._lock:
            used_seeds = self._seeds[model, dialogue.key]
            # A dialogue that asks for several replies takes as many seeds, one after the other.
            while not used_seeds.isdisjoint(seeds := range(seed, seed + sampling.samples)):
                seed += 1
            used_seeds.update(seeds)
        return dialogue if seed == sampling.seed else dialogue.with_seed(seed)


@dataclass
class Calls:
    """The calls of one question of a module of the user's own."""

    draws: Draws = field(default_factory=Draws)
    generations: list[Generation] = field(default_factory=list)
    """Each reply, in the order in which they came."""
    over: bool = False
    """Whether nobody waits for the question any more."""
    fault: Exception | None = None
    """What the last call broke with; None if it brought a reply."""


class OverError(BaseException):
    """A module asks for a question whose time was over; no `except Exception` of its own continues it."""


class KeptCalls:
    """The calls of one question, the program's own and those of its parts, in the order in which they are begun."""

    def __init__(self) -> None:
        self._calls: list[ModelCall] = []
        self._lock = threading.Lock()

    def begin(self, call: ModelCall, replies: int = 1) -> range:
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
def _keeping(name: str, keeper: T) -> Iterator[T]:
    with dspy.context(**{name: keeper}):
        yield keeper


def kept_calls() -> AbstractContextManager[KeptCalls]:
    """Keep every call of a model that the block makes."""
    return _keeping(KEPT, KeptCalls())


def recorded_calls() -> AbstractContextManager[Calls]:
    """Keep the calls of a module of the user's own that are made in the block."""
    return _keeping(CALLS, Calls(dspy.settings.get(_DRAWS) or Draws()))


def shared_draws() -> AbstractContextManager[Draws]:
    """Have all that is recorded in the block, apart or not, draw each prompt under seeds of its own."""
    return _keeping(_DRAWS, Draws())


def keep_call(call: ModelCall) -> bool:
    """Keep a call that no engine of ours made; return whether calls are kept here."""
    keeper: KeptCalls | None = dspy.settings.get(KEPT)
    if keeper is not None:
        keeper.begin(call)
    return keeper is not None
