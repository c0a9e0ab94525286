"""Runs on the same items beside the first of them, whatever was asked: differences, tests, and what may be said.

A difference is always the other run's score minus the baseline's. Items of one exam share their authors and their year,
and variants of one question their text, so intervals resample whole clusters if there are enough; the tests look at
whole questions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from medexam.distributions import coin_tail
from medexam.frozen_model import FrozenModel
from medexam.measures.intervals import RESAMPLES, SEED, Floats, number_as_seen, resample
from medexam.measures.results import Interval, Resampling, Unit
from medexam.measures.words import question_of

K = TypeVar("K")
ALPHA = 0.05
"""A p-value at or over this tells no two runs apart."""
NO_DIFFERENCE = 1e-6
"""Less than this is none: a sentence encoder gives the same text slightly other vectors beside other texts."""
NO_ANSWER = -(2**40)
"""Stands for a missing answer; no printed number is so small."""
POINTS = "points"
"""The measure that is a mean over clusters, not over items."""
_BATCH = 2_000_000
"""Signs that are drawn at once."""
Verdict = Literal["better", "worse", "not told apart"]
"""What may be said of the other run beside the baseline."""


class Difference(FrozenModel):
    """The other run's score minus the baseline's, in the unit of the score."""

    value: float
    interval: Interval | None
    """Paired bootstrap, 95 %."""
    resampled: Resampling = Resampling.CLUSTERS
    """What `interval` resamples, or why it is None."""

    @property
    def bounds(self) -> Interval | None:
        """The ends of the interval; of questions that all differ alike, the difference itself. None without one."""
        return (self.value, self.value) if self.resampled is Resampling.ALIKE else self.interval

    @property
    def excludes_zero(self) -> bool:
        """Whether the whole interval lies on one side of 0; of questions that all differ alike, whether they differ.

        False if there is no interval for another reason.
        """
        return self.bounds is not None and (self.bounds[0] > 0 or self.bounds[1] < 0)


class Flips(FrozenModel):
    """How the answers of a run differ from those of a baseline; counts of questions that both scored."""

    right_to_wrong: int
    """The baseline alone has it right."""
    wrong_to_right: int
    """The other run alone has it right."""
    both_right: int
    both_wrong: int
    same_answer: float
    """Share of the questions to which both give the same answer, right or wrong; no answer is like no answer."""
    kappa: float | None
    """Cohen's kappa of the answers, where no answer is a category too: 1 where all agree, 0 if no more agree than
    by chance. None if both runs always give one and the same answer."""

    @property
    def n(self) -> int:
        """Questions that both runs scored."""
        return self.right_to_wrong + self.wrong_to_right + self.both_right + self.both_wrong

    @property
    def share(self) -> float:
        """Share of the questions that one of the two has right and the other has not."""
        return (self.right_to_wrong + self.wrong_to_right) / self.n


class PairedMeasure(FrozenModel):
    """One measure of a run beside the baseline's, on the questions that all compared runs have a score for."""

    n: int
    clusters: int
    """What the interval resamples: exams or whole questions; the questions themselves if nothing holds them."""
    baseline: float
    other: float
    difference: Difference
    p: float | None = None
    """Two-sided: McNemar's exact test of right and wrong answers (McNemar 1947), else a paired permutation test of
    whole questions. None for what follows from the same answers, such as points."""
    p_adjusted: float | None = None
    """`p` after Holm, over all pairs and measures, or over all pairs and groups of a facet."""
    verdict: Verdict = "not told apart"
    """What may be said of this measure alone, by the interval and `p_adjusted`."""
    flips: Flips | None = None
    """None unless answers are right or wrong."""
    unit: Unit = Unit.SHARE


Measured = dict[str, PairedMeasure]


@dataclass(frozen=True)
class Sheet:
    """The scores of several runs on the same items: column j is item j in all that follows, and row i run i."""

    keys: Sequence[str]
    clusters: Sequence[str]
    """What each item is resampled with."""
    scores: Mapping[str, Floats]
    """Measure -> scores, `nan` where an item has none; runs are known by the first."""
    answers: NDArray[np.int64] | None = None
    """The printed number of each chosen option, or `NO_ANSWER`; None unless answers are right or wrong."""
    unread: NDArray[np.bool_] | None = None
    """Where a reply came that nobody could read; None: nowhere."""
    facets: Mapping[str, Sequence[str | None]] | None = None
    """Facet -> the group of each item; None: it is in none."""
    units: Mapping[str, Unit] | None = None
    """Those of measures that are no shares."""

    def only(self, columns: Any) -> Self:
        """Return the same of some items, by place or mask."""
        places = np.arange(len(self.keys))[columns]
        return replace(
            self,
            keys=[self.keys[place] for place in places],
            clusters=[self.clusters[place] for place in places],
            scores={name: scores[:, places] for name, scores in self.scores.items()},
            answers=None if self.answers is None else self.answers[:, places],
            unread=None if self.unread is None else self.unread[:, places],
            facets={name: [groups[place] for place in places] for name, groups in (self.facets or {}).items()},
        )

    @property
    def first(self) -> Floats:
        """The scores in the measure that runs are known by."""
        return next(iter(self.scores.values()))


def compare_all(sheet: Sheet) -> list[Measured]:
    """Compare each further run with the first in each measure; one family of tests over all runs and measures."""
    return adjust_all([compare_pair(sheet, 0, other) for other in range(1, len(sheet.first))])


def compare_groups(sheet: Sheet, facet: str, order: Sequence[str] = ()) -> list[Measured]:
    """Compare each further run with the first by group of a facet, in the first measure.

    Groups stand in the given order, others by name behind them. A group without an item that every run has a score for
    is left out. One family of tests over all runs and groups.
    """
    members: dict[str, list[int]] = {}
    for place, group in enumerate((sheet.facets or {})[facet]):
        if group is not None:
            members.setdefault(group, []).append(place)
    names = [*(name for name in order if name in members), *sorted(members.keys() - set(order))]
    parts = {name: replace(sheet.only(members[name]), facets=None) for name in names}
    families: list[Measured] = []
    for other in range(1, len(sheet.first)):
        compared = {name: compare_pair(part, 0, other) for name, part in parts.items()}
        families.append({name: next(iter(measures.values())) for name, measures in compared.items() if measures})
    return adjust_all(families)


def compare_pair(sheet: Sheet, baseline: int, other: int) -> Measured:
    """Compare one run with another in each measure that some item has a score for in all runs; nothing is adjusted.

    Right and wrong answers, and what follows from them, are resampled together.
    """
    if not sheet.keys:
        return {}
    if sheet.answers is not None:
        return _compare(sheet, list(sheet.scores), baseline, other)
    measures: Measured = {}
    for name, scores in sheet.scores.items():
        scored = ~np.isnan(scores).any(axis=0)
        part = sheet if scored.all() else sheet.only(scored)
        if part.keys:
            measures |= _compare(part, [name], baseline, other)
    return measures


def _compare(sheet: Sheet, names: Sequence[str], baseline: int, other: int) -> Measured:
    before, after = (np.stack([sheet.scores[name][run] for name in names], axis=1) for run in (baseline, other))
    numbers = number_as_seen(sheet.clusters)
    count, per_cluster = int(numbers.max()) + 1, [name == POINTS for name in names]
    measures = {}
    for place, (interval, over) in enumerate(resample(after - before, numbers, per_cluster)):
        size = count if per_cluster[place] else len(numbers)
        first, second, change = (float(each[:, place].sum()) / size for each in (before, after, after - before))
        measures[names[place]] = PairedMeasure(
            n=len(numbers),
            clusters=count,
            baseline=first,
            other=second,
            difference=Difference(value=change, interval=interval, resampled=over),
            unit=(sheet.units or {}).get(names[place], Unit.SHARE),
        )
    if sheet.answers is None:
        questions = number_as_seen(list(map(question_of, sheet.keys)))
        more: dict[str, Any] = {"p": sign_flip_p(np.bincount(questions, (after - before)[:, 0]).tolist())}
    else:
        was, is_right = before[:, 0] == 1, after[:, 0] == 1
        first_answers, second_answers = sheet.answers[baseline], sheet.answers[other]
        flips = Flips(
            right_to_wrong=int((was & ~is_right).sum()),
            wrong_to_right=int((is_right & ~was).sum()),
            both_right=int((was & is_right).sum()),
            both_wrong=int((~was & ~is_right).sum()),
            same_answer=int((first_answers == second_answers).sum()) / len(numbers),
            kappa=kappa(first_answers, second_answers),
        )
        more = {"p": mcnemar_p(flips.right_to_wrong, flips.wrong_to_right), "flips": flips}
    return measures | {names[0]: measures[names[0]].model_copy(update=more)}


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
    places = np.arange(len(changes))
    signs = [1 - 2 * (np.arange(2 ** len(changes))[:, None] >> places & 1)] if exact else _draw_signs(len(changes))
    sums = np.concatenate([rows @ changes for rows in signs])
    observed, extra_draws = changes.sum(), 0 if exact else 1
    rounding = 100 * np.finfo(float).eps * abs(observed)
    fewer = min(int((sums <= observed + rounding).sum()), int((sums >= observed - rounding).sum()))
    return min(1.0, 2 * (fewer + extra_draws) / (len(sums) + extra_draws))


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


def cohens_kappa(table: Floats, *, quadratic: bool = False) -> float:
    """Measure how far two raters agree beyond chance, 1 at the most; `table[i, j]` counts items in `i` and `j`.

    `quadratic`: a disagreement weighs by the square of its distance, for ordered categories (Cohen 1968); otherwise
    all weigh the same (Cohen 1960). Not defined, and nan, if all items are in one category.
    """
    shares, places = table / table.sum(), np.arange(len(table))
    distance = np.abs(np.subtract.outer(places, places))
    weights = distance**2 if quadratic else (distance > 0)
    expected = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    return float(1 - (weights * shares).sum() / (weights * expected).sum())


def kappa(baseline: NDArray[np.int64], run: NDArray[np.int64]) -> float | None:
    """Compute Cohen's kappa of two runs' answers; item i of both is question i, and no answer is one number of its own.

    None if all answers of both runs are the same one, for which it is not defined.
    """
    pairs = np.unique(np.stack([baseline, run]), return_inverse=True)[1].reshape(2, -1)
    categories = int(pairs.max()) + 1
    table = np.bincount(pairs[0] * categories + pairs[1], minlength=categories**2)
    return cohens_kappa(table.reshape(categories, categories).astype(float)) if categories > 1 else None
