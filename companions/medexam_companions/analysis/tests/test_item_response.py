"""The two-parameter model against a direct maximisation by scipy, numerical second derivatives, and simulated exams."""

import numpy as np
import pytest
from scipy.optimize import minimize

from medexam_companions.analysis import fit_items, judge_items, strong_runs

PRIOR_MEAN, PRIOR_SD = np.array([1.0, 0.0]), np.array([1.0, 2.0])
"""Of discrimination and intercept."""
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(100)


def simulate(
    runs: int, slopes: np.ndarray, intercepts: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Right and wrong answers, and the abilities that they come from."""
    rng = np.random.default_rng(seed)
    abilities = rng.normal(size=runs)
    chances = 1 / (1 + np.exp(-(np.outer(abilities, slopes) + intercepts)))
    return (rng.random(chances.shape) < chances).astype(float), abilities, rng


def unlikely(parameters: np.ndarray, right: np.ndarray) -> float:
    """Minus the logarithm of the marginal likelihood and of the priors, by Gauss and Hermite's quadrature."""
    slopes, intercepts = parameters.reshape(2, -1)
    logits = np.outer(slopes, NODES) + intercepts[:, None]
    by_run = right @ logits - np.logaddexp(0, logits).sum(axis=0)
    likelihood = np.log(np.exp(by_run) @ (WEIGHTS / WEIGHTS.sum())).sum()
    deviations = (np.array([slopes, intercepts]).T - PRIOR_MEAN) / PRIOR_SD
    return float(-likelihood + (deviations**2).sum() / 2)


@pytest.fixture(scope="module")
def small():
    right, _, _ = simulate(60, np.array([1.5, 0.8, 1.0, 2.0, 0.5]), np.array([0.0, 1.0, -1.0, 0.5, 0.0]), 4)
    return right, fit_items(right)


def test_parameters_are_the_likeliest(small) -> None:
    right, fit = small
    begin = np.concatenate([np.ones(5), np.zeros(5)])
    known = minimize(unlikely, begin, args=(right,), method="BFGS", options={"gtol": 1e-8}).x.reshape(2, -1)
    assert fit.discriminations == pytest.approx(known[0], abs=1e-4)
    assert fit.intercepts == pytest.approx(known[1], abs=1e-4)


def test_standard_errors_are_those_of_the_second_derivative(small) -> None:
    right, fit = small
    found = np.concatenate([fit.discriminations, fit.intercepts])
    step = 1e-3
    for item in range(5):
        at = (item, 5 + item)
        second = np.zeros((2, 2))
        for row, one in enumerate(at):
            for column, other in enumerate(at):
                for first_sign in (1, -1):
                    for second_sign in (1, -1):
                        moved = found.copy()
                        moved[one] += first_sign * step
                        moved[other] += second_sign * step
                        second[row, column] += first_sign * second_sign * unlikely(moved, right) / (4 * step**2)
        assert fit.discrimination_sds[item] == pytest.approx(np.linalg.inv(second)[0, 0] ** 0.5, rel=1e-3)


def test_a_wrong_key_and_a_useless_question_are_named() -> None:
    slopes, intercepts = np.full(40, 1.5), np.full(40, 0.5)
    slopes[7], intercepts[7] = 0.0, 0.0
    slopes[3], intercepts[3] = 3.0, 4.0
    right, _, _ = simulate(300, slopes, intercepts, 2)
    # What is right is option 1; the key of question 3 says 2, so that who is right is marked wrong.
    answers = [[1 if each else 2 for each in run] for run in right]
    right[:, 3] = 1 - right[:, 3]
    fit = fit_items(right)
    strong = strong_runs(fit)
    right[strong, 3] = 0.0
    for run in strong:
        answers[run][3] = 1
    judged = judge_items(fit, right, answers, [0.25] * 40)
    assert [at for at, each in enumerate(judged) if each["useless"]] == [3, 7]
    assert [at for at, each in enumerate(judged) if each["suspicious"] is not None] == [3]
    assert (judged[3]["suspicious"], judged[3]["hard"], judged[7]["hard"]) == (1, True, False)
    assert judged[3]["discrimination"] < -1
    assert judged[7]["difficulty"] is None
    assert judged[0]["difficulty"] == pytest.approx(-1 / 3, abs=0.3)


def test_with_few_runs_the_errors_are_large_and_nothing_is_infinite() -> None:
    right = np.array([[1.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]])
    fit = fit_items(right)
    assert np.isfinite(fit.discriminations).all()
    assert (fit.discrimination_sds > 0.5).all()
    judged = judge_items(fit, right, [[1] * 4] * 3, [0.25] * 4)
    assert not any(each["useless"] for each in judged)
    # Nobody has it right, and all three choose the same.
    assert [each["suspicious"] for each in judged] == [None, None, 1, None]
