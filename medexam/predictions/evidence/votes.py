"""Votes: the answers of several replies to a question, or of a program's branches; pass@k, and accuracy of fewer."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import comb, fsum

from medexam.distributions import WILSON, rate_interval
from medexam.predictions.evidence.kind import Figures, Kind
from medexam.predictions.evidence.option_scores import OptionScoreFields
from medexam.questions import Gold
from medexam.tables import Captioned, Table, percent, with_interval

Votes = tuple[int | None, ...]


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class VoteFields(OptionScoreFields):
    """An answer with the votes that it was made of."""

    __slots__ = ()

    votes: tuple[int | None, ...] | None = None
    """The answer of each of several replies, in their order; None for a reply without a legal one. Left out
    of a line where no votes were counted."""


class VotePoint(Figures):
    """How a run would score with `samples` replies to each question."""

    samples: int
    accuracy: float
    """Of the commonest answer among the first `samples` replies, of equals the first; no answer is not right."""
    accuracy_interval: tuple[float, float] | None
    """Wilson's 95 % interval."""
    pass_at: float
    """pass@k: how likely one of `samples` replies is right, over all choices of replies (Chen et al. 2021)."""


class VoteMetrics(Figures):
    """What several replies to each question tell, over the scored questions that have votes."""

    samples: int
    """Replies to a question."""
    n: int
    agreement: float
    """The winner's share of the replies, averaged over the questions."""
    unanimous: float
    """Share of the questions whose replies all give the same answer."""
    no_answer: float
    """Share of the replies without a legal answer."""
    curve: tuple[VotePoint, ...]
    """From one reply to all of them."""


def _measure(answers: Sequence[tuple[VoteFields, Gold]]) -> VoteMetrics | None:
    ballots = [
        (prediction.votes, [gold.accepts(vote) for vote in prediction.votes])
        for prediction, gold in answers
        if prediction.votes
    ]
    if not ballots:
        return None
    samples = min(len(votes) for votes, _ in ballots)
    return VoteMetrics(
        samples=samples,
        n=len(ballots),
        agreement=fsum(_agreement(votes) for votes, _ in ballots) / len(ballots),
        unanimous=sum(len(set(votes)) == 1 and votes[0] is not None for votes, _ in ballots) / len(ballots),
        no_answer=fsum(votes.count(None) / len(votes) for votes, _ in ballots) / len(ballots),
        curve=tuple(_point(ballots, k) for k in range(1, samples + 1)),
    )


def majority(votes: Sequence[int | None]) -> int | None:
    """Find the commonest answer, of equals the first; None if there is none."""
    counts = Counter(vote for vote in votes if vote is not None)
    return max(counts, key=counts.__getitem__) if counts else None


def pass_at(k: int, n: int, right: int) -> float:
    """Compute the probability that one of `k` replies drawn from `n` is right, of which `right` are.

    Chen et al. (2021), "Evaluating Large Language Models Trained on Code", equation 1.
    """
    return 1.0 - comb(n - right, k) / comb(n, k)


def _agreement(votes: Votes) -> float:
    """Compute the winner's share of all replies."""
    winner = majority(votes)
    return votes.count(winner) / len(votes) if winner is not None else 0.0


def _point(ballots: Sequence[tuple[Votes, list[bool]]], k: int) -> VotePoint:
    right = sum(rights[votes.index(winner)] for votes, rights in ballots if (winner := majority(votes[:k])) is not None)
    pass_sum = fsum(pass_at(k, len(votes), sum(rights)) for votes, rights in ballots)
    return VotePoint(
        samples=k,
        accuracy=right / len(ballots),
        accuracy_interval=rate_interval(right, len(ballots)),
        pass_at=pass_sum / len(ballots),
    )


def _tables(figures: VoteMetrics, others: Collection[str]) -> Iterator[Captioned]:  # noqa: ARG001
    """Show how the score grows with the number of replies."""
    points = [point for point in figures.curve if point.samples in {2**n for n in range(10)} | {figures.samples}]
    rows = tuple(
        (str(point.samples), with_interval(percent(point.accuracy), point.accuracy_interval), percent(point.pass_at))
        for point in points
    )
    caption = (
        f"Percent of n = {figures.n:,}. Accuracy: of the commonest answer among the first replies ({WILSON}). pass@k: "
        f"how likely one of them is right. The commonest answer has {percent(figures.agreement)} % of the replies on "
        f"average. All agree on {percent(figures.unanimous)} % of the questions. {percent(figures.no_answer)} % of the "
        "replies hold no legal answer."
    )
    yield Table("By number of replies", ("Replies", "Accuracy", "pass@k"), rows), caption


VOTES = Kind(figures="votes", measure=_measure, tables=_tables)
