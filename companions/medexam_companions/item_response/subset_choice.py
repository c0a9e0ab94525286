"""Fewer questions that stand for all: one of each stratum of the chance that stored runs have it right.

The chance comes from the two-parameter model of item response theory, over the abilities of the runs (stratified
sampling with proportional allocation, Cochran 1977, "Sampling techniques"; by item response theory as in Polo et al.
2024, "tinyBenchmarks"). The accuracy on the subset then estimates that on all questions without a model. What it errs
by is measured on runs that the model was not fitted to.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from medexam.metrics import ALPHA, SEED, mcnemar_p
from medexam_companions.item_response.fitting import ItemFit, fit_items

DRAWS = 50
"""Subsets that are drawn for each run that is held out."""
MOST_HELD_OUT = 20
"""Runs that are held out in turn, at most."""
Floats = NDArray[np.float64]
Places = NDArray[np.int64]


class SubsetError(NamedTuple):
    """What subsets of one size err by, over held-out runs and draws; all are fractions of 1."""

    mean: float
    """Mean absolute difference of the accuracy on the subset from that on all questions."""
    ninety: float
    """Nine in ten differences are no larger."""
    agree: float
    """Pairs of a held-out run and another of which McNemar's test says the same on the subset as on all."""
    false: float
    """Pairs that it separates on the subset, and on all questions not, or the other way round."""


def choose_subset(fit: ItemFit, n: int, rng: np.random.Generator) -> Places:
    """Choose `n` places of questions, in ascending order; each stratum of questions about as easy gives one."""
    chances = np.mean([fit.chances(float(ability)) for ability in fit.abilities], axis=0)
    return np.sort([rng.choice(stratum) for stratum in np.array_split(np.argsort(chances, kind="stable"), n)])


def measure_subsets(right: Floats, n: int) -> tuple[SubsetError, SubsetError]:
    """Measure the errors of chosen subsets of `n` questions, and of subsets that are drawn by lot.

    Row i of `right` is run i, four runs or more; column j is question j, 1 or 0.
    """
    rng = np.random.default_rng(SEED)
    runs, questions = right.shape
    stratum_errors, random_errors = [], []
    for held_out in np.unique(np.linspace(0, runs - 1, min(runs, MOST_HELD_OUT)).round().astype(int)):
        others = np.delete(right, held_out, axis=0)
        fit = fit_items(others)
        stratum_errors += _try(right[held_out], others, lambda fit=fit: choose_subset(fit, n, rng))  # type: ignore[misc]
        random_errors += _try(right[held_out], others, lambda: rng.choice(questions, n, replace=False))
    return _sum_up(stratum_errors), _sum_up(random_errors)


def _try(run: Floats, others: Floats, draw: Callable[[], Places]) -> list[tuple[float, float, float]]:
    """Measure each draw: the difference of accuracy, the share of pairs that agree, and the share that is false."""
    full_verdicts, rows = _verdicts(run, others), []
    for _ in range(DRAWS):
        places = draw()
        verdicts = _verdicts(run[places], others[:, places])
        wrong = (verdicts != 0) & (verdicts != full_verdicts)
        rows.append((abs(run[places].mean() - run.mean()), (verdicts == full_verdicts).mean(), wrong.mean()))
    return rows


def _verdicts(run: Floats, others: Floats) -> Places:
    """Judge the run beside each other one by McNemar's exact test: 1, -1, or 0 if it separates them not."""
    gained, lost = ((run > others).sum(axis=1), (run < others).sum(axis=1))
    p_values = [mcnemar_p(*flips) for flips in zip(lost.tolist(), gained.tolist(), strict=True)]
    return np.where(np.array(p_values) < ALPHA, np.sign(gained - lost), 0)


def _sum_up(rows: list[tuple[float, float, float]]) -> SubsetError:
    errors, agree, false = np.array(rows).T
    return SubsetError(float(errors.mean()), float(np.quantile(errors, 0.9)), float(agree.mean()), float(false.mean()))
