"""What a fitted model of item response says of single questions: hard, useless, or with a key that may be wrong."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from medexam.frozen_model import FrozenModel
from medexam_companions.analysis.fitting import ItemFit

FEW_RUNS = 100
"""With fewer runs the fit is called weak; guides for the two-parameter model ask for some hundred."""
FEWEST_STRONG = 3
USELESS = 0.35
"""Discriminations under this are very low (Baker 2001, "The basics of item response theory")."""
_FLAT = 0.2
"""A difficulty is not given for smaller discriminations: it is their inverse, and has no meaning."""
_QUANTILE = 1.959963984540054
Floats = NDArray[np.float64]


class ItemQuality(FrozenModel):
    """One question."""

    right: int
    """Runs that have it right."""
    discrimination: float
    standard_error: float | None
    """Of the discrimination; None if the runs hold no information on it."""
    difficulty: float | None
    """The ability that has it right in half of all cases; None if it hardly discriminates."""
    strongest: float
    """How likely the strongest run has it right."""
    hard: bool
    """Whether that is less than a uniform choice has."""
    useless: bool
    """Whether its discrimination is very low or negative, with its whole 95 % interval."""
    suspicious: int | None
    """The wrong option that all strong runs choose; None if they do not."""


def strong_runs(fit: ItemFit) -> list[int]:
    """List the positions of the upper half of the runs by ability, the strongest first, three or more."""
    count = max(FEWEST_STRONG, (len(fit.abilities) + 1) // 2)
    return [int(run) for run in np.argsort(-fit.abilities, kind="stable")[:count]]


def judge_items(
    fit: ItemFit, right: Floats, answers: Sequence[Sequence[int | None]], chances: Sequence[float]
) -> list[ItemQuality]:
    """Judge every question; row i of `right` and `answers` is run i, column j question j.

    `chances[j]` is how likely a uniform choice has question j right.
    """
    strong = strong_runs(fit)
    strongest = fit.chances(float(fit.abilities.max()))
    qualities = []
    for column, chance in enumerate(chances):
        choices = {answers[run][column] for run in strong}
        wrong = not right[strong, column].any() and len(choices) == 1
        slope, error = float(fit.discriminations[column]), float(fit.discrimination_sds[column])
        qualities.append(
            ItemQuality(
                right=int(right[:, column].sum()),
                discrimination=slope,
                standard_error=error if np.isfinite(error) else None,
                difficulty=-float(fit.intercepts[column]) / slope if abs(slope) >= _FLAT else None,
                strongest=float(strongest[column]),
                hard=bool(strongest[column] < chance),
                useless=slope + _QUANTILE * error < USELESS,
                suspicious=next(iter(choices)) if wrong else None,
            )
        )
    return qualities


def together(fit: ItemFit, right: Floats) -> tuple[int, int, float]:
    """Find the two runs that err together most, and the correlation of what the model leaves of them.

    After Yen (1984, "Effects of local item dependence"). The model takes runs of one ability as independent.
    """
    residuals = right - np.array([fit.chances(float(ability)) for ability in fit.abilities])
    correlations = np.corrcoef(residuals)
    np.fill_diagonal(correlations, -1.0)
    first, second = np.unravel_index(int(np.nanargmax(correlations)), correlations.shape)
    return int(first), int(second), float(correlations[first, second])
