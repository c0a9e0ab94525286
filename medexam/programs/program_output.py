"""What a program makes of a question, in typed fields: the answer, and all that is kept beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Self

import dspy

from medexam.model_calls import Generation
from medexam.predictions import Prediction, RetrievedPassage
from medexam.retrievers.base import Hit


def kept_passage(hit: Hit) -> RetrievedPassage:
    """Return what a prediction keeps of a hit."""
    return RetrievedPassage(id=hit.passage.id, source=hit.passage.source, score=hit.score)


class ProgramOutput(dspy.Prediction):
    """What a program returns for one question: fields of `medexam.predictions.Prediction`, and those below.

    A field that nothing was given for is None.
    """

    answer: int | None
    text: str | None
    generation: Generation | None
    """The reply that the answer stands in; None: the last one that came, if any."""
    scores: Mapping[str, Any] | None
    """`option_scores`, `score_unit` and what else a prediction keeps of them."""
    hits: list[Hit] | None
    """Passages that were looked up, most relevant first."""
    verdicts: Sequence[bool] | None
    """Whether a verifier keeps each of `hits`."""
    fields: Mapping[str, Any] | None
    """Every output of a signature that a step of a flow asks, by name; None of any other program."""

    def __getattr__(self, name: str) -> Any:
        # Looked up at once: programs read several fields of every answer.
        return self._store.get(name) if name in _FIELDS else super().__getattr__(name)

    @property
    def option_scores(self) -> dict[int, float] | None:
        """Printed number of each option -> its score; None if the program weighs none."""
        return None if self.scores is None else self.scores["option_scores"]

    @classmethod
    def of(cls, prediction: dspy.Prediction) -> Self:
        """Return what a program of the user's own returned, as such an output."""
        return prediction if isinstance(prediction, cls) else cls(**dict(prediction.items()))

    def copy(self, **fields: Any) -> Self:
        """Return the same output with other `fields`."""
        output: Self = super().copy(**fields)
        return output


_FIELDS = {field.name for field in fields(Prediction)} | {*ProgramOutput.__annotations__}
