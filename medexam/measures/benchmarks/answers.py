"""What a run answered, as a comparison reads it: most of it is known without reading a prediction."""

from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from medexam.predictions import Prediction
from medexam.predictions.core import Outcome
from medexam.predictions.prediction import Answered


class RunAnswers(UserDict[str, Prediction]):
    """The predictions of a run by key, all of which are read when one is looked at first."""

    def __init__(
        self,
        read: Callable[[], Mapping[str, Prediction]],
        outcomes: Mapping[str, Outcome] | None = None,
        keys: Sequence[str] = (),
        metrics: Any = None,
    ) -> None:
        """Take what reads the predictions, and what is known without them: outcomes, and the scores of these items."""
        self._read, self._outcomes = read, outcomes
        self._keys, self._metrics = list(keys), metrics

    @cached_property
    def data(self) -> dict[str, Prediction]:  # type: ignore[override]
        """The predictions."""
        return dict(self._read())

    @property
    def outcomes(self) -> Mapping[str, Answered]:
        """How each question came out, by key."""
        return self.data if self._outcomes is None else self._outcomes

    def metrics_of(self, keys: Sequence[str]) -> Any:
        """Return the stored scores of exactly these items in this order; None if none are known."""
        return self._metrics if self._keys == list(keys) else None
