"""Scores of the options: calibration, position prior, ties and abstention.

In one order the position prior is mixed with what the options say. Over all cyclic orders every option stands once at
every place, so what the options say cancels out and only the position's share is left; over others it does on average.
"""

from collections.abc import Sequence
from math import fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from medexam.distributions import WILSON
from medexam.measures.evidence.figures import Figures, Rows, accuracy_of, show_accuracy
from medexam.predictions.prediction import Prediction, softmax
from medexam.tables import Table, percent

BINS = 10
THRESHOLDS = tuple(step / 20 for step in range(20))


class Order(NamedTuple):
    """A question's options as they were shown once."""

    numbers: Sequence[int]
    """As printed, in the order shown."""
    shares: Sequence[float]
    """Of the probability; they sum to 1."""
    choice: int
    """The number of the likeliest option, the first shown of equals."""


def measure(rows: Rows, cancelling: float | None = None) -> Figures | None:
    """Measure the questions whose options were scored, answered or not; None if there are none.

    The option that is judged is the likeliest one, the first of equals, even where the program abstained. The
    question's confidence is its share of the probability (the softmax of the scores).

    `brier_score`: the mean of the sum over the options of (probability - [right option])^2, from 0 to 2 (Brier 1950).
    `label_mass`: the mean probability that the next token is any of the option numbers; None if no numbers were read.
    `tied`: questions in which several options share the best score. `flip_rate`: of the questions in several orders,
    the share that does not choose the same option in all; None if there are none. `by_shown_position`: whether
    `positions` are places, for every question was shown in several orders. `best_threshold`: that of the highest exam
    score, the lowest of equals; None unless a data set declares how many wrong answers are `cancelling` a right one.
    """
    scored = [(one, one.option_scores, gold) for one, gold in rows if one.option_scores]
    if not scored:
        return None
    exams = [_order(tuple(scores), tuple(scores.values())) for _, scores, _ in scored]
    orders = [[_order(*order) for order in _orders(one)] for one, _, _ in scored]
    # Of several right options it is the likeliest, for any one is right.
    rights = [max(filter(gold.accepts, scores), key=scores.__getitem__, default=None) for _, scores, gold in scored]
    confidences = np.array([max(exam.shares) for exam in exams])
    is_right = np.array([exam.choice == right for exam, right in zip(exams, rights, strict=True)])
    distances = [
        fsum((share - (number == right)) ** 2 for number, share in zip(exam.numbers, exam.shares, strict=True))
        for exam, right in zip(exams, rights, strict=True)
    ]
    by_place = all(orders)
    several = [each for each in orders if each]
    masses = [one.label_mass for one, _, _ in scored if one.label_mass is not None]
    bins, points = reliability(confidences, is_right), abstention(confidences, is_right, cancelling)
    best = max(points, key=lambda each: (round(each.get("exam_score", 0.0), 12), -each["threshold"]))
    return {
        "n": len(scored),
        "expected_calibration_error": expected_calibration_error(bins),
        "brier_score": fsum(distances) / len(distances),
        "label_mass": fsum(masses) / len(masses) if masses else None,
        "tied": sum((one.tied or list(scores.values()).count(max(scores.values()))) > 1 for one, scores, _ in scored),
        "flip_rate": sum(len({order.choice for order in each}) > 1 for each in several) / len(several)
        if several
        else None,
        "by_shown_position": by_place,
        "positions": positions(orders if by_place else [[exam] for exam in exams], rights, by_place=by_place),
        "reliability": bins,
        "abstention": points,
        "best_threshold": best["threshold"] if cancelling is not None else None,
    }


def _orders(one: Prediction) -> list[tuple[tuple[int, ...], tuple[float, ...]]]:
    """Pair the numbers in each order that was shown with their scores; empty if only the exam's was."""
    rows, printed = one.order_scores or (), tuple(one.option_scores or {})
    rotations = [printed[turn:] + printed[:turn] for turn in range(len(rows))]
    return list(zip(one.orders or rotations, rows, strict=True)) if rows else []


def _order(numbers: Sequence[int], scores: Sequence[float]) -> Order:
    return Order(numbers, softmax(scores), numbers[scores.index(max(scores))])


def reliability(confidences: NDArray[np.float64], right: NDArray[np.bool_]) -> list[Figures]:
    """Build ten bins of equal width over the confidence, the upper edge included: questions and accuracy of each."""
    edges = [(place + 1) / BINS for place in range(BINS)]
    bins = np.searchsorted(edges, confidences, side="left")
    return [
        {
            "low": place / BINS,
            "high": edges[place],
            "mean_confidence": fsum(inside) / len(inside) if (inside := confidences[bins == place].tolist()) else None,
            **accuracy_of(int(right[bins == place].sum()), len(inside)),
        }
        for place in range(BINS)
    ]


def expected_calibration_error(bins: Sequence[Figures]) -> float:
    """Average the distance of accuracy and mean confidence over the bins, weighted by their questions.

    Guo et al. (2017), "On calibration of modern neural networks".
    """
    n = sum(each["n"] for each in bins)
    return fsum(each["n"] / n * abs(each["accuracy"] - each["mean_confidence"]) for each in bins if each["n"])


def positions(questions: Sequence[Sequence[Order]], rights: Sequence[int | None], *, by_place: bool) -> list[Figures]:
    """Find what each place in the order shown draws, else each printed number, over the questions that have it.

    `mean_probability`: that of its options. `chosen`, `gold`: the shares of the questions whose likeliest option, and
    whose right one, stands there. A question weighs the same however many orders it has.
    """
    labels: list[int] = []
    names = ("mean_probability", "chosen", "gold")
    columns: dict[str, list[float]] = {name: [] for name in names}
    for orders, right in zip(questions, rights, strict=True):
        printed = orders[0].numbers
        choice_counts, gold_counts = [0] * len(printed), [0] * len(printed)
        for order in orders:
            choice_counts[order.numbers.index(order.choice)] += 1
            if right is not None:
                gold_counts[order.numbers.index(right)] += 1
        labels += range(1, len(printed) + 1) if by_place else printed
        sums = map(fsum, zip(*(order.shares for order in orders), strict=True))
        for name, values in zip(names, (sums, choice_counts, gold_counts), strict=True):
            columns[name] += [value / len(orders) for value in values]
    all_labels, arrays = np.array(labels), {name: np.array(column) for name, column in columns.items()}
    masks = {position: all_labels == position for position in sorted(set(labels))}
    return [
        {"position": position, "n": (n := int(mask.sum()))}
        | {name: fsum(values[mask].tolist()) / n for name, values in arrays.items()}
        for position, mask in masks.items()
    ]


def abstention(confidences: NDArray[np.float64], right: NDArray[np.bool_], cancelling: float | None) -> list[Figures]:
    """Find how the run would score if it left blank every question whose confidence is below each of `THRESHOLDS`."""
    points = []
    for threshold in THRESHOLDS:
        answered = confidences >= threshold
        n, n_right = int(answered.sum()), int(right[answered].sum())
        point: Figures = {
            "threshold": threshold,
            "answered_ratio": n / len(right),
            "right": n_right,
            "wrong": n - n_right,
            "accuracy": n_right / n if n else None,
        }
        if cancelling is not None:
            point["exam_score"] = (n_right - (n - n_right) / cancelling) / len(right)
        points.append(point)
    return points


def tables(figures: Figures) -> list[Table]:
    """Show calibration, what positions draw, and abstention."""
    return [_calibration(figures), _positions(figures), _abstention(figures)]


def _calibration(figures: Figures) -> Table:
    rows = tuple(
        (
            f"{100 * part['low']:.0f} to {100 * part['high']:.0f}",
            str(part["n"]),
            percent(part["mean_confidence"]),
            show_accuracy(part),
        )
        for part in figures["reliability"]
        if part["n"]
    )
    caption = (
        f"ECE {percent(figures['expected_calibration_error'])} %, Brier score {figures['brier_score']:.3f} (0 to 2), "
        f"n = {figures['n']}. Confidence: the likeliest option's share of the probability, percent. "
        f"Accuracy: how often that option is right, with a 95 % interval ({WILSON}). Questions with tied options: "
        f"{figures['tied']}."
    )
    if figures["label_mass"] is not None:
        caption += f" Label mass, the probability that an option's number follows: {percent(figures['label_mass'])} %."
    return Table("Calibration", ("Confidence", "n", "Mean confidence", "Accuracy"), rows, caption=caption)


def _positions(figures: Figures) -> Table:
    names = ("mean_probability", "chosen", "gold")
    rows = tuple(
        (str(part["position"]), str(part["n"]), *(percent(part[name]) for name in names))
        for part in figures["positions"]
    )
    caption = "Percent of the questions that have the number, in the exam's own order."
    if figures["by_shown_position"]:
        caption = (
            "Percent, averaged over all orders of the options that were shown. Over cyclic orders every option is "
            "once at every place, so its content cancels out."
        )
    if figures["flip_rate"] is not None:
        flip_rate = percent(figures["flip_rate"])
        caption += f" Flip rate, the questions whose choice is not the same in all orders: {flip_rate} %."
    header = "Place shown" if figures["by_shown_position"] else "Number"
    return Table("Position", (header, "n", "Mean probability", "Chosen", "Right option"), rows, caption=caption)


def _abstention(figures: Figures) -> Table:
    points = figures["abstention"]
    columns = {
        "Blank below": [f"{100 * point['threshold']:.0f}" for point in points],
        "Answered": [percent(point["answered_ratio"]) for point in points],
        "Right": [str(point["right"]) for point in points],
        "Wrong": [str(point["wrong"]) for point in points],
        "Accuracy": [percent(point["accuracy"]) for point in points],
    }
    caption = (
        "Percent. What the run would score if it left blank the questions of less confidence; accuracy is that of the "
        "answered ones."
    )
    best: frozenset[tuple[int, int]] = frozenset()
    if figures["best_threshold"] is not None:
        best = frozenset({(THRESHOLDS.index(figures["best_threshold"]), len(columns))})
        columns["Exam score"] = [percent(point["exam_score"]) for point in points]
        caption += " The best exam score is stressed; chosen on these same questions, it is optimistic."
    return Table("Abstention", tuple(columns), tuple(zip(*columns.values(), strict=True)), best, caption=caption)
