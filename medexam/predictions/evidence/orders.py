"""Orders of a question's options: position bias, consistency, and what is right in every order."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np

from medexam.distributions import chi_square_tail, rate_interval
from medexam.predictions.evidence.kind import Figures, Kind, end_values
from medexam.predictions.evidence.votes import VoteFields, majority
from medexam.questions import Gold
from medexam.tables import Captioned, Table, equals, percent, with_interval


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class OrderFields(VoteFields):
    """An answer with the orders of its options."""

    __slots__ = ()

    orders: tuple[tuple[int, ...], ...] | None = None
    """The orders in which the options were shown, each as their printed numbers; every order has as many `votes`, one
    order after the other, as printed numbers too, or a row of `order_scores`. Left out of a line where the exam's order
    alone was shown."""


class PlaceCount(Figures):
    """How often the option in one place was chosen, over all orders whose answer is legal."""

    place: int
    """From 1, as shown."""
    chosen: float
    """Share of the orders whose answer stands there."""
    right: float
    """Share of the orders whose right option stands there."""


class OrderMetrics(Figures):
    """What several orders of the options tell, over the scored questions that were shown in several."""

    n: int
    orders: int
    """The most orders of a question."""
    answered: int
    """Orders of all questions whose answer is legal."""
    places: tuple[PlaceCount, ...]
    chi_square: float | None
    """Stuart's and Maxwell's test that each place is chosen as often as the right option stands there, with questions
    as clusters; None if every answer is right, so that there is nothing to test."""
    degrees: int
    """Degrees of freedom of `chi_square`."""
    p: float | None
    """Its p-value; None without the test."""
    single_accuracy: float
    """Accuracy of one order, averaged over the orders of a question; no answer is not right."""
    consistent: float
    """Share of the questions to which all orders give the same legal answer."""
    right_in_all: float
    """Share of the questions that are answered rightly in every order."""
    right_in_all_interval: tuple[float, float] | None
    """Wilson's 95 % interval."""
    right_in_any: float
    """Share of the questions that are answered rightly in at least one order."""


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


def _measure(answers: Sequence[tuple[OrderFields, Gold]]) -> OrderMetrics | None:
    records = [_read(prediction, gold) for prediction, gold in answers if prediction.orders]
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


def _read(prediction: OrderFields, gold: Gold) -> _Shown:
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


def _tables(figures: OrderMetrics, others: Collection[str]) -> Iterator[Captioned]:  # noqa: ARG001
    """Show how often the option in each place is chosen."""
    rows = tuple((str(count.place), percent(count.chosen), percent(count.right)) for count in figures.places)
    caption = (
        f"Percent of {figures.answered:,} orders with a legal answer, of n = {figures.n:,} questions in up to "
        f"{figures.orders} orders each. {_bias(figures)} One order alone is right on "
        f"{percent(figures.single_accuracy)} % of the questions on average, any order on "
        f"{percent(figures.right_in_any)} %."
    )
    yield Table("By place in the order", ("Place", "Chosen", "Right option"), rows), caption


def _bias(figures: OrderMetrics) -> str:
    if figures.chi_square is None or figures.p is None:
        return "Every legal answer is right, so nothing shows a position bias."
    return (
        f"Position bias: chi-square {figures.chi_square:.2f}, {figures.degrees} degrees of freedom, "
        f"p {equals(figures.p)} (Stuart and Maxwell, questions as clusters)."
    )


def _headline(figures: OrderMetrics) -> Iterator[tuple[str, str]]:
    yield "Right in every order, %", with_interval(percent(figures.right_in_all), figures.right_in_all_interval)
    yield "Same answer in every order, %", percent(figures.consistent)


def _values(figures: OrderMetrics) -> Mapping[str, float | None]:
    return {
        **end_values("right_in_every_order", figures.right_in_all, figures.right_in_all_interval),
        "consistent_over_orders": figures.consistent,
        "single_order_accuracy": figures.single_accuracy,
        "position_bias_p": figures.p,
    }


ORDERS = Kind(figures="orders", measure=_measure, tables=_tables, headline=_headline, values=_values)
