"""What several orders of the options tell: position bias, consistency, and what is right in every order.

Pure functions over the orders that a run kept, with the votes or scores of each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np

from medexam.distributions import chi_square_tail, rate_interval
from medexam.items import AnswerKey, Gold
from medexam.metrics.vote_results import OrderMetrics, PlaceCount
from medexam.metrics.votes import majority
from medexam.predictions import Prediction, Status
from medexam.questions import Question


@dataclass(frozen=True)
class _Shown:
    """One question in its orders; item r of each is order r."""

    orders: tuple[tuple[int, ...], ...]
    answers: tuple[int | None, ...]
    rights: tuple[bool, ...]
    gold: int

    def places(self) -> list[tuple[int, int]]:
        """Find the place of the answer and that of the right option, from 0, for each order with a legal answer.

        Any of several right options is right, so a right answer stands where the right option does.
        """
        rows = zip(self.orders, self.answers, self.rights, strict=True)
        return [
            (order.index(answer), order.index(answer if right else self.gold))
            for order, answer, right in rows
            if answer is not None
        ]


def order_metrics(
    questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]
) -> OrderMetrics | None:
    """Compute the metrics of the predictions that hold orders; None if none does.

    Raises `DatasetError` if `key` lacks one of their questions.
    """
    records = []
    for question in questions:
        prediction = predictions.get(question.key)
        if prediction is not None and prediction.status is not Status.FAILED and prediction.orders:
            records.append(_read(prediction, key[question.key]))
    if not records:
        return None
    statistic, degrees, p = homogeneity([record.places() for record in records])
    n, right_in_all = len(records), sum(all(record.rights) for record in records)
    places = [place for record in records for place in record.places()]
    return OrderMetrics(
        n=n,
        orders=max(len(record.orders) for record in records),
        answered=len(places),
        places=_counts(places, max(len(record.orders[0]) for record in records)),
        chi_square=statistic,
        degrees=degrees,
        p=p,
        single_accuracy=fsum(sum(record.rights) / len(record.rights) for record in records) / n,
        consistent=sum(len(set(record.answers)) == 1 and record.answers[0] is not None for record in records) / n,
        right_in_all=right_in_all / n,
        right_in_all_interval=rate_interval(right_in_all, n),
        right_in_any=sum(any(record.rights) for record in records) / n,
    )


def homogeneity(clusters: Sequence[Sequence[tuple[int, int]]]) -> tuple[float | None, int, float | None]:
    """Test whether both of each pair stand in a place equally often: chi-square, degrees of freedom and p.

    A cluster holds the pairs of one question, as places from 0. With one pair a cluster it is Stuart's and Maxwell's
    test of marginal homogeneity (Stuart 1955; Maxwell 1970); here the differences of a question are added up before
    their products, since its orders depend on each other. The first and third are None if no pair differs.
    """
    places = 1 + max((place for pairs in clusters for pair in pairs for place in pair), default=0)
    differences = np.zeros((len(clusters), places))
    for row, pairs in enumerate(clusters):
        for answer_place, right_place in pairs:
            differences[row, answer_place] += 1
            differences[row, right_place] -= 1
    covariance = differences.T @ differences
    degrees = int(np.linalg.matrix_rank(covariance))
    if not degrees:
        return None, 0, None
    total = differences.sum(axis=0)
    statistic = float(total @ np.linalg.pinv(covariance, hermitian=True) @ total)
    return statistic, degrees, chi_square_tail(statistic, degrees)


def _read(prediction: Prediction, gold: Gold) -> _Shown:
    answers: tuple[int | None, ...]
    orders, votes, rows = prediction.orders or (), prediction.votes or (), prediction.order_scores
    votes_per_order = len(votes) // len(orders)
    if rows is not None:
        answers = tuple(order[row.index(max(row))] for order, row in zip(orders, rows, strict=True))
    else:
        answers = tuple(
            majority(votes[turn * votes_per_order : (turn + 1) * votes_per_order]) for turn in range(len(orders))
        )
    return _Shown(orders, answers, tuple(map(gold.accepts, answers)), gold.number)


def _counts(places: Sequence[tuple[int, int]], most: int) -> tuple[PlaceCount, ...]:
    total = max(1, len(places))
    return tuple(
        PlaceCount(
            place=place + 1,
            chosen=sum(answer_place == place for answer_place, _ in places) / total,
            right=sum(right_place == place for _, right_place in places) / total,
        )
        for place in range(most)
    )
