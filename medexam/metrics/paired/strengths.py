"""How strong several runs are among each other, by the questions that one of two has right and the other has not.

The model is that of Bradley and Terry (1952, "Rank analysis of incomplete block designs"): a run of strength `a` wins
against one of strength `b` with the odds `exp(a - b)`. Intervals hold for all runs, or all pairs, at once: a max-t
bootstrap (Romano and Wolf 2005, "Exact and approximate stepdown methods for multiple hypothesis testing"; one step).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medexam.frozen_model import FrozenModel
from medexam.metrics.intervals import FEWEST, LEVEL, RESAMPLES, SEED
from medexam.metrics.paired.measures import NO_DIFFERENCE
from medexam.metrics.results import Interval, Resampling

PRIOR = 0.5
"""Wins that every run is given against every other: without them a run that never loses is infinitely strong."""
_AT_ONCE = 500
"""Resamples that are fitted together."""
Floats = NDArray[np.float64]


class Strength(FrozenModel):
    """One run among all."""

    wins: int
    """Over all other runs, how many questions it has right and they have not."""
    losses: int
    strength: float
    """Natural logarithm of the odds of a win against the mean run."""
    interval: Interval
    """95 % for the strengths of all runs at once."""
    not_separable: tuple[int, ...]
    """Positions of the runs that it is not separable from, at 95 % for all pairs at once."""


def compare_strengths(scores: Floats, clusters: Sequence[str], resamples: int = RESAMPLES) -> list[Strength]:
    """The strength of each run; row i of `scores` is run i, column j question j, of three runs or more.

    The higher score of two wins; equal ones count for nobody. `clusters` names the exam of each question: exams are
    resampled if there are five or more, else the questions within them.
    """
    groups = _group(scores, clusters)
    whole = np.sum([np.tensordot(group.counts, group.wins, 1) for group in groups], axis=0)
    fitted = fit_strengths(whole[None])[0]
    rng = np.random.default_rng(SEED)
    sizes = [min(_AT_ONCE, resamples - begin) for begin in range(0, resamples, _AT_ONCE)]
    drawn = np.concatenate([fit_strengths(np.sum([each.draw(rng, size) for each in groups], axis=0)) for size in sizes])
    single = _half_widths(drawn - fitted)
    pairs = fitted[:, None] - fitted[None]
    between = _half_widths((drawn[:, :, None] - drawn[:, None]) - pairs)
    # Runs that answer alike differ by what rounding leaves.
    apart = np.abs(pairs) > between + 1e-9
    return [
        Strength(
            wins=int(whole[run].sum()),
            losses=int(whole[:, run].sum()),
            strength=float(fitted[run]),
            interval=(float(fitted[run] - single[run]), float(fitted[run] + single[run])),
            not_separable=tuple(int(at) for at in np.flatnonzero(~apart[run]) if at != run),
        )
        for run in range(len(scores))
    ]


def fit_strengths(wins: Floats) -> Floats:
    """The likeliest strengths, whose mean is 0; `wins[s, i, j]` counts wins of run i over j in sample s.

    `PRIOR` is added to each count. Row s of the result holds the strengths in sample s. By Newton's method.
    """
    runs = wins.shape[-1]
    counts = wins + PRIOR * (1 - np.eye(runs))
    games = counts + counts.swapaxes(1, 2)
    strengths = np.zeros(wins.shape[:2])
    for _ in range(50):
        expected = 1 / (1 + np.exp(strengths[:, None] - strengths[:, :, None]))
        slope = (counts - games * expected).sum(axis=2)
        weights = games * expected * (1 - expected)
        # The rows of the second derivative sum to 0; adding 1 everywhere makes it regular and keeps the mean at 0.
        curvature = 1 - weights
        curvature[:, range(runs), range(runs)] = 1 + weights.sum(axis=2)
        step = np.linalg.solve(curvature, slope[..., None])[..., 0]
        strengths += step
        if np.abs(step).max() < 1e-12:
            break
    return strengths


def resampled_with(clusters: Sequence[str]) -> Resampling:
    """What the intervals resample."""
    return Resampling.CLUSTERS if len(set(clusters)) >= FEWEST else Resampling.WITHIN_EXAMS


@dataclass(frozen=True)
class _Group:
    """What is resampled together: exams, or the questions of one exam; those that came out alike stand there once."""

    wins: Floats
    """`[u, i, j]`: the wins of run i over run j in unit u."""
    counts: NDArray[np.int64]
    """How many units are like u."""

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """The wins in `size` resamples, a row each."""
        total = int(self.counts.sum())
        times = rng.multinomial(total, self.counts / total, size=size)
        return np.tensordot(times.astype(float), self.wins, 1)


def _group(scores: Floats, clusters: Sequence[str]) -> list[_Group]:
    members: dict[str, list[int]] = {}
    for at, cluster in enumerate(clusters):
        members.setdefault(cluster, []).append(at)
    if resampled_with(clusters) is not Resampling.CLUSTERS:
        return [_of_questions(scores[:, each]) for each in members.values()]
    if len(members) == len(clusters):
        return [_of_questions(scores)]
    by_question = (_of_questions(scores[:, each]) for each in members.values())
    wins = np.array([np.tensordot(each.counts, each.wins, 1) for each in by_question])
    return [_Group(wins, np.ones(len(wins), dtype=np.int64))]


def _of_questions(scores: Floats) -> _Group:
    distinct, counts = np.unique(scores, axis=1, return_counts=True)
    by_question = distinct.T
    return _Group((by_question[:, :, None] - by_question[:, None] > NO_DIFFERENCE).astype(float), counts)


def _half_widths(errors: Floats) -> Floats:
    """Half the width of the simultaneous intervals of what `errors` holds a row of for each resample."""
    deviations = errors.std(axis=0, ddof=1)
    ratios = np.divide(np.abs(errors), deviations, out=np.zeros_like(errors), where=deviations > 1e-12)
    return np.asarray(np.quantile(ratios.reshape(len(errors), -1).max(axis=1), LEVEL) * deviations)
