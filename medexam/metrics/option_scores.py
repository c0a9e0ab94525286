"""From stored option scores to `OptionScoreMetrics`: calibration, position prior, ties and abstention.

Pure functions over the scores as the program left them, so a threshold can be tried on a run without asking the model.
In one order the position prior is mixed with what the options say. Over all cyclic orders every option stands once at
every place, so what the options say cancels out and only the position's share is left; over others it does on average.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from medexam.items import AnswerKey, Gold
from medexam.metrics.intervals import rate_interval
from medexam.metrics.results import AbstentionPoint, OptionScoreMetrics, PositionShare, ReliabilityBin
from medexam.predictions import Prediction, Status, normalise_scores
from medexam.questions import Question

BINS = 10
Drawn = tuple[float, float, float]
"""What one question's options at one position get: the probability, whether the choice stands there and whether the
gold does, each from 0 to 1 (the mean over the question's orders)."""
THRESHOLDS = tuple(step / 20 for step in range(20))


@dataclass(frozen=True)
class ShownOrder:
    """The options in one order, as the model was shown them."""

    numbers: tuple[int, ...]
    """Printed number of the option at each place."""
    probabilities: tuple[float, ...]
    """Share of the probability of the option at each place; they sum to 1."""
    chosen: int
    """Printed number of the likeliest option, the first shown of equals."""


@dataclass(frozen=True)
class ScoredOptions:
    """One question whose options were scored."""

    gold: int
    """Printed number of the right option; of several the likeliest, for any one is right."""
    probabilities: Mapping[int, float]
    """Printed number of each option, in the exam's order -> its share of the probability; they sum to 1."""
    chosen: int
    """Printed number of the likeliest option, the first of equals."""
    orders: tuple[ShownOrder, ...]
    """Every order that was shown; empty if only the exam's was."""
    tied: bool
    """Whether more than one option shared the best score."""
    label_mass: float | None
    """Probability that the next token is any of the option numbers; None if no numbers were read."""

    @property
    def confidence(self) -> float:
        """The likeliest option's share of the probability."""
        return max(self.probabilities.values())

    @property
    def right(self) -> bool:
        """Whether the likeliest option is the right one."""
        return self.chosen == self.gold


def scored_options(
    questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]
) -> list[ScoredOptions]:
    """Those of `questions`, in their order, whose prediction has option scores and did not fail.

    Raises `DatasetError` if `key` lacks one of them.
    """
    found = []
    for question in questions:
        prediction = predictions.get(question.key)
        if prediction is not None and prediction.status is not Status.FAILED and prediction.option_scores:
            found.append(_read(prediction, prediction.option_scores, key[question.key]))
    return found


def _read(prediction: Prediction, scores: Mapping[int, float], gold: Gold) -> ScoredOptions:
    best = max(scores.values())
    sharing = sum(score == best for score in scores.values()) if prediction.tied is None else prediction.tied
    rows, numbers = prediction.order_scores or (), tuple(scores)
    rotations = [numbers[turn:] + numbers[:turn] for turn in range(len(rows))]
    return ScoredOptions(
        gold=max((number for number in scores if gold.accepts(number)), key=scores.__getitem__, default=gold.number),
        probabilities=normalise_scores(scores),
        chosen=max(scores, key=scores.__getitem__),
        orders=tuple(map(_shown, prediction.orders or rotations, rows)),
        tied=sharing > 1,
        label_mass=prediction.label_mass,
    )


def _shown(shown: tuple[int, ...], row: Sequence[float]) -> ShownOrder:
    """The order in which these printed numbers were shown; `row` holds their scores."""
    probabilities = normalise_scores(dict(enumerate(row)))
    return ShownOrder(shown, tuple(probabilities.values()), shown[row.index(max(row))])


def reliability_bins(confidences: Sequence[float], right: Sequence[bool]) -> tuple[ReliabilityBin, ...]:
    """Ten bins of equal width over the confidence, the upper edge included; item i of both is question i.

    Guo et al. (2017), "On calibration of modern neural networks".
    """
    edges = [(place + 1) / BINS for place in range(BINS)]
    members: list[list[tuple[float, bool]]] = [[] for _ in edges]
    for confidence, is_right in zip(confidences, right, strict=True):
        members[bisect_left(edges, confidence)].append((confidence, is_right))
    return tuple(_bin(place / BINS, edges[place], inside) for place, inside in enumerate(members))


def expected_calibration_error(bins: Sequence[ReliabilityBin]) -> float:
    """The mean of |accuracy - mean confidence| over the bins, weighted by their questions; at least one question."""
    n = sum(part.n for part in bins)
    return math.fsum(part.n / n * abs((part.accuracy or 0.0) - (part.mean_confidence or 0.0)) for part in bins)


def brier_score(probabilities: Sequence[Mapping[int, float]], golds: Sequence[int]) -> float:
    """The mean over the questions of the sum over the options of (p - [gold])^2; at least one question.

    Item i of both is question i: the probability of each printed number, and the number that is right. Brier (1950),
    "Verification of forecasts expressed in terms of probability": 0 is perfect and 2 the worst.
    """
    losses = [
        math.fsum((p - (number == gold)) ** 2 for number, p in options.items())
        for options, gold in zip(probabilities, golds, strict=True)
    ]
    return math.fsum(losses) / len(losses)


def _bin(low: float, high: float, inside: Sequence[tuple[float, bool]]) -> ReliabilityBin:
    n = len(inside)
    right = sum(is_right for _, is_right in inside)
    return ReliabilityBin(
        low=low,
        high=high,
        n=n,
        mean_confidence=math.fsum(confidence for confidence, _ in inside) / n if n else None,
        accuracy=right / n if n else None,
        accuracy_interval=rate_interval(right, n),
    )


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


def option_score_metrics(
    questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]
) -> OptionScoreMetrics | None:
    """The metrics of those of `questions` whose prediction has option scores; None if none has.

    Raises `DatasetError` if `key` lacks one of them.
    """
    scored = scored_options(questions, key, predictions)
    if not scored:
        return None
    bins = reliability_bins([options.confidence for options in scored], [options.right for options in scored])
    abstention = abstention_points(scored)
    masses = [options.label_mass for options in scored if options.label_mass is not None]
    return OptionScoreMetrics(
        n=len(scored),
        expected_calibration_error=expected_calibration_error(bins),
        brier_score=brier_score([options.probabilities for options in scored], [options.gold for options in scored]),
        reliability=bins,
        label_mass=math.fsum(masses) / len(masses) if masses else None,
        by_shown_position=has_orders(scored),
        positions=position_shares(scored),
        tied=sum(options.tied for options in scored),
        flip_rate=flip_rate(scored),
        abstention=abstention,
        best_threshold=best_threshold(abstention),
    )


def abstention_points(scored: Sequence[ScoredOptions]) -> tuple[AbstentionPoint, ...]:
    """The score under each of `THRESHOLDS`: what the program's `abstain_below` would give; at least one question."""
    ranked = sorted(scored, key=lambda options: options.confidence)
    confidences = [options.confidence for options in ranked]
    right_below = list(accumulate((options.right for options in ranked), initial=0))
    n = len(ranked)
    points = []
    for threshold in THRESHOLDS:
        blank = bisect_left(confidences, threshold)
        right = right_below[-1] - right_below[blank]
        wrong = n - blank - right
        points.append(
            AbstentionPoint(
                threshold=threshold,
                answered_ratio=(n - blank) / n,
                right=right,
                wrong=wrong,
                accuracy=right / (right + wrong) if right + wrong else None,
                exam_score=(right - wrong / 3) / n,
            )
        )
    return tuple(points)


def best_threshold(points: Sequence[AbstentionPoint]) -> float:
    """The threshold of the highest exam score, the lowest one of equals; at least one point.

    Chosen on the questions that it is scored on, so the exam score that it gives is optimistic.
    """
    return max(points, key=lambda point: (3 * point.right - point.wrong, -point.threshold)).threshold
