"""Measures against people: coefficients beside pandas, intervals beside scipy's bootstrap and resamples by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa

from medexam_companions.audit import AuditItem, agree, correlate, measure_agreement

MARKS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 4)), min_size=3, max_size=25)


def item(key: str, *, run: str = "one", group: str = "short", **scores: float) -> AuditItem:
    return AuditItem(key, run, group, "Question?", "Reference.", "Reply.", scores)


@pytest.fixture(scope="module")
def sample():
    """Forty marks from 1 to 5 in halves, scores that follow them with noise and ties, and a question for each."""
    generator = np.random.default_rng(4)
    marks = generator.integers(2, 11, 40) / 2
    scores = (marks + 2 * generator.normal(size=40)).round()
    return marks.tolist(), scores.tolist(), [f"q{place}" for place in range(40)]


def test_coefficients_are_those_of_pandas(sample) -> None:
    marks, scores, questions = sample
    frame = pd.DataFrame({"marks": marks, "scores": scores})

    found = correlate(marks, scores, questions)

    assert found["n"] == 40
    assert found["spearman"] == pytest.approx(frame.corr(method="spearman").iloc[0, 1])
    assert found["kendall"] == pytest.approx(frame.corr(method="kendall").iloc[0, 1])


def test_intervals_are_those_of_scipys_bootstrap(sample) -> None:
    marks, scores, questions = sample
    found = correlate(marks, scores, questions)
    for interval, coefficient in (
        (found["spearman_interval"], stats.spearmanr),
        (found["kendall_interval"], stats.kendalltau),
    ):
        expected = stats.bootstrap(
            (marks, scores),
            lambda one, other, of=coefficient: of(one, other).statistic,
            paired=True,
            vectorized=False,
            n_resamples=1_000,
            method="percentile",
            rng=np.random.default_rng(0),
        ).confidence_interval
        assert interval == pytest.approx(tuple(expected), abs=0.04)
    assert correlate(marks, scores, questions) == found


@pytest.mark.parametrize(
    ("first", "second"), [([1, 2], [1, 2]), ([3, 3, 3, 3], [1, 2, 3, 4]), ([1, 2, 3, 4], [0, 0, 0, 0]), ([], [])]
)
def test_few_or_constant_items_have_no_coefficient(first, second) -> None:
    found = correlate(first, second, [str(place) for place in range(len(first))])
    assert (found["n"], found["spearman"], found["kendall"]) == (len(first), None, None)
    assert found["spearman_interval"] is found["kendall_interval"] is None


def test_an_interval_needs_questions_and_resamples_that_vary() -> None:
    one_question = correlate([1, 2, 3, 4], [1, 3, 2, 4], ["q"] * 4)
    assert (one_question["spearman"], one_question["spearman_interval"]) == (pytest.approx(0.8), None)
    # In a third of the resamples the only right answer is missing.
    rare = correlate([1, 2, 3, 4, 5, 1, 2, 3, 4, 5], [0] * 9 + [1], [str(place) for place in range(10)])
    assert rare["spearman"] is not None
    assert (rare["spearman_interval"], rare["kendall_interval"]) == (None, None)


def test_answers_to_one_question_are_drawn_together(sample) -> None:
    marks, scores, questions = sample
    twice = correlate(marks * 2, scores * 2, questions * 2)
    once = correlate(marks, scores, questions)
    assert twice["spearman"] == pytest.approx(once["spearman"])
    assert twice["spearman_interval"] == pytest.approx(once["spearman_interval"])
    apart = correlate(marks * 2, scores * 2, [f"{place}" for place in range(80)])
    assert (
        apart["spearman_interval"][1] - apart["spearman_interval"][0]
        < once["spearman_interval"][1] - once["spearman_interval"][0]
    )


def test_measures_are_compared_over_all_and_by_group_and_run() -> None:
    items = [
        item(f"q{place}", run=run, group=group, bleu=place * sign, **({} if run == "two" else {"meteor": place}))
        for run, sign in (("one", 1), ("two", -1))
        for place, group in enumerate(("short", "short", "short", "list", "list", "list"))
    ]
    bleu, meteor = measure_agreement(items, [1, 2, 3, 4, 5, 5] * 2)
    assert [(each["measure"], each["overall"]["n"]) for each in (bleu, meteor)] == [("bleu", 12), ("meteor", 6)]
    assert {run: found["kendall"] for run, found in bleu["by_run"].items()} == {
        "one": pytest.approx(0.966, abs=1e-3),
        "two": pytest.approx(-0.966, abs=1e-3),
    }
    assert {group: found["n"] for group, found in bleu["by_group"].items()} == {"short": 6, "list": 6}
    assert (meteor["by_run"]["two"]["n"], meteor["by_run"]["two"]["kendall"]) == (0, None)
    assert measure_agreement([], []) == []


def test_agreement_is_cohens_kappa_with_quadratic_weights() -> None:
    mine = {"q1": 1, "q2": 2, "q3": 3, "q4": 4, "q5": 5, "q6": 5}
    its = {"q1": 1, "q2": 3, "q3": 3, "q4": 5, "q5": 4, "q7": 1}
    (found,) = agree({"a": mine, "b": its}, range(1, 6), ordered=True)
    table = [[0] * 5 for _ in range(5)]
    for key in ("q1", "q2", "q3", "q4", "q5"):
        table[mine[key] - 1][its[key] - 1] += 1
    assert (found["raters"], found["n"]) == (("a", "b"), 5)
    assert found["same"] == pytest.approx(2 / 5)
    assert found["kappa"] == pytest.approx(cohens_kappa(table, wt="quadratic").kappa)
    # By hand: weighted disagreement 3 observed, 5 x the mean of (i - j)^2 expected.
    expected = sum((a - b) ** 2 for a in (1, 2, 3, 4, 5) for b in (1, 3, 3, 5, 4)) / 5
    assert found["kappa"] == pytest.approx(1 - 3 / expected)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [({"q1": 1}, {"q2": 1}, (0, None, None)), ({"q1": 3, "q2": 3}, {"q1": 3, "q2": 3}, (2, 1.0, None))],
)
def test_nothing_in_common_and_one_and_the_same_mark_have_no_kappa(first, second, expected) -> None:
    (found,) = agree({"a": first, "b": second}, range(1, 6), ordered=True)
    assert (found["n"], found["same"], found["kappa"]) == expected
