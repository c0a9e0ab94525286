"""Which questions tell runs apart: the two-parameter logistic model of item response theory, fitted to right and wrong.

A run of ability `t` has a question right with the odds `exp(a * t + d)`: `a` is the question's discrimination, `-d / a`
its difficulty. Abilities are drawn from the standard normal distribution and integrated out; the likelihood is
maximised (Bock and Aitkin 1981, "Marginal maximum likelihood estimation of item parameters"). With few runs a
question's likelihood may have no maximum, so weak normal priors stand beside it (Mislevy 1986, "Bayes modal estimation
in item response models"). They let a discrimination be negative, which a wrong key makes it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medexam.errors import MedExamError

Floats = NDArray[np.float64]
PRIOR_MEAN = np.array([1.0, 0.0])
"""Of discrimination and intercept."""
PRIOR_SD = np.array([1.0, 2.0])
_NODES = 61
"""Points of the quadrature over abilities, from -6 to 6."""
_CLOSE = 1e-6
"""Parameters are found where the derivative is smaller."""


@dataclass(frozen=True)
class ItemFit:
    """What was found; element i of an array belongs to run i or to question i."""

    abilities: Floats
    """Posterior means, in standard deviations of the population of runs."""
    ability_sds: Floats
    discriminations: Floats
    discrimination_sds: Floats
    """Standard errors from the observed information of each question alone; infinite if it has none."""
    intercepts: Floats

    def chances(self, ability: float) -> Floats:
        """Compute how likely a run of that ability has each question right."""
        return _logistic(self.discriminations * ability + self.intercepts)


def fit_items(right: Floats) -> ItemFit:
    """Fit the questions' parameters and the runs' abilities; row i of `right` is run i, column j question j, 1 or 0.

    Raises `MedExamError` without scipy.
    """
    try:
        from scipy.optimize import minimize
    except ImportError as error:
        raise MedExamError(f"item response needs scipy ({error}): pip install 'medexam[companions]'") from None
    nodes = np.linspace(-6.0, 6.0, _NODES)
    basis = np.column_stack([nodes, np.ones(_NODES)])
    prior = -(nodes**2) / 2
    prior -= np.log(np.exp(prior).sum())
    share = np.clip(right.mean(axis=0), 0.02, 0.98)
    parameters = np.column_stack([np.ones(right.shape[1]), np.log(share / (1 - share))])

    def loss(values: Floats) -> tuple[float, Floats]:
        """Compute minus the logarithm of the likelihood and of the priors, and its derivative."""
        parameters = values.reshape(-1, 2)
        weights, likelihood = _posterior(right, parameters @ basis.T, prior)
        chances, deviations = _logistic(parameters @ basis.T), (parameters - PRIOR_MEAN) / PRIOR_SD
        slopes = (right.T @ weights - weights.sum(axis=0) * chances) @ basis - deviations / PRIOR_SD
        return float((deviations**2).sum() / 2 - likelihood), -slopes.ravel()

    optimum = minimize(loss, parameters.ravel(), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": _CLOSE})
    parameters = optimum.x.reshape(-1, 2)
    weights, _ = _posterior(right, parameters @ basis.T, prior)
    abilities = weights @ nodes
    return ItemFit(
        abilities=abilities,
        ability_sds=np.sqrt(weights @ nodes**2 - abilities**2),
        discriminations=parameters[:, 0],
        discrimination_sds=_discrimination_sds(right, parameters, weights, basis),
        intercepts=parameters[:, 1],
    )


def _posterior(right: Floats, logits: Floats, prior: Floats) -> tuple[Floats, float]:
    """Compute how likely each run, a row, has the ability of each node, a column; and the likelihood's logarithm."""
    # log(1 - p) = -log(1 + exp(logit)), and log(p) is that plus the logit.
    likely = right @ logits - np.logaddexp(0.0, logits).sum(axis=0) + prior
    totals = np.logaddexp.reduce(likely, axis=1, keepdims=True)
    return np.exp(likely - totals), float(totals.sum())


def _discrimination_sds(right: Floats, parameters: Floats, weights: Floats, basis: Floats) -> Floats:
    """Find the standard errors from the second derivative of the marginal likelihood (Louis 1982)."""
    chances = _logistic(parameters @ basis.T)
    # The score of a run at each node is (right - chance) times the basis; what is lost is its variance over the nodes.
    residuals = right[:, :, None] - chances
    means = np.einsum("rjk,rk,ka->rja", residuals, weights, basis, optimize=True)
    complete = weights.sum(axis=0) * chances * (1 - chances) - np.einsum("rjk,rk->jk", residuals**2, weights)
    information = np.einsum("jk,ka,kb->jab", complete, basis, basis, optimize=True) + np.diag(PRIOR_SD**-2)
    information += np.einsum("rja,rjb->jab", means, means)
    determinants = np.linalg.det(information)
    variances = np.full(len(parameters), np.inf)
    sound = (determinants > 0) & (information[:, 1, 1] > 0)
    variances[sound] = information[sound, 1, 1] / determinants[sound]
    return np.asarray(np.sqrt(variances))


def _logistic(logits: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -40, 40))))
