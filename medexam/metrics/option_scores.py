"""From stored option scores to `OptionScoreMetrics`: calibration, position prior, ties and abstention.

Pure functions over the scores as the program left them, so a threshold can be tried on a run without asking the model.
In one order the position prior is mixed with what the options say. Over all cyclic orders every option stands once at
every place, so what the options say cancels out and only the position's share is left; over others it does on average.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
    """The questions whose options were scored, from 0, and all their options, one behind the other."""

    starts: NDArray[np.intp]
    """Of each question, the place of its first option; at the end, the number of all options."""
    numbers: NDArray[np.int64]
    """Printed number of each option, in the exam's order."""
    probabilities: NDArray[np.float64]
    """Each option's share of its question's probability."""
    chosen: NDArray[np.intp]
    """Of each question, the place of the likeliest option, the first of equals."""
    gold: NDArray[np.intp]
    """Of each question, the place of the right option; of several the likeliest, for any one is right. -1: none is."""
    orders: Sequence[tuple[ShownOrder, ...]]
    """Of each question, every order that was shown; empty if only the exam's was."""
    tied: int
    """Questions in which more than one option shared the best score."""
    label_masses: Sequence[float]
    """Probability that the next token is any of the option numbers, of the questions for which numbers were read."""

    @property
    def n(self) -> int:
        """Questions."""
        return len(self.chosen)

    @property
    def confidences(self) -> NDArray[np.float64]:
        """Of each question, the likeliest option's share of the probability."""
        found: NDArray[np.float64] = np.maximum.reduceat(self.probabilities, self.starts[:-1])
        return found

    @property
    def right(self) -> NDArray[np.bool_]:
        """Of each question, whether the likeliest option is the right one."""
        same: NDArray[np.bool_] = self.chosen == self.gold
        return same

    def marked(self, places: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Of each option, whether it stands at one of these places."""
        marks = np.zeros(len(self.numbers), dtype=bool)
        marks[places[places >= 0]] = True
        return marks

    def sums(self, values: Sequence[float]) -> list[float]:
        """Of each question, the sum of the values of its options, rounded once."""
        return _sums(values, self.starts)


def scored_options(
    questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]
) -> ScoredOptions | None:
    """Those of `questions`, in their order, whose prediction has option scores and did not fail; None if none has.

    Raises `DatasetError` if `key` lacks one of them.
    """
    known = (predictions.get(question.key) for question in questions)
    found = [one for one in known if one is not None and one.option_scores and one.status is not Status.FAILED]
    given = [one.option_scores or {} for one in found]
    if not found:
        return None
    sizes = np.array([len(each) for each in given])
    starts = np.concatenate([[0], sizes.cumsum()])
    numbers = np.fromiter(chain.from_iterable(given), np.int64, starts[-1])
    scores = np.fromiter(chain.from_iterable(each.values() for each in given), np.float64, starts[-1])
    best = np.repeat(np.maximum.reduceat(scores, starts[:-1]), sizes)
    # The exponentials of `math`, as in `normalise_scores`: those of numpy may differ in the last digit.
    weights = list(map(math.exp, (scores - best).tolist()))
    golds = [key[one.question] for one in found]
    stated = [one.tied for one in found]
    sharing = np.add.reduceat(scores == best, starts[:-1], dtype=np.int64).tolist()
    return ScoredOptions(
        starts=starts,
        numbers=numbers,
        probabilities=np.array(weights) / np.repeat(_sums(weights, starts), sizes),
        chosen=_first_best(scores, starts),
        gold=_first_best(np.where(_accepted(numbers, sizes, golds), scores, -np.inf), starts),
        orders=[_orders(one, numbers) for one, numbers in zip(found, given, strict=True)],
        tied=sum((one if told is None else told) > 1 for one, told in zip(sharing, stated, strict=True)),
        label_masses=[one.label_mass for one in found if one.label_mass is not None],
    )


def _sums(values: Sequence[float], starts: NDArray[np.intp]) -> list[float]:
    return [math.fsum(values[begin:end]) for begin, end in pairwise(starts.tolist())]


def _accepted(numbers: NDArray[np.int64], sizes: NDArray[np.int64], golds: Sequence[Gold]) -> NDArray[np.bool_]:
    """Of each option, whether its question's gold accepts it."""
    accepted: NDArray[np.bool_] = numbers == np.repeat([gold.number for gold in golds], sizes)
    if any(gold.others for gold in golds):
        whose = np.repeat(np.arange(len(golds)), sizes).tolist()
        more = [number in golds[one].others for one, number in zip(whose, numbers.tolist(), strict=True)]
        accepted |= np.array(more)
    return accepted


def _first_best(scores: NDArray[np.float64], starts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Of each question, the place of its highest score, the first of equals; -1 if all are minus infinity."""
    best = np.maximum.reduceat(scores, starts[:-1])
    sizes = np.diff(starts)
    places = np.flatnonzero((scores == np.repeat(best, sizes)) & np.isfinite(scores))
    whose, first = np.unique(np.repeat(np.arange(len(best)), sizes)[places], return_index=True)
    found = np.full(len(best), -1, dtype=np.intp)
    found[whose] = places[first]
    return found


def _orders(prediction: Prediction, numbers: Mapping[int, float]) -> tuple[ShownOrder, ...]:
    rows = prediction.order_scores
    if not rows:
        return ()
    printed = tuple(numbers)
    rotations = [printed[turn:] + printed[:turn] for turn in range(len(rows))]
    return tuple(map(_shown, prediction.orders or rotations, rows))


def _shown(shown: tuple[int, ...], row: Sequence[float]) -> ShownOrder:
    """The order in which these printed numbers were shown; `row` holds their scores."""
    probabilities = normalise_scores(dict(enumerate(row)))
    return ShownOrder(shown, tuple(probabilities.values()), shown[row.index(max(row))])


def reliability_bins(confidences: ArrayLike, right: ArrayLike) -> tuple[ReliabilityBin, ...]:
    """Ten bins of equal width over the confidence, the upper edge included; item i of both is question i.

    Guo et al. (2017), "On calibration of modern neural networks".
    """
    edges = [(place + 1) / BINS for place in range(BINS)]
    sure, is_right = np.asarray(confidences), np.asarray(right)
    bins = np.searchsorted(edges, sure, side="left")
    members = [bins == place for place in range(BINS)]
    return tuple(
        _bin(place / BINS, edges[place], sure[inside], int(is_right[inside].sum()))
        for place, inside in enumerate(members)
    )


def expected_calibration_error(bins: Sequence[ReliabilityBin]) -> float:
    """The mean of |accuracy - mean confidence| over the bins, weighted by their questions; at least one question."""
    n = sum(part.n for part in bins)
    return math.fsum(part.n / n * abs((part.accuracy or 0.0) - (part.mean_confidence or 0.0)) for part in bins)


def brier_score(scored: ScoredOptions) -> float:
    """The mean over the questions of the sum over the options of (p - [gold])^2.

    Brier (1950), "Verification of forecasts expressed in terms of probability": 0 is perfect and 2 the worst.
    """
    distances = scored.probabilities - scored.marked(scored.gold)
    return math.fsum(scored.sums([distance**2 for distance in distances.tolist()])) / scored.n


def _bin(low: float, high: float, confidences: NDArray[np.float64], right: int) -> ReliabilityBin:
    n = len(confidences)
    return ReliabilityBin(
        low=low,
        high=high,
        n=n,
        mean_confidence=math.fsum(confidences.tolist()) / n if n else None,
        accuracy=right / n if n else None,
        accuracy_interval=rate_interval(right, n),
    )


def has_orders(scored: ScoredOptions) -> bool:
    """Whether every question was shown in several orders."""
    return all(scored.orders)


def position_shares(scored: ScoredOptions) -> tuple[PositionShare, ...]:
    """What each position draws, from the first to the last; by place shown where `has_orders`, else by printed number.

    A question weighs the same however many options, and so orders, it has.
    """
    if has_orders(scored):
        golds = [None if at < 0 else int(scored.numbers[at]) for at in scored.gold.tolist()]
        drawn = [_by_place(*one) for one in zip(scored.orders, golds, strict=True)]
        most = max(map(len, drawn))
        return tuple(
            _share(place + 1, *zip(*(each[place] for each in drawn if place < len(each)), strict=True))
            for place in range(most)
        )
    chosen, gold = scored.marked(scored.chosen), scored.marked(scored.gold)
    standing = {number: scored.numbers == number for number in np.unique(scored.numbers).tolist()}
    return tuple(
        _share(number, *(column[at].tolist() for column in (scored.probabilities, chosen, gold)))
        for number, at in standing.items()
    )


def flip_rate(scored: ScoredOptions) -> float | None:
    """Share of the questions with several orders in which these do not all choose the same option; None without any."""
    ordered = [orders for orders in scored.orders if orders]
    if not ordered:
        return None
    return sum(len({order.chosen for order in orders}) > 1 for orders in ordered) / len(ordered)


def _by_place(orders: Sequence[ShownOrder], gold: int | None) -> list[Drawn]:
    return [
        (
            math.fsum(order.probabilities[place] for order in orders) / len(orders),
            sum(order.numbers[place] == order.chosen for order in orders) / len(orders),
            sum(order.numbers[place] == gold for order in orders) / len(orders),
        )
        for place in range(len(orders[0].numbers))
    ]


def _share(
    position: int, probabilities: Sequence[float], chosen: Sequence[float], gold: Sequence[float]
) -> PositionShare:
    probability, choices, golds = (math.fsum(column) / len(column) for column in (probabilities, chosen, gold))
    return PositionShare(position=position, n=len(gold), mean_probability=probability, chosen=choices, gold=golds)


def option_score_metrics(
    questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]
) -> OptionScoreMetrics | None:
    """The metrics of those of `questions` whose prediction has option scores; None if none has.

    Raises `DatasetError` if `key` lacks one of them.
    """
    scored = scored_options(questions, key, predictions)
    if scored is None:
        return None
    bins = reliability_bins(scored.confidences, scored.right)
    abstention = abstention_points(scored)
    masses = scored.label_masses
    return OptionScoreMetrics(
        n=scored.n,
        expected_calibration_error=expected_calibration_error(bins),
        brier_score=brier_score(scored),
        reliability=bins,
        label_mass=math.fsum(masses) / len(masses) if masses else None,
        by_shown_position=has_orders(scored),
        positions=position_shares(scored),
        tied=scored.tied,
        flip_rate=flip_rate(scored),
        abstention=abstention,
        best_threshold=best_threshold(abstention),
    )


def abstention_points(scored: ScoredOptions) -> tuple[AbstentionPoint, ...]:
    """The score under each of `THRESHOLDS`: what the program's `abstain_below` would give."""
    ranked = np.argsort(scored.confidences)
    blanks = np.searchsorted(scored.confidences[ranked], THRESHOLDS, side="left").tolist()
    right_below = np.concatenate([[0], scored.right[ranked].cumsum()]).tolist()
    n = scored.n
    points = []
    for threshold, blank in zip(THRESHOLDS, blanks, strict=True):
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
