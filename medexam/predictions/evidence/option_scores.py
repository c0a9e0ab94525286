"""Scores of the options, and how they were read."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from medexam.predictions.core import CorePrediction, Number


@dataclass(frozen=True, kw_only=True)
class OptionScoreFields(CorePrediction):
    """An answer with the scores of its options."""

    __slots__ = ()

    option_scores: dict[int, float] | None = None
    """Printed number of each option -> its score, the higher the likelier; None where options were not scored."""
    score_unit: str | None = None
    """The unit of `option_scores`, such as `nats per token`."""
    score_norm: str | None = None
    """What a score was divided by or compared with; see docs/protocol.md."""
    tied: Number | None = None
    """How many options share the best score: 1 where one option is ahead. Of tied options the first is chosen."""
    label_mass: float | None = None
    """Probability that the next token is any of the option numbers, 0 to 1; None where no numbers were read."""
    order_scores: tuple[tuple[float, ...], ...] | None = None
    """One row for each of `orders`: the scores in the order in which the options were shown. In a line without
    `orders`, row `r` shows first the option that stands at place `r` in the exam, and then those after it. None where
    only the exam's order was shown."""
    read_by: str | None = None
    """How the log-probabilities were read: `echo`, `trie` or `label`; None where none were."""
    read_why: str | None = None
    """Why they were read that way; None where none were."""

    @property
    def option_probabilities(self) -> dict[int, float] | None:
        """Printed number of each option -> its share of the probability; None where options were not scored."""
        return None if self.option_scores is None else normalise_scores(self.option_scores)


def normalise_scores(scores: Mapping[int, float]) -> dict[int, float]:
    """Turn log scores into probabilities that sum to 1 (the softmax)."""
    best = max(scores.values())
    weights = {number: math.exp(score - best) for number, score in scores.items()}
    total = math.fsum(weights.values())
    return {number: weight / total for number, weight in weights.items()}
