"""Which questions tell runs apart: the two-parameter logistic model of item response theory, fitted to right and wrong.

A run of ability `t` has a question right with the odds `exp(a * t + d)`: `a` is the question's discrimination, `-d / a`
its difficulty. Abilities are drawn from the standard normal distribution and integrated out; the likelihood is
maximised by EM (Bock and Aitkin 1981, "Marginal maximum likelihood estimation of item parameters"). With few runs a
question's likelihood may have no maximum, so weak normal priors stand beside it (Mislevy 1986, "Bayes modal estimation
in item response models"). They let a discrimination be negative, which a wrong key makes it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PRIOR_MEAN = np.array([1.0, 0.0])
"""Of discrimination and intercept."""
PRIOR_SD = np.array([1.0, 2.0])
_PRECISION = np.diag(PRIOR_SD**-2)
_NODES = 61
"""Points of the quadrature over abilities, from -6 to 6."""
_STEPS = 2_000
_CLOSE = 1e-6
"""Parameters that change by less in a step of EM are found."""


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
    """Fit the questions' parameters and the runs' abilities; row i of `right` is run i, column j question j, 1 or 0."""
    nodes = np.linspace(-6.0, 6.0, _NODES)
    basis = np.column_stack([nodes, np.ones(_NODES)])
    prior = -(nodes**2) / 2
    prior -= np.log(np.exp(prior).sum())
    # Questions that came out alike have the same parameters, and of many questions few are not alike.
    right, like, counts = np.unique(right, axis=1, return_inverse=True, return_counts=True)
    share = np.clip(right.mean(axis=0), 0.02, 0.98)
    parameters = np.column_stack([np.ones(right.shape[1]), np.log(share / (1 - share))])
    for _ in range(_STEPS):
        weights = _posterior(right, counts, parameters @ basis.T, prior)
        updated = _maximise(parameters, right.T @ weights, weights.sum(axis=0), basis)
        change = float(np.abs(updated - parameters).max())
        parameters = updated
        if change < _CLOSE:
            break
    weights = _posterior(right, counts, parameters @ basis.T, prior)
    abilities = weights @ nodes
    return ItemFit(
        abilities=abilities,
        ability_sds=np.sqrt(weights @ nodes**2 - abilities**2),
        discriminations=parameters[like, 0],
        discrimination_sds=_discrimination_sds(right, parameters, weights, basis)[like],
        intercepts=parameters[like, 1],
    )


def _posterior(right: Floats, counts: NDArray[np.int64], logits: Floats, prior: Floats) -> Floats:
    """Compute how likely each run, a row, has the ability of each node, a column; `counts[j]` questions are like j."""
    # log(1 - p) = -log(1 + exp(logit)), and log(p) is that plus the logit.
    likely = (right * counts) @ logits - counts @ np.logaddexp(0.0, logits) + prior
    likely = np.exp(likely - likely.max(axis=1, keepdims=True))
    return np.asarray(likely / likely.sum(axis=1, keepdims=True))


def _maximise(parameters: Floats, expected: Floats, runs: Floats, basis: Floats) -> Floats:
    """Find the likeliest parameters if `expected[j, k]` of `runs[k]` runs at node k have j right; by Newton."""
    for _ in range(30):
        chances = _logistic(parameters @ basis.T)
        slope = (expected - runs * chances) @ basis - (parameters - PRIOR_MEAN) / PRIOR_SD**2
        step = np.linalg.solve(_outer(runs * chances * (1 - chances), basis) + _PRECISION, slope[..., None])[..., 0]
        # A longer step than the logit can use comes of far starting points, and may oscillate.
        parameters = parameters + np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < _CLOSE / 10:
            break
    return parameters


def _discrimination_sds(right: Floats, parameters: Floats, weights: Floats, basis: Floats) -> Floats:
    """Estimate by Louis (1982, "Finding the observed information matrix when using the EM algorithm")."""
    chances = _logistic(parameters @ basis.T)
    complete = _outer(weights.sum(axis=0) * chances * (1 - chances), basis) + _PRECISION
    # The score of a run at each node is (right - chance) times the basis; what is lost is its variance over the nodes.
    by_run = [
        ((run_right[:, None] - chances) * run_weights, (run_right[:, None] - chances) ** 2 * run_weights)
        for run_right, run_weights in zip(right, weights, strict=True)
    ]
    means = np.array([first @ basis for first, _ in by_run])
    second = sum(_outer(squares, basis) for _, squares in by_run)
    information = complete - second + np.einsum("rja,rjb->jab", means, means)
    determinants = np.linalg.det(information)
    variances = np.full(len(parameters), np.inf)
    sound = (determinants > 0) & (information[:, 1, 1] > 0)
    variances[sound] = information[sound, 1, 1] / determinants[sound]
    return np.asarray(np.sqrt(variances))


def _outer(weights: Floats, basis: Floats) -> Floats:
    """Sum `[j, a, b]` over nodes k: `weights[j, k] * basis[k, a] * basis[k, b]`."""
    products = (basis[:, :, None] * basis[:, None]).reshape(len(basis), -1)
    return np.asarray((weights @ products).reshape(-1, basis.shape[1], basis.shape[1]))


def _logistic(logits: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -40, 40))))
