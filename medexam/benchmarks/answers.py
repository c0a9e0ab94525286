"""What a run answered, as a comparison reads it: most of it is known without reading a prediction."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from medexam.predictions import Prediction
from medexam.predictions.core import Outcome
from medexam.predictions.prediction import Answered


class ScoredAs(NamedTuple):
    """The scores that a run is stored with."""

    keys: Sequence[str]
    """Of the items that they are of, in their order."""
    metrics: Any


class RunAnswers(Mapping[str, Prediction]):
    """The predictions of a run by key, all of which are read when one is looked at first."""

    def __init__(
        self,
        read: Callable[[], Mapping[str, Prediction]],
        outcomes: Mapping[str, Outcome] | None = None,
        scored: ScoredAs | None = None,
    ) -> None:
        """Keep what reads the predictions; None: nothing is known without the predictions."""
        self._read = read
        self._outcomes = outcomes
        self._scored = scored

    @property
    def outcomes(self) -> Mapping[str, Answered]:
        """How each question came out, by key."""
        return self._predictions if self._outcomes is None else self._outcomes

    def metrics_of(self, keys: Sequence[str]) -> Any:
        """Return the stored scores of exactly these items in this order; None if none are known."""
        return self._scored.metrics if self._scored is not None and list(self._scored.keys) == list(keys) else None

    @cached_property
    def _predictions(self) -> Mapping[str, Prediction]:
        return self._read()

    def __getitem__(self, key: str) -> Prediction:
        return self._predictions[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._predictions)

    def __len__(self) -> int:
        return len(self._predictions)
