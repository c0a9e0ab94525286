"""The queries that a model wrote itself, round by round, and what they found."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from medexam.frozen_model import FrozenModel
from medexam.predictions.evidence.kind import Figures, Kind
from medexam.predictions.evidence.passages import PassageFields, RetrievedPassage
from medexam.questions import Gold
from medexam.tables import Captioned, Table


class FollowUp(FrozenModel):
    """A query that the model wrote while it was asked, and what became of it."""

    query: str
    passages: tuple[RetrievedPassage, ...]
    """What it found, most relevant first."""
    answer: str | None = None
    """What the model made of them; None where the passages themselves were kept."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class RoundFields(PassageFields):
    """An answer with the model's own queries."""

    __slots__ = ()

    rounds: tuple[tuple[FollowUp, ...], ...] | None = None
    """The queries that the model wrote in each round; left out of a line where it wrote none itself."""


class QueryMetrics(Figures):
    """What a model looked up itself, over the scored questions of a program that writes queries."""

    n: int
    rounds: float
    """Rounds with a query, a question on average."""
    queries: float
    """A question on average."""
    passages: float
    """Different passages, a question on average."""
    none: int
    """Questions for which no query was written."""


def _measure(answers: Sequence[tuple[RoundFields, Gold]]) -> QueryMetrics | None:
    searches = [(prediction, prediction.rounds) for prediction, _ in answers if prediction.rounds is not None]
    if not searches:
        return None
    n = len(searches)
    return QueryMetrics(
        n=n,
        rounds=fsum(len(rounds) for _, rounds in searches) / n,
        queries=fsum(sum(map(len, rounds)) for _, rounds in searches) / n,
        passages=fsum(len(prediction.passages or ()) for prediction, _ in searches) / n,
        none=sum(not rounds for _, rounds in searches),
    )


def _tables(figures: QueryMetrics, others: Collection[str]) -> Iterator[Captioned]:  # noqa: ARG001
    row = (f"{figures.rounds:.2f}", f"{figures.queries:.2f}", f"{figures.passages:.2f}", str(figures.none))
    caption = f"Means of each question, n = {figures.n:,}; a passage is counted once. The last column counts questions."
    yield Table("What the model looked up", ("Rounds", "Queries", "Passages", "Without a query"), (row,)), caption


def _page(prediction: RoundFields) -> dict[str, Any]:
    """List each round's query, answer and the ids of what was found."""
    if prediction.rounds is None:
        return {}
    rounds = [
        [[step.query, step.answer, [passage.id for passage in step.passages]] for step in steps]
        for steps in prediction.rounds
    ]
    return {"rounds": rounds}


ROUNDS = Kind(figures="evidence.queries", measure=_measure, tables=_tables, page=_page)
