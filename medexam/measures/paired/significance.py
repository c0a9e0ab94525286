"""Tests of two runs on the same questions, and what they allow to say."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from medexam.distributions import coin_tail
from medexam.measures.counting import cohens_kappa
from medexam.measures.intervals import RESAMPLES, SEED
from medexam.measures.paired.results import Difference, PairedMeasure, Verdict

K = TypeVar("K")
ALPHA = 0.05
"""A p-value at or over this tells no two runs apart."""
NO_DIFFERENCE = 1e-6
"""Less than this is none: a sentence encoder gives the same text slightly other vectors beside other texts."""
_BATCH = 2_000_000
"""Signs that are drawn at once."""


def mcnemar_p(lost: int, gained: int) -> float:
    """Compute the two-sided exact p-value of `lost` flips one way against `gained` the other; 1 if there are none."""
    return min(1.0, 2 * coin_tail(min(lost, gained), lost + gained))


def sign_flip_p(differences: Sequence[float]) -> float:
    """Compute the p-value of the two-sided paired permutation test of whole questions; 1 where fewer than two differ.

    `differences` holds for each question the sum of its tasks' differences. Under the null each is as likely to have
    the other sign. Exact where 13 or fewer questions differ, else from 9,999 draws with a fixed seed, the observed one
    added. Those that do not differ change nothing and are left out.
    """
    changes = np.array([each for each in differences if abs(each) >= NO_DIFFERENCE], dtype=float)
    if len(changes) < 2 or abs(changes.sum()) < NO_DIFFERENCE:
        return 1.0
    exact = 2 ** len(changes) <= RESAMPLES
    sums = np.concatenate([signs @ changes for signs in (_all_signs if exact else _draw_signs)(len(changes))])
    observed, extra_draws = changes.sum(), 0 if exact else 1
    rounding = 100 * np.finfo(float).eps * abs(observed)
    fewer = min(int((sums <= observed + rounding).sum()), int((sums >= observed - rounding).sum()))
    return min(1.0, 2 * (fewer + extra_draws) / (len(sums) + extra_draws))


def _all_signs(n: int) -> Iterator[NDArray[np.int64]]:
    """Yield each way to give `n` numbers a sign, a row each."""
    yield 1 - 2 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)


def _draw_signs(n: int) -> Iterator[NDArray[np.int64]]:
    """Yield signs of `n` numbers, a row a resample, in batches; the same as `scipy.stats.permutation_test` draws."""
    rows = min(RESAMPLES, max(1, _BATCH // n))
    sign_pairs, rng = np.broadcast_to([1, -1], (rows, n, 2)), np.random.default_rng(SEED)
    for begin in range(0, RESAMPLES, rows):
        yield rng.permuted(sign_pairs, axis=-1)[: RESAMPLES - begin, :, 0]


def adjust_holm(p_values: Sequence[float]) -> list[float]:
    """Adjust `p_values` for their number, in their order; a single one stays.

    Holm (1979), "A simple sequentially rejective multiple test procedure".
    """
    p_array = np.asarray(p_values, dtype=float)
    order = np.argsort(p_array, kind="stable")
    # The smallest is multiplied by their number, the next by one less; none is below one that was smaller before.
    stepped = np.maximum.accumulate(p_array[order] * np.arange(len(p_array), 0, -1))
    adjusted = np.empty(len(p_array))
    adjusted[order] = np.minimum(stepped, 1.0)
    return [float(p) for p in adjusted]


def adjust_all(families: Sequence[Mapping[K, PairedMeasure]]) -> list[dict[K, PairedMeasure]]:
    """Adjust the p-values of all measures together, and judge each; those without a test stay."""
    tested = [(place, name) for place, family in enumerate(families) for name in family if family[name].p is not None]
    p_values = adjust_holm([families[place][name].p or 0.0 for place, name in tested])
    results = [dict(family) for family in families]
    for (place, name), p in zip(tested, p_values, strict=True):
        measure = results[place][name]
        verdict = judge(measure.difference, p)
        results[place][name] = measure.model_copy(update={"p_adjusted": p, "verdict": verdict})
    return results


def judge(difference: Difference, p: float) -> Verdict:
    """Judge a difference.

    `better` or `worse` only where the paired interval leaves out 0 and `p`, adjusted, is under 0.05: with few exams the
    one, with exams that differ much the other would say it too easily.
    """
    if not difference.excludes_zero or p >= ALPHA:
        return "not told apart"
    return "better" if difference.value > 0 else "worse"


def kappa(baseline: NDArray[np.int64], run: NDArray[np.int64]) -> float | None:
    """Compute Cohen's kappa of two runs' answers; item i of both is question i, and no answer is one number of its own.

    None if all answers of both runs are the same one, for which it is not defined.
    """
    pairs = np.unique(np.stack([baseline, run]), return_inverse=True)[1].reshape(2, -1)
    categories = int(pairs.max()) + 1
    if categories < 2:
        return None
    table = np.bincount(pairs[0] * categories + pairs[1], minlength=categories**2)
    return cohens_kappa(table.reshape(categories, categories).astype(float))
