"""What became of extracted spans: exact, empty, incomplete, and the rest, as people count errors.

Goenaga et al. (2023) count empty, incomplete and exact predictions in table 13. Incomplete ones are too short to be an
answer, such as "correct)", "the" and "some" (their footnote 8): here, of one word. Whether words are those of a right
answer is told by SQuAD v1.1's rule.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from medexam.measures.spans import comparable_words


class SpanOutcome(StrEnum):
    """How a predicted span stands to the right answer; every prediction is of exactly one kind."""

    EXACT = "exact"
    """The same words in the same order."""
    EMPTY = "empty"
    """No word is predicted."""
    INCOMPLETE = "incomplete"
    """One word is predicted, an article too, and it is not the right answer."""
    PARTIAL = "partial"
    """Some words of the right answer are predicted, and some are missing."""
    TOO_LONG = "too long"
    """All words of the right answer are predicted, and others."""
    ELSEWHERE = "elsewhere"
    """No word of the right answer is predicted."""


def judge_span(prediction: str, references: Sequence[str]) -> SpanOutcome:
    """Judge a prediction beside the reference that it comes nearest to, kinds in their order; at least one."""
    count = len(_WORD.findall(prediction))
    answer_words = comparable_words(prediction)
    outcomes = {_judge(count, answer_words, comparable_words(reference)) for reference in references}
    return next(outcome for outcome in _NEAREST if outcome in outcomes)


def count_outcomes(pairs: Iterable[tuple[str, Sequence[str]]]) -> dict[SpanOutcome, int]:
    """Count the pairs of a prediction and its references by kind; kinds that do not occur are 0."""
    counts = Counter(judge_span(prediction, references) for prediction, references in pairs)
    return {outcome: counts[outcome] for outcome in SpanOutcome}


_NEAREST = (
    *(SpanOutcome.EXACT, SpanOutcome.EMPTY, SpanOutcome.INCOMPLETE),
    *(SpanOutcome.TOO_LONG, SpanOutcome.PARTIAL, SpanOutcome.ELSEWHERE),
)
_WORD = re.compile(r"\w+")


def _judge(count: int, answer_words: tuple[str, ...], reference_words: tuple[str, ...]) -> SpanOutcome:
    if count == 0:
        return SpanOutcome.EMPTY
    if answer_words == reference_words:
        return SpanOutcome.EXACT
    if count == 1 or not answer_words:
        return SpanOutcome.INCOMPLETE
    missing = Counter(reference_words) - Counter(answer_words)
    if missing.total() == len(reference_words) and reference_words:
        return SpanOutcome.ELSEWHERE
    return SpanOutcome.PARTIAL if missing else SpanOutcome.TOO_LONG
