"""From stored option scores to `OptionScoreMetrics`: calibration, position prior, ties and abstention.

Pure functions over the scores as the program left them, so a threshold can be tried on a run without asking the model.
In one order the position prior is mixed with what the options say. Over all cyclic orders every option stands once at
every place, so what the options say cancels out and only the position's share is left; over others it does on average.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medexam.distributions import rate_interval
from medexam.predictions.evidence.kind import Figures
from medexam.questions import Gold

BINS = 10
Drawn = tuple[float, float, float]
"""What one question's options at one position get: the probability, whether the choice stands there and whether the
gold does, each from 0 to 1 (the mean over the question's orders)."""
THRESHOLDS = tuple(step / 20 for step in range(20))


class ReliabilityBin(Figures):
    """The questions whose confidence lies above `low` and not above `high`."""

    low: float
    high: float
    n: int
    mean_confidence: float | None
    """None if `n` is 0."""
    accuracy: float | None
    """Share of the questions whose likeliest option is right; None if `n` is 0."""
    accuracy_interval: tuple[float, float] | None
    """Wilson's 95 % interval of `accuracy`; None if `n` is 0."""


class PositionShare(Figures):
    """What one position draws, over the questions that have it."""

    position: int
    """The printed number, or the place in the order shown, from 1; see `OptionScoreMetrics.by_shown_position`."""
    n: int
    """Questions that have this position."""
    mean_probability: float
    """Share of the probability that its options get."""
    chosen: float
    """Share of the questions (of their orders, where several were shown) whose likeliest option stands there."""
    gold: float
    """Share of the questions (of their orders, where several were shown) whose right option stands there."""


class AbstentionPoint(Figures):
    """How the run would score if it left blank every question whose confidence is below `threshold`."""

    threshold: float
    answered_ratio: float
    """Share of the questions that are answered."""
    right: int
    wrong: int
    accuracy: float | None
    """`right / (right + wrong)`; None if nothing is answered."""
    exam_score: float
    """`(right - wrong / 3) / n`: an unanswered question counts 0. From -1/3 to 1."""


class OptionScoreMetrics(Figures):
    """What the stored option scores tell, over the questions whose prediction has them and did not fail.

    The option that is judged is the likeliest one, the first of equals, even where the program abstained. Its share of
    the probability (the softmax of the scores) is the question's confidence.
    """

    n: int
    """Questions with option scores, answered or not."""
    expected_calibration_error: float
    """Mean distance between accuracy and mean confidence over the bins of `reliability`, weighted by their questions
    (Guo et al. 2017, "On calibration of modern neural networks")."""
    brier_score: float
    """Mean over the questions of the sum over the options of (probability - [right option])^2, from 0 to 2 (Brier
    1950, "Verification of forecasts expressed in terms of probability")."""
    reliability: tuple[ReliabilityBin, ...]
    """Ten bins of equal width, from 0 to 1."""
    label_mass: float | None
    """Mean probability that the next token is any of the option numbers; None if no numbers were read."""
    by_shown_position: bool
    """Whether `positions` are places in the order shown, averaged over all orders, so that what the options say
    cancels out. Otherwise they are the printed numbers, in the one order of the exam."""
    positions: tuple[PositionShare, ...]
    """From the first position to the last."""
    tied: int
    """Questions in which more than one option shared the best score."""
    flip_rate: float | None
    """Share of the questions that were shown in several orders in which not all orders choose the same option; None
    where only the exam's order was shown."""
    abstention: tuple[AbstentionPoint, ...]
    """Thresholds 0.00, 0.05, ... 0.95."""
    best_threshold: float
    """The threshold of the highest exam score, the lowest one of equals. It is chosen on the questions that it is
    scored on, so its exam score is optimistic: choose it on other questions before it is compared with anything."""


def normalise_scores(scores: Mapping[int, float]) -> dict[int, float]:
    """Turn log scores into probabilities that sum to 1 (the softmax)."""
    best = max(scores.values())
    weights = {number: math.exp(score - best) for number, score in scores.items()}
    total = math.fsum(weights.values())
    return {number: weight / total for number, weight in weights.items()}


@dataclass(frozen=True)
class ShownOrder:
    """The options in one order, as the model was shown them."""

    numbers: tuple[int, ...]
    """Printed number of the option at each place."""
    probabilities: tuple[float, ...]
    """Share of the probability of the option at each place; they sum to 1."""
    choice: int
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
    choices: NDArray[np.intp]
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
        return len(self.choices)

    @property
    def confidences(self) -> NDArray[np.float64]:
        """Of each question, the likeliest option's share of the probability."""
        shares: NDArray[np.float64] = np.maximum.reduceat(self.probabilities, self.starts[:-1])
        return shares

    @property
    def right(self) -> NDArray[np.bool_]:
        """Of each question, whether the likeliest option is the right one."""
        matches: NDArray[np.bool_] = self.choices == self.gold
        return matches

    def marked(self, places: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return for each option whether it stands at one of these places."""
        marks = np.zeros(len(self.numbers), dtype=bool)
        marks[places[places >= 0]] = True
        return marks

    def sums(self, values: Sequence[float]) -> list[float]:
        """Sum the values of each question's options, rounded once."""
        return _sums(values, self.starts)


def scored_options(answers: Sequence[tuple[Any, Gold]]) -> ScoredOptions:
    """Put the options of all questions one behind the other; each prediction has option scores."""
    scored_predictions = [prediction for prediction, _ in answers]
    option_scores = [prediction.option_scores or {} for prediction in scored_predictions]
    sizes = np.array([len(row) for row in option_scores])
    starts = np.concatenate([[0], sizes.cumsum()])
    numbers = np.fromiter(chain.from_iterable(option_scores), np.int64, starts[-1])
    scores = np.fromiter(chain.from_iterable(row.values() for row in option_scores), np.float64, starts[-1])
    best = np.repeat(np.maximum.reduceat(scores, starts[:-1]), sizes)
    # The exponentials of `math`, as in `normalise_scores`: those of numpy may differ in the last digit.
    weights = list(map(math.exp, (scores - best).tolist()))
    golds = [gold for _, gold in answers]
    stored_ties = [prediction.tied for prediction in scored_predictions]
    tie_counts = np.add.reduceat(scores == best, starts[:-1], dtype=np.int64).tolist()
    return ScoredOptions(
        starts=starts,
        numbers=numbers,
        probabilities=np.array(weights) / np.repeat(_sums(weights, starts), sizes),
        choices=_first_best(scores, starts),
        gold=_first_best(np.where(_accepted(numbers, sizes, golds), scores, -np.inf), starts),
        orders=[
            _orders(prediction, numbers) for prediction, numbers in zip(scored_predictions, option_scores, strict=True)
        ],
        tied=sum((count if ties is None else ties) > 1 for count, ties in zip(tie_counts, stored_ties, strict=True)),
        label_masses=[prediction.label_mass for prediction in scored_predictions if prediction.label_mass is not None],
    )


def _sums(values: Sequence[float], starts: NDArray[np.intp]) -> list[float]:
    return [math.fsum(values[begin:end]) for begin, end in pairwise(starts.tolist())]


def _accepted(numbers: NDArray[np.int64], sizes: NDArray[np.int64], golds: Sequence[Gold]) -> NDArray[np.bool_]:
    """Return for each option whether its question's gold accepts it."""
    accepted: NDArray[np.bool_] = numbers == np.repeat([gold.number for gold in golds], sizes)
    if any(gold.others for gold in golds):
        owners = np.repeat(np.arange(len(golds)), sizes).tolist()
        alternatives = [number in golds[owner].others for owner, number in zip(owners, numbers.tolist(), strict=True)]
        accepted |= np.array(alternatives)
    return accepted


def _first_best(scores: NDArray[np.float64], starts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Find the place of each question's highest score, the first of equals; -1 if all are minus infinity."""
    best = np.maximum.reduceat(scores, starts[:-1])
    sizes = np.diff(starts)
    places = np.flatnonzero((scores == np.repeat(best, sizes)) & np.isfinite(scores))
    owners, first = np.unique(np.repeat(np.arange(len(best)), sizes)[places], return_index=True)
    best_places = np.full(len(best), -1, dtype=np.intp)
    best_places[owners] = places[first]
    return best_places


def _orders(prediction: Any, numbers: Mapping[int, float]) -> tuple[ShownOrder, ...]:
    rows = prediction.order_scores
    if not rows:
        return ()
    printed = tuple(numbers)
    rotations = [printed[turn:] + printed[:turn] for turn in range(len(rows))]
    return tuple(map(_shown, prediction.orders or rotations, rows))


def _shown(numbers: tuple[int, ...], row: Sequence[float]) -> ShownOrder:
    """Build the order in which these printed numbers were shown; `row` holds their scores."""
    probabilities = normalise_scores(dict(enumerate(row)))
    return ShownOrder(numbers, tuple(probabilities.values()), numbers[row.index(max(row))])


def reliability_bins(confidences: ArrayLike, right: ArrayLike) -> tuple[ReliabilityBin, ...]:
    """Build ten bins of equal width over the confidence, the upper edge included; item i of both is question i.

    Guo et al. (2017), "On calibration of modern neural networks".
    """
    edges = [(place + 1) / BINS for place in range(BINS)]
    confidence, is_right = np.asarray(confidences), np.asarray(right)
    bins = np.searchsorted(edges, confidence, side="left")
    members = [bins == place for place in range(BINS)]
    return tuple(
        _bin(place / BINS, edges[place], confidence[inside], int(is_right[inside].sum()))
        for place, inside in enumerate(members)
    )


def expected_calibration_error(bins: Sequence[ReliabilityBin]) -> float:
    """Average |accuracy - mean confidence| over the bins, weighted by their questions; at least one question."""
    n = sum(part.n for part in bins)
    return math.fsum(part.n / n * abs((part.accuracy or 0.0) - (part.mean_confidence or 0.0)) for part in bins)


def brier_score(scored: ScoredOptions) -> float:
    """Average over the questions the sum over the options of (p - [gold])^2.

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
    """Return whether every question was shown in several orders."""
    return all(scored.orders)


def position_shares(scored: ScoredOptions) -> tuple[PositionShare, ...]:
    """Find what each position draws, from first to last; by place shown where `has_orders`, else by printed number.

    A question weighs the same however many options, and so orders, it has.
    """
    if has_orders(scored):
        golds = [None if gold_place < 0 else int(scored.numbers[gold_place]) for gold_place in scored.gold.tolist()]
        by_question = [_by_place(*pair) for pair in zip(scored.orders, golds, strict=True)]
        most = max(map(len, by_question))
        return tuple(
            _share(place + 1, *zip(*(shares[place] for shares in by_question if place < len(shares)), strict=True))
            for place in range(most)
        )
    choice_marks, gold_marks = scored.marked(scored.choices), scored.marked(scored.gold)
    masks = {number: scored.numbers == number for number in np.unique(scored.numbers).tolist()}
    return tuple(
        _share(number, *(column[mask].tolist() for column in (scored.probabilities, choice_marks, gold_marks)))
        for number, mask in masks.items()
    )


def flip_rate(scored: ScoredOptions) -> float | None:
    """Compute the share of questions with several orders that do not all choose the same option; None without any."""
    ordered = [orders for orders in scored.orders if orders]
    if not ordered:
        return None
    return sum(len({order.choice for order in orders}) > 1 for orders in ordered) / len(ordered)


def _by_place(orders: Sequence[ShownOrder], gold: int | None) -> list[Drawn]:
    return [
        (
            math.fsum(order.probabilities[place] for order in orders) / len(orders),
            sum(order.numbers[place] == order.choice for order in orders) / len(orders),
            sum(order.numbers[place] == gold for order in orders) / len(orders),
        )
        for place in range(len(orders[0].numbers))
    ]


def _share(
    position: int, probabilities: Sequence[float], choices: Sequence[float], gold: Sequence[float]
) -> PositionShare:
    probability, choice_share, gold_share = (
        math.fsum(column) / len(column) for column in (probabilities, choices, gold)
    )
    return PositionShare(
        position=position, n=len(gold), mean_probability=probability, chosen=choice_share, gold=gold_share
    )


def option_score_metrics(answers: Sequence[tuple[Any, Gold]]) -> OptionScoreMetrics | None:
    """Compute the metrics of those answers, each with its gold, that hold option scores; None if none does."""
    scored_answers = [(prediction, gold) for prediction, gold in answers if prediction.option_scores]
    if not scored_answers:
        return None
    scored = scored_options(scored_answers)
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
    """Find the score under each of `THRESHOLDS`: what the program's `abstain_below` would give."""
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
    """Find the threshold of the highest exam score, the lowest one of equals; at least one point.

    Chosen on the questions that it is scored on, so the exam score that it gives is optimistic.
    """
    return max(points, key=lambda point: (3 * point.right - point.wrong, -point.threshold)).threshold
