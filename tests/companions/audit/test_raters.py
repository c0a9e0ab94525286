"""How far raters agree, beside statsmodels on a table made by hand and the formula on paper."""

import pytest
from statsmodels.stats.inter_rater import cohens_kappa

from medexam.companions.audit.agreement import agree


def test_agreement_is_cohens_kappa_with_quadratic_weights() -> None:
    mine = {"q1": 1, "q2": 2, "q3": 3, "q4": 4, "q5": 5, "q6": 5}
    its = {"q1": 1, "q2": 3, "q3": 3, "q4": 5, "q5": 4, "q7": 1}

    (found,) = agree("adequacy", {"a": mine, "b": its})

    table = [[0] * 5 for _ in range(5)]
    for key in ("q1", "q2", "q3", "q4", "q5"):
        table[mine[key] - 1][its[key] - 1] += 1
    assert (found.aspect, found.raters, found.n) == ("adequacy", ("a", "b"), 5)
    assert found.same == pytest.approx(2 / 5)
    assert found.kappa == pytest.approx(cohens_kappa(table, wt="quadratic").kappa)
    # By hand: weighted disagreement 3 observed, 5 x the mean of (i - j)^2 expected.
    expected = sum((a - b) ** 2 for a in (1, 2, 3, 4, 5) for b in (1, 3, 3, 5, 4)) / 5
    assert found.kappa == pytest.approx(1 - 3 / expected)


def test_nothing_in_common_is_no_agreement() -> None:
    (found,) = agree("fluency", {"a": {"q1": 1}, "b": {"q2": 1}})
    assert (found.n, found.same, found.kappa) == (0, None, None)


def test_one_and_the_same_mark_has_no_kappa() -> None:
    (found,) = agree("fluency", {"a": {"q1": 3, "q2": 3}, "b": {"q1": 3, "q2": 3}})
    assert (found.n, found.same, found.kappa) == (2, 1.0, None)


def test_every_two_raters_are_compared() -> None:
    marks = {name: {"q1": 1, "q2": 2} for name in "abc"}
    assert [each.raters for each in agree("adequacy", marks)] == [("a", "b"), ("a", "c"), ("b", "c")]
