"""Paired statistics of answers in words, against enumeration and resampling written out, and scipy's own tests."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import ttest_rel
from statsmodels.stats.multitest import multipletests

from medexam.measures import Paired, Sheet


def _question(key: str) -> str:
    return key.rpartition("/")[0] if "#" in key else key


def _compare(*runs):
    """Each further run beside the first; a run maps measures to tasks to scores."""
    keys = list(dict.fromkeys(key for run in runs for scores in run.values() for key in scores))
    names = [name for name in runs[0] if all(name in run for run in runs)]
    rows = {name: np.array([[run[name].get(key, np.nan) for key in keys] for run in runs]) for name in names}
    pairs = Paired.of((), Sheet(keys, [_question(key) for key in keys], rows), "questions").pairs
    return [pair.measures for pair in pairs]


def _p(differences) -> float:
    """The p-value of these differences of questions."""
    (pair,) = _compare({"f1": _scores([0.0] * len(differences))}, {"f1": _scores(differences)})
    return pair["f1"].p


def _enumerated(differences) -> float:
    """The share of all sign patterns whose sum lies as far from 0 as the one that is there."""
    found = abs(sum(differences))
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    return sum(each >= found - 1e-12 for each in sums) / len(sums)


def _scores(values, form: str = "t/{}") -> dict[str, float]:
    return {form.format(place): float(value) for place, value in enumerate(values)}


@pytest.mark.parametrize(
    "differences",
    [
        [0.5, -0.25, 1.0],
        [1 / 3, 1 / 3, 1 / 3, -1.0],
        [1 / 3, 1 / 3, 1 / 3, 1.0],
        [1.0] * 9 + [-1.0],
        [0.1, 0.7, -0.2, 0.4, 0.9, 0.3, -0.6, 0.2],
        list(np.random.default_rng(3).normal(0.3, 1, 13)),
    ],
)
def test_few_questions_are_enumerated(differences) -> None:
    assert _p(differences) == pytest.approx(_enumerated(differences))
    assert _p([-each for each in differences]) == pytest.approx(_p(differences))


@pytest.mark.parametrize("differences", [[0.0, 0.0], [0.4], [0.4, 0.0, 1e-8], [0.3, -0.1, -0.2]])
def test_nothing_that_differs_is_no_evidence(differences) -> None:
    assert _p(differences) == 1.0


@pytest.mark.parametrize(("n", "shift"), [(40, 0.0), (60, 0.1), (150, 0.06)])
def test_many_questions_are_drawn(n, shift) -> None:
    rng = np.random.default_rng(n)
    before = rng.beta(2, 2, n)
    after = before + rng.normal(shift, 0.3, n)
    differences = after - before
    signs = rng.integers(0, 2, (100_000, n), dtype=np.int8) * 2 - 1
    drawn = (abs(signs @ differences) >= abs(differences.sum()) - 1e-12).mean()
    p = _p(differences)
    assert p == pytest.approx(drawn, abs=0.03)
    assert p == pytest.approx(ttest_rel(after, before).pvalue, abs=0.03)
    assert _p(differences) == p


def test_the_interval_and_the_means_against_numpy() -> None:
    """Three questions of three variants, two of two, and others of one: whole questions are resampled and flipped."""
    rng = np.random.default_rng(5)
    sizes = [3, 3, 3, 2, 2, 1, 1, 1]
    keys = [f"set/test/{place}/Q{variant}#E" for place, size in enumerate(sizes) for variant in range(size)]
    before, after = rng.random(len(keys)), rng.random(len(keys)) + 0.2
    runs = [{"f1": dict(zip(keys, scores, strict=True))} for scores in (before, after)]
    ((pair,), whole) = _compare(*runs), np.repeat(np.arange(len(sizes)), sizes)
    found = pair["f1"]
    sums = np.array([(after - before)[whole == place].sum() for place in range(len(sizes))])
    assert (found.n, found.clusters) == (len(keys), len(sizes))
    assert found.baseline == pytest.approx(before.mean())
    assert found.other == pytest.approx(after.mean())
    assert found.difference.value == pytest.approx(sums.sum() / len(keys))
    assert found.p == pytest.approx(_enumerated(sums))
    drawn = rng.integers(0, len(sizes), (20_000, len(sizes)))
    expected = np.percentile(sums[drawn].sum(axis=1) / np.array(sizes)[drawn].sum(axis=1), [2.5, 97.5])
    assert found.difference.interval == pytest.approx(tuple(expected), abs=0.02)


def test_variants_are_one_question() -> None:
    four = {f"casimedicos/test/0/{variant}": 1.0 for variant in ("CQ#E", "CQP#E", "Q#CE", "QP#CE")}
    (pair,) = _compare({"f1": dict.fromkeys(four, 0.0)}, {"f1": four})
    assert (pair["f1"].n, pair["f1"].clusters, pair["f1"].p) == (4, 1, 1.0)
    assert pair["f1"].difference.interval is None
    assert pair["f1"].verdict == "not told apart"


def test_only_tasks_that_all_runs_have_are_compared() -> None:
    baseline = {"f1": _scores([1, 0, 1, 0]), "own": _scores([1]), "apart": {"a": 1.0}}
    others = [
        {"apart": {"b": 1.0}, "f1": {"t/1": 1.0, "t/2": 1.0, "t/3": 0.0}, "new": _scores([1])},
        {"apart": {"a": 1.0}, "f1": {"t/0": 1.0, "t/2": 0.0, "t/1": 0.0}, "own": _scores([1])},
    ]
    one, other = _compare(baseline, *others)
    assert (list(one), list(other)) == (["f1"], ["f1"])
    assert (one["f1"].n, one["f1"].baseline, one["f1"].other) == (2, 0.5, 1.0)
    assert (other["f1"].n, other["f1"].baseline, other["f1"].other) == (2, 0.5, 0.0)


def test_holm_is_over_all_pairs_and_measures() -> None:
    rng = np.random.default_rng(8)
    runs = [{name: _scores(rng.random(30) + shift) for name in ("f1", "exact")} for shift in (0, 0.3, 0.05)]
    pairs = _compare(*runs)
    found = [measure for pair in pairs for measure in pair.values()]
    assert [each.p_adjusted for each in found] == pytest.approx(
        multipletests([each.p for each in found], method="holm")[1]
    )
    assert [each.verdict for each in pairs[0].values()] == ["better", "better"]
    (back,) = _compare(runs[1], runs[0])
    assert [each.verdict for each in back.values()] == ["worse", "worse"]
    for each in found:
        low, high = each.difference.interval
        told = (low > 0 or high < 0) and each.p_adjusted < 0.05
        assert (each.verdict != "not told apart") == told


def test_groups_are_a_family_of_their_own() -> None:
    rng = np.random.default_rng(9)
    baseline, *others = (_scores(rng.random(24) + shift) for shift in (0, 0.4, 0.1))
    others[1].pop("t/0")
    groups = {name: [f"t/{place}" for place in range(24) if place % 3 == at] for at, name in enumerate("abc")}
    keys = [*baseline, "t/99"]
    rows = np.array([[run.get(key, np.nan) for key in keys] for run in (baseline, *others)])
    group_of = [next((name for name, members in groups.items() if key in members), "none") for key in keys]
    sheet = Sheet(keys, keys, {"f1": rows}, facets={"group": group_of})
    found = Paired.of([SimpleNamespace(by={})], sheet, "questions").by["group"]
    assert [list(pair) for pair in found] == [["a", "b", "c"]] * 2
    assert [[each.n for each in pair.values()] for pair in found] == [[7, 8, 8]] * 2
    for pair, other in zip(found, others, strict=True):
        for name, each in pair.items():
            keys = [key for key in groups[name] if key != "t/0"]
            assert each.p == pytest.approx(_enumerated([other[key] - baseline[key] for key in keys]))
    p_values = [each.p for pair in found for each in pair.values()]
    adjusted = [each.p_adjusted for pair in found for each in pair.values()]
    assert adjusted == pytest.approx(multipletests(p_values, method="holm")[1])
