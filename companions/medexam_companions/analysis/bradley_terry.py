"""How strong several runs are among each other, by the questions that one of two has right and the other has not.

The model is that of Bradley and Terry (1952, "Rank analysis of incomplete block designs"): a run of strength `a` wins
against one of strength `b` with the odds `exp(a - b)`. The covariance of the strengths allows for questions of one
exam (Liang and Zeger 1986, "Longitudinal data analysis using generalized linear models"). Intervals hold for all runs,
or all pairs, at once: they reach as far as the largest of the studentized errors does in 95 % of simulations (after
Hothorn, Bretz and Westfall 2008, "Simultaneous inference in general parametric models").
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.distributions import LEVEL
from medexam.measures import FEWEST, NO_DIFFERENCE, RESAMPLES, SEED

PRIOR = 0.5
"""Wins that every run is given against every other: without them a run that never loses is infinitely strong."""
_AT_ONCE = 500
"""Simulations that are drawn together."""
_MANY = 100
"""With more degrees of freedom the covariance is taken as known."""
Floats = NDArray[np.float64]


def compare_strengths(scores: Floats, clusters: Sequence[str]) -> list[dict[str, Any]]:
    """Estimate the strength of each run; row i of `scores` is run i, column j question j, of three runs or more.

    The higher score of two wins; equal ones count for nobody. `clusters` names the exam of each question: exams are
    taken as independent if there are five or more, else the questions within them. A row has `wins` and `losses` over
    all other runs; the `strength`, the natural logarithm of the odds of a win against the mean run; its `interval`, for
    all runs at once; and positions of the runs that it is `not_separable` from, for all pairs at once; both at 95 %.
    """
    wins = np.array([(run - scores > NO_DIFFERENCE).sum(axis=1) for run in scores], dtype=float)
    fitted, inverse = _fit(wins)
    # Row j, column i: the wins of run i over the others on question j, minus those that its strength lets expect.
    margins = ((run - scores, chances) for run, chances in zip(scores, _expected(fitted), strict=True))
    by_run = [(gap > NO_DIFFERENCE).sum(axis=0) - chances @ (np.abs(gap) > NO_DIFFERENCE) for gap, chances in margins]
    covariance, freedom = _find_covariance(np.array(by_run).T @ inverse, clusters)
    runs = len(scores)
    single, (one, other) = np.eye(runs), np.triu_indices(runs, 1)
    width = _half_widths(covariance, freedom, single)
    between = _half_widths(covariance, freedom, single[one] - single[other])
    apart = np.zeros((runs, runs), dtype=bool)
    # Runs that answer alike differ by what rounding leaves.
    apart[one, other] = apart[other, one] = np.abs(fitted[one] - fitted[other]) > between + 1e-9
    return [
        {
            "wins": int(wins[run].sum()),
            "losses": int(wins[:, run].sum()),
            "strength": float(fitted[run]),
            "interval": (float(fitted[run] - width[run]), float(fitted[run] + width[run])),
            "not_separable": [int(rival) for rival in np.flatnonzero(~apart[run]) if rival != run],
        }
        for run in range(runs)
    ]


def _fit(wins: Floats) -> tuple[Floats, Floats]:
    """Find the likeliest strengths, whose mean is 0, and the inverse of minus the second derivative there; by Newton.

    `wins[i, j]` counts wins of run i over run j; `PRIOR` is added to each count. The rows of the derivative sum to 0:
    adding 1 everywhere makes it regular and keeps the mean at 0.
    """
    counts = wins + PRIOR * (1 - np.eye(len(wins)))
    games = counts + counts.T
    strengths: Floats = np.zeros(len(wins))
    curvature: Floats = np.eye(len(wins))
    for _ in range(50):
        expected = _expected(strengths)
        variances = games * expected * (1 - expected)
        curvature = 1 + np.diag(variances.sum(axis=1)) - variances
        step = np.linalg.solve(curvature, (counts - games * expected).sum(axis=1))
        strengths += step
        if np.abs(step).max() < 1e-12:
            break
    return strengths, np.asarray(np.linalg.inv(curvature))


def _find_covariance(influences: Floats, clusters: Sequence[str]) -> tuple[Floats, int]:
    """Find the covariance of fitted strengths, from how the units of each group differ, and its degrees of freedom.

    A row of `influences` is a question. The units are exams, or the questions of each exam.
    """
    names, labels = np.unique(clusters, return_inverse=True)
    exams = [influences[labels == exam] for exam in range(len(names))]
    groups = [np.array([exam.sum(axis=0) for exam in exams])] if takes_clusters(clusters) else exams
    covariance, freedom = np.zeros((influences.shape[1],) * 2), 0
    for group in groups:
        if (units := len(group)) > 1:
            centred = group - group.mean(axis=0)
            covariance += centred.T @ centred * units / (units - 1)
            freedom += units - 1
    return covariance, freedom


def takes_clusters(clusters: Sequence[str]) -> bool:
    """Return whether exams are taken as independent, and not the questions within them."""
    return len(set(clusters)) >= FEWEST


def _expected(strengths: Floats) -> Floats:
    """Compute `[i, j]`: how likely run i wins over run j."""
    return np.asarray(1 / (1 + np.exp(strengths - strengths[:, None])))


def _half_widths(covariance: Floats, freedom: int, contrasts: Floats) -> Floats:
    """Find half the width of the simultaneous intervals of `contrasts` of the strengths, a row each."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.clip(values, 0.0, None))
    directions = contrasts @ root
    deviations = np.sqrt((directions**2).sum(axis=1))
    varies = deviations > 1e-9
    if not varies.any() or freedom < 1:
        return np.full_like(deviations, np.inf) if freedom < 1 else np.asarray(deviations)
    # Scaled to a deviation of 1 each: only how they go together matters.
    directions = directions[varies] / deviations[varies, None]
    rng = np.random.default_rng(SEED)
    largest = []
    for begin in range(0, RESAMPLES, _AT_ONCE):
        size = min(_AT_ONCE, RESAMPLES - begin)
        errors = np.abs(rng.standard_normal((size, len(root))) @ directions.T)
        if freedom <= _MANY:
            samples = rng.standard_normal((size, freedom, len(root))) @ directions.T
            errors /= np.sqrt((samples**2).mean(axis=1))
        largest.append(errors.max(axis=1))
    return np.asarray(np.quantile(np.concatenate(largest), LEVEL) * deviations)
