"""How well rankings find what is relevant: recall, reciprocal rank and nDCG over ids.

A passage is relevant or not, without degrees. It knows nothing of passages or retrievers.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, log2


@dataclass(frozen=True)
class RetrievalScores:
    """Means over the queries that have something relevant, from 0 to 1."""

    k: int
    """How many passages of each ranking count."""
    n: int
    """Queries that were scored."""
    unjudged: int
    """Queries without anything relevant, which no mean counts."""
    recall: float | None
    """Recall@k; this and the others are None where `n` is 0."""
    mrr: float | None
    """Mean reciprocal rank, of the first `k` passages."""
    ndcg: float | None
    """nDCG@k."""


def score_rankings(
    rankings: Mapping[str, Sequence[str]], relevant: Mapping[str, Collection[str]], k: int
) -> RetrievalScores:
    """The means over all queries of `relevant`; one without a ranking counts as having found nothing.

    Both are by query; a ranking is ids, best first. Rankings of queries that `relevant` lacks are not looked at.
    Raises `ValueError` where `k` is below 1 or an id stands twice in a ranking.
    """
    judged = {query: wanted for query, wanted in relevant.items() if wanted}
    scores = [
        (recall_at(ranked, wanted, k), reciprocal_rank(ranked, wanted, k), ndcg_at(ranked, wanted, k))
        for ranked, wanted in ((rankings.get(query, ()), wanted) for query, wanted in judged.items())
    ]
    recall, mrr, ndcg = (_mean(column) for column in zip(*scores, strict=True)) if scores else (None, None, None)
    return RetrievalScores(k, len(judged), len(relevant) - len(judged), recall, mrr, ndcg)


def recall_at(ranked: Sequence[str], relevant: Collection[str], k: int) -> float | None:
    """The share of what is relevant that stands in the first `k`; None where nothing is relevant."""
    ranks = _relevant_ranks(ranked, relevant, k)
    return len(ranks) / len(set(relevant)) if relevant else None


def reciprocal_rank(ranked: Sequence[str], relevant: Collection[str], k: int | None = None) -> float | None:
    """1 / rank of the first relevant id; 0 where the first `k` hold none (k None: all), None where none is relevant."""
    ranks = _relevant_ranks(ranked, relevant, k)
    return (1 / ranks[0] if ranks else 0.0) if relevant else None


def ndcg_at(ranked: Sequence[str], relevant: Collection[str], k: int) -> float | None:
    """The sum of 1 / log2(1 + rank) over the relevant ids in the first `k`, by the highest that it can be.

    Järvelin and Kekäläinen, TOIS 2002, with gain 1 and the discount of trec_eval. None where nothing is relevant.
    """
    ranks = _relevant_ranks(ranked, relevant, k)
    if not relevant:
        return None
    ideal = range(1, min(k, len(set(relevant))) + 1)
    return _gain(ranks) / _gain(ideal)


def _relevant_ranks(ranked: Sequence[str], relevant: Collection[str], k: int | None) -> list[int]:
    """The ranks of relevant ids, from 1 to `k`, in ascending order."""
    if k is not None and k < 1:
        raise ValueError(f"k is {k}: it must be 1 or more")
    if len(set(ranked)) < len(ranked):
        raise ValueError("a ranking holds an id twice: each passage may stand in it once")
    wanted = set(relevant)
    return [rank for rank, key in enumerate(ranked[:k], start=1) if key in wanted]


def _gain(ranks: Sequence[int]) -> float:
    return fsum(1 / log2(1 + rank) for rank in ranks)


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return fsum(known) / len(known)
