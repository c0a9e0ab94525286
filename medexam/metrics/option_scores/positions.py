"""Whether a program prefers a position whatever stands there: the position prior, and choices that orders flip.

In one order the prior is mixed with what the options say. Over all cyclic orders every option stands once at every
place, so what they say cancels out and what is left is the position's.
"""

import math
from collections.abc import Sequence

from medexam.metrics.option_scores.results import PositionShare
from medexam.metrics.option_scores.scored_options import ScoredOptions

Drawn = tuple[float, float, float]
"""What one question's options at one position get: the probability, whether the choice stands there and whether the
gold does, each from 0 to 1 (the mean over the question's orders)."""


def has_orders(scored: Sequence[ScoredOptions]) -> bool:
    """Whether every question was shown in several orders."""
    return all(options.orders for options in scored)


def position_shares(scored: Sequence[ScoredOptions]) -> tuple[PositionShare, ...]:
    """What each position draws, from the first to the last; by place shown where `has_orders`, else by printed number.

    A question weighs the same however many options, and so orders, it has.
    """
    by_place = has_orders(scored)
    drawn: dict[int, list[Drawn]] = {}
    for options in scored:
        for position, values in (_by_place(options) if by_place else _by_number(options)).items():
            drawn.setdefault(position, []).append(values)
    return tuple(_share(position, drawn[position]) for position in sorted(drawn))


def flip_rate(scored: Sequence[ScoredOptions]) -> float | None:
    """Share of the questions with several orders in which these do not all choose the same option; None without any."""
    ordered = [options for options in scored if options.orders]
    if not ordered:
        return None
    return sum(len({order.chosen for order in options.orders}) > 1 for options in ordered) / len(ordered)


def _by_number(options: ScoredOptions) -> dict[int, Drawn]:
    return {
        number: (probability, float(number == options.chosen), float(number == options.gold))
        for number, probability in options.probabilities.items()
    }


def _by_place(options: ScoredOptions) -> dict[int, Drawn]:
    orders = options.orders
    return {
        place + 1: (
            math.fsum(order.probabilities[place] for order in orders) / len(orders),
            sum(order.numbers[place] == order.chosen for order in orders) / len(orders),
            sum(order.numbers[place] == options.gold for order in orders) / len(orders),
        )
        for place in range(len(options.probabilities))
    }


def _share(position: int, drawn: Sequence[Drawn]) -> PositionShare:
    probability, chosen, gold = (math.fsum(column) / len(drawn) for column in zip(*drawn, strict=True))
    return PositionShare(position=position, n=len(drawn), mean_probability=probability, chosen=chosen, gold=gold)
