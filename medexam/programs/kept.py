"""What is kept of a question's calls, by whatever part of its program and in whatever thread they are made.

It stands in DSPy's settings, which it hands on to its threads. A server gives one seed and one prompt one reply, so an
equal dialogue of one question is sent under the next seed.
"""

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import dspy

from medexam.dspy_internals import dspy_errors
from medexam.model_calls import Dialogue
from medexam.predictions.prediction import ModelCall

KEPT = "medexam_kept_calls"
"""Setting of DSPy's context: the `KeptCalls` of a question."""


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
            while seed in used_seeds:
                seed += 1
            used_seeds.add(seed)
        return dialogue if seed == sampling.seed else dialogue.with_seed(seed)


class KeptCalls(Draws):
    """The calls of one question, the program's own and those of its parts, in the order in which they are begun."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[ModelCall] = []
        self.fault: Exception | None = None
        """What the last call broke with; None if it brought a reply."""

    def begin(self, call: ModelCall) -> int:
        """Keep a call that waits for its reply; return its place."""
        with self._lock:
            self._calls.append(call)
            return len(self._calls) - 1

    def end(self, place: int, call: ModelCall) -> None:
        """Keep what came of the call at this place."""
        self._calls[place] = call

    def raise_fault(self) -> None:
        """Raise what the last call broke with, if it did: `dspy.BestOfN` and the user's own code may catch it, and no
        answer for want of a server is a failure.
        """
        if self.fault is not None:
            with dspy_errors(getattr(dspy.settings.lm, "model", "")):
                raise self.fault

    def all(self) -> tuple[ModelCall, ...]:
        """Return what was kept so far."""
        return tuple(self._calls)


@contextmanager
def kept_calls() -> Iterator[KeptCalls]:
    """Keep every call of a model that the block makes, with those of the block around if it keeps some."""
    keeper: KeptCalls = dspy.settings.get(KEPT) or KeptCalls()
    with dspy.context(**{KEPT: keeper}):
        yield keeper
