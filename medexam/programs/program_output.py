"""What a program makes of a question, in typed fields: the answer, and all that is kept beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import dspy

from medexam.predictions import FollowUp, MetricScore, Reason, RetrievedPassage
from medexam.retrievers.base import Hit
from medexam.signatures import Generation
from medexam.tasks import Alignment


@dataclass(frozen=True)
class EntailmentScores:
    """The scores of a question's options; the fields are those of `medexam.predictions.Prediction`."""

    option_scores: dict[int, float]
    score_unit: str
    tied: int


@dataclass(frozen=True)
class OptionScores(EntailmentScores):
    """Scores that were made of log-probabilities or votes, and how."""

    score_norm: str
    label_mass: float | None
    order_scores: tuple[tuple[float, ...], ...] | None
    read_by: str
    read_why: str


@dataclass(frozen=True)
class PassageVerdict:
    """What a verifier says of a passage; the fields are those of `medexam.predictions.RetrievedPassage`."""

    kept: bool
    support: float | None = None


def kept_passage(hit: Hit) -> RetrievedPassage:
    """Return what a prediction keeps of a hit."""
    return RetrievedPassage(id=hit.passage.id, source=hit.passage.source, score=hit.score)


class ProgramOutput(dspy.Prediction):
    """What a program returns for one question. A field that nothing was given for is None."""

    answer: int | None
    """Printed number of the chosen option; None if there is none, or if the question is answered in words."""
    text: str | None
    """The answer in words."""
    rationale: str | None
    """What was reasoned before the answer."""
    reason: Reason | None
    """Why there is no answer, if that is known before the reply is read."""
    generations: list[Generation]
    """Every reply, in the order of asking; empty if no model was asked."""
    last_generation: Generation | None
    """The reply that the answer stands in; None: the last of `generations`."""
    keeps_replies: bool | None
    """Whether a prediction keeps the text of every reply, since the answer is made of several."""
    scores: EntailmentScores | None
    """How likely the options are."""
    votes: tuple[int | None, ...] | None
    """The answer of each of several replies, in their order."""
    orders: Sequence[tuple[int, ...]] | None
    """The orders in which the options were shown, as printed numbers."""
    hits: list[Hit] | None
    """Passages that were looked up, most relevant first."""
    passages_cut: int | None
    """Characters of the passages that did not fit the model's context."""
    verdicts: Sequence[PassageVerdict] | None
    """What a verifier says of each of `hits`."""
    supported: bool | None
    """Whether the kept passages support the answer."""
    rounds: tuple[tuple[FollowUp, ...], ...] | None
    """The queries that the model wrote in each round."""
    cited: int | None
    """Place among `hits`, from 1, of the passage that the reply names; 0 for none."""
    cited_support: float | None
    """Probability, 0 to 1, with which that passage entails the answer."""
    fields: Mapping[str, Any] | None
    """Every output of a signature that a step of a flow asks, by name; None of any other program."""
    span: tuple[int, int] | None
    """First character of `text` in the question's context, and the one after its last."""
    alignment: Alignment | None
    """How `text` was found there."""
    outputs: dict[str, Any] | None
    """What a module of the user's own returned, by name, as JSON: beside the answer, or all for an example."""
    metric_score: MetricScore | None
    """What the metric said that scores answers as they come."""

    def __getattr__(self, name: str) -> Any:
        """Return a field's value, or None if it was not given; raises `AttributeError` if there is no such field."""
        # Looked up at once: programs read several fields of every answer.
        return self._store.get(name) if name in _FIELDS else super().__getattr__(name)

    @classmethod
    def of(cls, prediction: dspy.Prediction) -> Self:
        """Return what a program of the user's own returned, as such an output."""
        return prediction if isinstance(prediction, cls) else cls(**dict(prediction.items()))

    def copy(self, **fields: Any) -> Self:
        """Return the same output with other `fields`."""
        output: Self = super().copy(**fields)
        return output


_FIELDS = frozenset(ProgramOutput.__annotations__)
