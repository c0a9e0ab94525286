"""Scores of the options: calibration, position prior and ties.

In one order the position prior is mixed with what the options say. Over all cyclic orders every option stands once at
every place, so what the options say cancels out and only the position's share is left; over others it does on average.
"""

from collections.abc import Sequence
from math import fsum

import numpy as np
from numpy.typing import NDArray

from medexam.distributions import WILSON
from medexam.measures.evidence.figures import Figures, Rows, rate_of, show_figures
from medexam.predictions.prediction import Prediction, softmax
from medexam.tables import Table, percent

BINS = 10
Order = dict[int, float]
"""Printed number -> score, in the order in which the options were shown."""


def measure(rows: Rows) -> Figures | None:
    """Measure the questions whose options were scored, answered or not; None if there are none.

    The option that is judged is the likeliest one, the first of equals, even where the program abstained. The
    question's confidence is its share of the probability (the softmax of the scores).

    `brier_score`: the mean of the sum over the options of (probability - [right option])^2, from 0 to 2 (Brier 1950).
    `label_mass`: the mean probability that the next token is any of the option numbers; None if no numbers were read.
    `tied`: questions in which several options share the best score. `flip_rate`: of the questions in several orders,
    the share that does not choose the same option in all; None if there are none. `by_shown_position`: whether
    `positions` are places, for every question was shown in several orders.
    """
    scored = [(one, one.option_scores, gold) for one, gold in rows if one.option_scores]
    if not scored:
        return None
    exams: list[Order] = [scores for _, scores, _ in scored]
    orders = [_orders(one) for one, _, _ in scored]
    # Of several right options it is the likeliest, for any one is right.
    rights = [max(filter(gold.accepts, scores), key=scores.__getitem__, default=None) for _, scores, gold in scored]
    shares = [softmax(list(exam.values())) for exam in exams]
    confidences = np.array([*map(max, shares)])
    is_right = np.array([_choose(exam) == right for exam, right in zip(exams, rights, strict=True)])
    distances = [
        fsum((share - (number == right)) ** 2 for number, share in zip(exam, each, strict=True))
        for exam, each, right in zip(exams, shares, rights, strict=True)
    ]
    by_place, several = all(orders), [each for each in orders if each]
    masses = [one.label_mass for one, _, _ in scored if one.label_mass is not None]
    bins = reliability(confidences, is_right)
    return {
        "n": len(scored),
        # Guo et al. (2017), "On calibration of modern neural networks".
        "expected_calibration_error": fsum(
            each["n"] / len(scored) * abs(each["accuracy"] - each["mean_confidence"]) for each in bins if each["n"]
        ),
        "brier_score": fsum(distances) / len(distances),
        "label_mass": fsum(masses) / len(masses) if masses else None,
        "tied": sum((one.tied or list(scores.values()).count(max(scores.values()))) > 1 for one, scores, _ in scored),
        "flip_rate": sum(len(set(map(_choose, each))) > 1 for each in several) / len(several) if several else None,
        "by_shown_position": by_place,
        "positions": positions(orders if by_place else [[exam] for exam in exams], rights, by_place=by_place),
        "reliability": bins,
    }


def _orders(one: Prediction) -> list[Order]:
    """List the scores in each order that was shown; empty if only the exam's was."""
    rows, printed = one.order_scores or (), tuple(one.option_scores or {})
    orders = one.orders or [printed[turn:] + printed[:turn] for turn in range(len(rows))]
    return [dict(zip(*each, strict=True)) for each in zip(orders, rows, strict=True)] if rows else []


def _choose(order: Order) -> int:
    return max(order, key=order.__getitem__)


def reliability(confidences: NDArray[np.float64], right: NDArray[np.bool_]) -> list[Figures]:
    """Build ten bins of equal width over the confidence, the upper edge included: questions and accuracy of each."""
    edges = [(place + 1) / BINS for place in range(BINS)]
    masks = [np.searchsorted(edges, confidences, side="left") == place for place in range(BINS)]
    return [
        {"low": place / BINS, "high": edges[place], "n": (n := int(mask.sum()))}
        | {"mean_confidence": fsum(confidences[mask].tolist()) / n if n else None}
        | rate_of(int(right[mask].sum()), n)
        for place, mask in enumerate(masks)
    ]


def positions(questions: Sequence[Sequence[Order]], rights: Sequence[int | None], *, by_place: bool) -> list[Figures]:
    """Find what each place in the order shown draws, else each printed number, over the questions that have it.

    `mean_probability`: that of its options. `chosen`, `gold`: the shares of the questions whose likeliest option, and
    whose right one, stands there. A question weighs the same however many orders it has.
    """
    parts: dict[int, list[tuple[float, ...]]] = {}
    for orders, right in zip(questions, rights, strict=True):
        columns = list(zip(*(softmax(list(order.values())) for order in orders), strict=True))
        choices, columns_of_numbers = [_choose(order) for order in orders], list(zip(*orders, strict=True))
        for place, (numbers, shares) in enumerate(zip(columns_of_numbers, columns, strict=True), start=1):
            sums = fsum(shares), sum(map(int.__eq__, numbers, choices)), numbers.count(right)
            label = place if by_place else numbers[0]
            parts.setdefault(label, []).append(tuple(value / len(orders) for value in sums))
    names = ("mean_probability", "chosen", "gold")
    return [
        {"position": label, "n": len(part)}
        | {name: fsum(values) / len(part) for name, values in zip(names, zip(*part, strict=True), strict=True)}
        for label, part in sorted(parts.items())
    ]


def tables(figures: Figures) -> list[Table]:
    """Show calibration, and what positions draw."""
    bins = [
        {**part, "range": f"{100 * part['low']:.0f} to {100 * part['high']:.0f}"}
        for part in figures["reliability"]
        if part["n"]
    ]
    columns = {"Confidence": "range", "n": "n", "Mean confidence": "mean_confidence", "Accuracy": "accuracy"}
    caption = (
        f"ECE {percent(figures['expected_calibration_error'])} %, Brier score {figures['brier_score']:.3f} (0 to 2), "
        f"n = {figures['n']}. Confidence: the likeliest option's share of the probability, percent. "
        f"Accuracy: how often that option is right, with a 95 % interval ({WILSON}). Questions with tied options: "
        f"{figures['tied']}."
    )
    if figures["label_mass"] is not None:
        caption += f" Label mass, the probability that an option's number follows: {percent(figures['label_mass'])} %."
    calibration = show_figures("Calibration", bins, columns, caption)

    columns = {"Place shown" if figures["by_shown_position"] else "Number": "position", "n": "n"}
    columns |= {"Mean probability": "mean_probability", "Chosen": "chosen", "Right option": "gold"}
    caption = "Percent of the questions that have the number, in the exam's own order."
    if figures["by_shown_position"]:
        caption = (
            "Percent, averaged over all orders of the options that were shown. Over cyclic orders every option is "
            "once at every place, so its content cancels out."
        )
    if figures["flip_rate"] is not None:
        flip_rate = percent(figures["flip_rate"])
        caption += f" Flip rate, the questions whose choice is not the same in all orders: {flip_rate} %."
    return [calibration, show_figures("Position", figures["positions"], columns, caption)]
