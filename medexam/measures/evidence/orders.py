"""Orders of a question's options: position bias, consistency, and what is right in every order."""

from collections.abc import Sequence
from math import fsum

import numpy as np

from medexam.distributions import chi_square_tail
from medexam.measures.evidence.figures import Figures, Rows, rate_of, show_figure, show_figures
from medexam.measures.evidence.votes import majority
from medexam.predictions.prediction import Prediction
from medexam.tables import Table, equals, percent


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
    n, most = len(cases), max(len(orders[0]) for orders, _, _ in cases)
    rights = [[gold.accepts(answer) for answer in answers] for _, answers, gold in cases]
    # Of each question and place: how often the answer stands there, and how often the right option.
    stands = np.zeros((2, n, most))
    for case, (orders, answers, gold) in enumerate(cases):
        for order, answer in zip(orders, answers, strict=True):
            if answer is not None:
                # Any of several right options is right, so a right answer stands where the right option does.
                right = answer if gold.accepts(answer) else gold.number
                stands[0, case, order.index(answer)] += 1
                stands[1, case, order.index(right)] += 1
    answered = int(stands[0].sum())
    shares = (stands.sum(axis=1) / max(1, answered)).T.tolist()
    return {
        "n": n,
        "orders": max(len(orders) for orders, _, _ in cases),
        "answered": answered,
        "places": [{"place": place, "chosen": each[0], "right": each[1]} for place, each in enumerate(shares, start=1)],
        **homogeneity(stands[0] - stands[1]),
        "single_accuracy": fsum(sum(each) / len(each) for each in rights) / n,
        "consistent": sum(len(set(answers)) == 1 and answers[0] is not None for _, answers, _ in cases) / n,
        **rate_of(sum(map(all, rights)), n, "right_in_all"),
        "right_in_any": sum(map(any, rights)) / n,
    }


def _answers(one: Prediction) -> Sequence[int | None]:
    """Find the answer of each order: the likeliest option, or the commonest of its votes."""
    orders, votes = one.orders or (), one.votes or ()
    if one.order_scores is not None:
        return [order[row.index(max(row))] for order, row in zip(orders, one.order_scores, strict=True)]
    each = len(votes) // len(orders)
    return [majority(votes[turn * each : (turn + 1) * each]) for turn in range(len(orders))]


def homogeneity(differences: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> Figures:
    """Test whether answers and right options stand in each place equally often: chi-square, degrees of freedom and p.

    Row i holds the first minus the second of question i by place, over its orders, which depend on each other. With one
    order a question it is Stuart's and Maxwell's test of marginal homogeneity (Stuart 1955; Maxwell 1970). The first
    and third are None if nothing differs.
    """
    covariance = differences.T @ differences
    degrees = int(np.linalg.matrix_rank(covariance))
    if not degrees:
        return {"chi_square": None, "degrees": 0, "p": None}
    total = differences.sum(axis=0)
    statistic = float(total @ np.linalg.pinv(covariance, hermitian=True) @ total)
    return {"chi_square": statistic, "degrees": degrees, "p": chi_square_tail(statistic, degrees)}


def tables(figures: Figures) -> list[Table]:
    """Show how often the option in each place is chosen."""
    bias = "Every legal answer is right, so nothing shows a position bias."
    if figures["p"] is not None:
        bias = (
            f"Position bias: chi-square {figures['chi_square']:.2f}, {figures['degrees']} degrees of freedom, "
            f"p {equals(figures['p'])} (Stuart and Maxwell, questions as clusters)."
        )
    caption = (
        f"Percent of {figures['answered']:,} orders with a legal answer, of n = {figures['n']:,} questions in up to "
        f"{figures['orders']} orders each. {bias} One order alone is right on {percent(figures['single_accuracy'])} % "
        f"of the questions on average, any order on {percent(figures['right_in_any'])} %, every order on "
        f"{show_figure(figures, 'right_in_all')} %. All orders give the same answer to "
        f"{percent(figures['consistent'])} %."
    )
    columns = {"Place": "place", "Chosen": "chosen", "Right option": "right"}
    return [show_figures("By place in the order", figures["places"], columns, caption)]
