"""Citations: the passage that a reply names for its answer, and whether that entails it."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import fsum

from medexam.distributions import WILSON, rate_interval
from medexam.predictions.core import CorePrediction
from medexam.predictions.evidence.kind import Figures, Kind
from medexam.questions import Gold
from medexam.tables import Captioned, Table, percent, with_interval

ENTAILED = 0.5
"""The probability from which a passage entails an answer."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class CitationFields(CorePrediction):
    """An answer with the passage that it cites."""

    __slots__ = ()

    cited: int | None = None
    """The place among `passages`, from 1, of the one that the reply names for its answer; 0: it says that none supports
    it. Left out of a line where it names none, or was not asked to."""
    cited_support: float | None = None
    """The probability, 0 to 1, with which a sentence of that passage entails the stem with the answer, by a reader.
    Left out of a line where none was asked or no passage is named."""


class CitationMetrics(Figures):
    """What answers cite, over the scored questions with a legal answer of a program that cites."""

    n: int
    named: int
    """Answers that name a passage."""
    refused: int
    """Answers that say that no passage supports them."""
    scored: int
    """Citations that a reader scored."""
    entailing: int
    """Scored citations whose passage entails the answer, with a probability of 0.5 or more."""
    entailing_interval: tuple[float, float] | None
    """Wilson's 95 % interval of their share; None if none was scored."""
    mean_support: float | None
    """Mean probability of entailment of the scored citations; None if none was scored."""


def _measure(answers: Sequence[tuple[CitationFields, Gold]]) -> CitationMetrics | None:
    if all(prediction.cited is None for prediction, _ in answers):
        return None
    answered = [prediction for prediction, _ in answers if prediction.answer is not None]
    supports = [prediction.cited_support for prediction in answered if prediction.cited_support is not None]
    entailing = sum(support >= ENTAILED for support in supports)
    return CitationMetrics(
        n=len(answered),
        named=sum(bool(prediction.cited) for prediction in answered),
        refused=sum(prediction.cited == 0 for prediction in answered),
        scored=len(supports),
        entailing=entailing,
        entailing_interval=rate_interval(entailing, len(supports)),
        mean_support=fsum(supports) / len(supports) if supports else None,
    )


def _tables(figures: CitationMetrics, others: Collection[str]) -> Iterator[Captioned]:  # noqa: ARG001
    share = figures.entailing / figures.scored if figures.scored else None
    row = (
        str(figures.named),
        str(figures.refused),
        str(figures.n - figures.named - figures.refused),
        str(figures.scored),
        with_interval(percent(share), figures.entailing_interval),
    )
    caption = (
        f"Counts of n = {figures.n:,} answers. Entailing: percent of the scored citations whose passage entails the "
        f"answer with a probability of {ENTAILED:g} or more, by program.reader ({WILSON})."
    )
    if figures.mean_support is not None:
        caption += f" Mean probability: {figures.mean_support:.3f}."
    columns = ("Name a passage", "Say that none supports", "No citation", "Scored", "Entailing")
    yield Table("Citations", columns, (row,)), caption


CITATIONS = Kind(
    figures="evidence.citations", measure=_measure, tables=_tables, page=lambda prediction: {"cited": prediction.cited}
)
