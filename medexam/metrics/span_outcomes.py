"""What became of extracted spans: exact, empty, incomplete, and the rest, as people count errors.

Goenaga et al. (2023) count empty, incomplete and exact predictions in table 13 and do not define them. Here an
incomplete one shares words with the right answer and lacks some. Words are compared by SQuAD v1.1's rule.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from medexam.metrics.spans import comparable_words


class SpanOutcome(StrEnum):
    """How a predicted span stands to the right answer; every prediction is of exactly one kind."""

    EXACT = "exact"
    """The same words in the same order."""
    EMPTY = "empty"
    """No word is predicted."""
    INCOMPLETE = "incomplete"
    """Some words of the right answer are predicted, and some are missing."""
    TOO_LONG = "too long"
    """All words of the right answer are predicted, and others."""
    ELSEWHERE = "elsewhere"
    """No word of the right answer is predicted."""


def judge_span(prediction: str, references: Sequence[str]) -> SpanOutcome:
    """Judge a prediction beside the reference that it comes nearest to, kinds in their order; at least one."""
    answer_words = comparable_words(prediction)
    outcomes = {_judge(answer_words, comparable_words(reference)) for reference in references}
    return next(outcome for outcome in _NEAREST if outcome in outcomes)


def count_outcomes(pairs: Iterable[tuple[str, Sequence[str]]]) -> dict[SpanOutcome, int]:
    """Count the pairs of a prediction and its references by kind; kinds that do not occur are 0."""
    counts = Counter(judge_span(prediction, references) for prediction, references in pairs)
    return {outcome: counts[outcome] for outcome in SpanOutcome}


_NEAREST = (
    *(SpanOutcome.EXACT, SpanOutcome.EMPTY),
    *(SpanOutcome.TOO_LONG, SpanOutcome.INCOMPLETE, SpanOutcome.ELSEWHERE),
)


def _judge(answer_words: tuple[str, ...], reference_words: tuple[str, ...]) -> SpanOutcome:
    if answer_words == reference_words:
        return SpanOutcome.EXACT
    if not answer_words:
        return SpanOutcome.EMPTY
    missing = Counter(reference_words) - Counter(answer_words)
    if missing.total() == len(reference_words) and reference_words:
        return SpanOutcome.ELSEWHERE
    return SpanOutcome.INCOMPLETE if missing else SpanOutcome.TOO_LONG
