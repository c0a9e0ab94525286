"""Orders of a question's options: position bias, consistency, and what is right in every order."""

from collections.abc import Sequence
from math import fsum

import numpy as np

from medexam.distributions import chi_square_tail, rate_interval
from medexam.measures.evidence.figures import Figures, Rows
from medexam.measures.evidence.votes import majority
from medexam.predictions.prediction import Prediction
from medexam.tables import Table, equals, percent, with_interval


def measure(rows: Rows) -> Figures | None:
    """Measure the questions that were shown in several orders; None if none was.

    `orders`: the most of a question. `answered`: orders of all questions whose answer is legal. `places`: the shares of
    these whose answer (`chosen`), and whose right option (`right`), stand there. `chi_square`, `degrees` and `p`: see
    `homogeneity`. `single_accuracy`: that of one order, averaged over those of a question. `consistent`: the share of
    the questions to which all orders give the same legal answer. `right_in_all`, `right_in_any`: the share that is
    answered rightly in every order, and in at least one.
    """
    cases = [(one.orders, _answers(one), gold) for one, gold in rows if one.orders]
    if not cases:
        return None
    rights = [[gold.accepts(answer) for answer in answers] for _, answers, gold in cases]
    # Any of several right options is right, so a right answer stands where the right option does.
    clusters = [
        [
            (order.index(answer), order.index(answer if gold.accepts(answer) else gold.number))
            for order, answer in zip(orders, answers, strict=True)
            if answer is not None
        ]
        for orders, answers, gold in cases
    ]
    n, in_all = len(cases), sum(map(all, rights))
    pairs = np.array([pair for cluster in clusters for pair in cluster], dtype=int).reshape(-1, 2)
    most = max(len(orders[0]) for orders, _, _ in cases)
    choice_shares, gold_shares = (np.bincount(column, minlength=most) / max(1, len(pairs)) for column in pairs.T)
    shares = zip(choice_shares.tolist(), gold_shares.tolist(), strict=True)
    statistic, degrees, p = homogeneity(clusters)
    return {
        "n": n,
        "orders": max(len(orders) for orders, _, _ in cases),
        "answered": len(pairs),
        "places": [
            {"place": place, "chosen": choice_share, "right": gold_share}
            for place, (choice_share, gold_share) in enumerate(shares, start=1)
        ],
        "chi_square": statistic,
        "degrees": degrees,
        "p": p,
        "single_accuracy": fsum(sum(each) / len(each) for each in rights) / n,
        "consistent": sum(len(set(answers)) == 1 and answers[0] is not None for _, answers, _ in cases) / n,
        "right_in_all": in_all / n,
        "right_in_all_interval": list(rate_interval(in_all, n) or ()),
        "right_in_any": sum(map(any, rights)) / n,
    }


def _answers(one: Prediction) -> list[int | None]:
    """Find the answer of each order: the likeliest option, or the commonest of its votes."""
    orders, votes = one.orders or (), one.votes or ()
    if one.order_scores is not None:
        return [order[row.index(max(row))] for order, row in zip(orders, one.order_scores, strict=True)]
    each = len(votes) // len(orders)
    return [majority(votes[turn * each : (turn + 1) * each]) for turn in range(len(orders))]


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


def tables(figures: Figures) -> list[Table]:
    """Show how often the option in each place is chosen."""
    rows = tuple((str(each["place"]), percent(each["chosen"]), percent(each["right"])) for each in figures["places"])
    bias = "Every legal answer is right, so nothing shows a position bias."
    if figures["p"] is not None:
        bias = (
            f"Position bias: chi-square {figures['chi_square']:.2f}, {figures['degrees']} degrees of freedom, "
            f"p {equals(figures['p'])} (Stuart and Maxwell, questions as clusters)."
        )
    every = with_interval(percent(figures["right_in_all"]), figures["right_in_all_interval"])
    caption = (
        f"Percent of {figures['answered']:,} orders with a legal answer, of n = {figures['n']:,} questions in up to "
        f"{figures['orders']} orders each. {bias} One order alone is right on {percent(figures['single_accuracy'])} % "
        f"of the questions on average, any order on {percent(figures['right_in_any'])} %, every order on {every} %. "
        f"All orders give the same answer to {percent(figures['consistent'])} %."
    )
    return [Table("By place in the order", ("Place", "Chosen", "Right option"), rows, caption=caption)]
