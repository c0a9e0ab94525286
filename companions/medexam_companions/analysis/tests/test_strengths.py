"""Strengths against statsmodels' logistic regression, and how often simultaneous intervals are wrong."""

import numpy as np
import pytest
import statsmodels.api as sm

from medexam_companions.analysis import compare_strengths


def drawn(chances: list[float], questions: int, seed: int) -> np.ndarray:
    """Right and wrong answers of runs: a question's difficulty is the same for all."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(0, 1, questions)
    return (difficulty + rng.normal(0, 1, (len(chances), questions)) < np.array(chances)[:, None]).astype(float)


def known_strengths(wins: np.ndarray) -> np.ndarray:
    """The same model as a regression without intercept; the mean of its coefficients is set to 0."""
    runs = len(wins)
    pairs = [(one, other) for one in range(runs) for other in range(one + 1, runs)]
    design = np.zeros((len(pairs), runs))
    for row, (one, other) in enumerate(pairs):
        design[row, one], design[row, other] = 1, -1
    counts = np.array([[wins[one, other], wins[other, one]] for one, other in pairs])
    fitted = sm.GLM(counts, design[:, 1:], family=sm.families.Binomial()).fit(tol=1e-14, maxiter=200).params
    whole = np.concatenate([[0.0], fitted])
    return whole - whole.mean()


@pytest.mark.parametrize("seed", range(3))
def test_strengths_are_those_of_statsmodels(seed) -> None:
    right = drawn([0.0, 0.3, -0.5, 1.0, 0.1], 300, seed)
    wins = (right[:, None] > right[None]).sum(axis=2).astype(float)
    # Half a win that every run is given against every other.
    known = known_strengths(wins + 0.5)
    found = compare_strengths(right, ["one"] * 300)
    assert [each["strength"] for each in found] == pytest.approx(list(known), abs=1e-9)
    assert [each["wins"] for each in found] == wins.sum(axis=1).tolist()
    assert [each["losses"] for each in found] == wins.sum(axis=0).tolist()


def test_a_run_that_never_loses_has_a_strength() -> None:
    right = np.array([[1.0] * 60, [1.0, 0.0] * 30, [0.0] * 60])
    first, second, third = compare_strengths(right, ["one"] * 60)
    assert first["strength"] > second["strength"] > third["strength"]
    assert (first["not_separable"], first["losses"], third["wins"]) == ([], 0, 0)


def test_runs_that_answer_alike_are_not_separable() -> None:
    right = np.vstack([drawn([0.0], 100, 1)] * 2 + [drawn([3.0], 100, 1)])
    first, second, third = compare_strengths(right, ["one"] * 100)
    assert (first["not_separable"], second["not_separable"], third["not_separable"]) == ([1], [0], [])


def test_five_exams_are_taken_as_independent() -> None:
    # Each exam holds the same answers, so that exams do not differ, and questions within them do.
    right = np.repeat(drawn([0.0, 0.5, 1.0], 20, 2), 5, axis=1)
    for exams, differs in ((5, False), (4, True)):
        low, high = compare_strengths(right[:, : 20 * exams], [str(at % exams) for at in range(20 * exams)])[0][
            "interval"
        ]
        assert (high - low > 1e-6) == differs
