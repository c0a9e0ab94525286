"""Fitted weights, against scipy without derivatives and against statsmodels' conditional logit."""

import numpy as np
import pytest
from scipy.optimize import minimize
from statsmodels.discrete.conditional_models import ConditionalLogit

from medexam.metrics import fit_stacking

RIDGE = 0.01
"""What half of the sum of squared weights is multiplied by before it is added to the loss."""


@pytest.fixture
def drawn():
    """Three hundred questions with four or five options and three members, the first of which is the best."""
    draw = np.random.default_rng(2)
    chances, rights = [], []
    for _ in range(300):
        options = int(draw.integers(4, 6))
        gold = int(draw.integers(options))
        scores = draw.normal(size=(options, 3))
        scores[gold] += (2.0, 0.8, 0.0)
        odds = np.exp(scores)
        chances.append(odds / odds.sum(axis=0))
        rights.append([option == gold for option in range(options)])
    return chances, rights


def test_weights_minimise_the_penalised_loss(drawn) -> None:
    chances, rights = drawn

    def loss(weights):
        total = RIDGE / 2 * np.sum(weights**2)
        for features, right in zip(chances, rights, strict=True):
            odds = np.exp(features @ weights)
            total -= np.log(odds[np.array(right)].sum() / odds.sum())
        return total

    known = minimize(loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10, "maxiter": 5000})
    found = fit_stacking(chances, rights)
    assert found.weights == pytest.approx(known.x, abs=1e-4)
    assert found.weights[0] > found.weights[1] > abs(found.weights[2])
    assert (found.n, found.log_loss) == (300, pytest.approx((known.fun - RIDGE / 2 * np.sum(known.x**2)) / 300))
    assert found.uniform_log_loss == pytest.approx(np.mean([np.log(len(right)) for right in rights]))


def test_its_gradient_is_that_of_the_conditional_logit(drawn) -> None:
    chances, rights = drawn
    groups = np.repeat(np.arange(len(rights)), [len(right) for right in rights])
    known = ConditionalLogit(np.concatenate(rights).astype(int), np.concatenate(chances), groups=groups)
    weights = np.array(fit_stacking(chances, rights).weights)
    assert known.score(weights) == pytest.approx(RIDGE * weights, abs=1e-4)


def test_several_right_options_count_together() -> None:
    chances = [np.array([[0.7], [0.2], [0.1]]), np.array([[0.1], [0.8], [0.1]])]
    one = fit_stacking(chances, [[True, False, False], [False, True, False]])
    either = fit_stacking(chances, [[True, True, False], [False, True, True]])
    assert either.log_loss < one.log_loss


def test_a_member_without_a_fault_has_a_finite_weight() -> None:
    found = fit_stacking([np.eye(4)[:, :1]] * 20, [[True, False, False, False]] * 20)
    assert 3 < found.weights[0] < 30
