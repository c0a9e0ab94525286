"""Paired statistics against hand-computed values, and against scipy, statsmodels and numpy used directly."""

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.stats import binom
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.inter_rater import cohens_kappa

from medexam.errors import DatasetError
from medexam.metrics import Difference, Resampling, Tally, compute_metrics, mcnemar_p
from medexam.metrics.paired.pairs import (
    adjust_holm,
    compare_pair,
    complementarity,
    count_flips,
    judge,
    kappa,
    paired_differences,
)
from medexam.metrics.paired.results import Paired
from medexam.metrics.paired.sheet import NO_ANSWER, Sheet


@pytest.fixture
def exams(make_exam):
    """`exams(30, 20)` -> the questions of thirty exams of twenty each, over six disciplines and five years."""

    def make(count: int, size: int):
        disciplines = ("biology", "chemistry", "medicine", "nursing", "pharmacology", "psychology")
        names = [(discipline, year) for year in range(2013, 2018) for discipline in disciplines][:count]
        return [question for discipline, year in names for question in make_exam(discipline, year, size, 4)]

    return make


def _draw(rng, questions, predict, weights) -> dict:
    """Predictions that come out right, wrong or unanswered by these weights, question by question."""
    return predict(questions, "".join(rng.choice(list("rwu"), size=len(questions), p=weights)))


def _compare(questions, key, baseline, other) -> Paired:
    return compare_pair(Sheet.of(questions, key, [baseline, other]), 1)


def test_flips_by_hand(make_exam, key_of, predict) -> None:
    questions = make_exam("biology", 2013, size=9, options=4)
    names = [question.key for question in questions]
    baseline, other = predict(questions, "rrwuurwmr"), predict(questions, "rwrrwuufr")
    flips = count_flips(names[:8], key_of(questions), baseline, other)
    assert flips.right_to_wrong == (names[1], names[5])
    assert flips.wrong_to_right == (names[2], names[3])
    assert (flips.both_right, flips.both_wrong, flips.left_out, flips.n) == (1, 2, 1, 7)
    assert flips.p == 1.0


@pytest.mark.parametrize("outcome", "fm")
def test_what_either_run_did_not_score_is_left_out(outcome, make_exam, key_of, predict) -> None:
    questions = make_exam("biology", 2013, size=3, options=4)
    names, key = [question.key for question in questions], key_of(questions)
    whole, part = predict(questions, "rwr"), predict(questions, f"ww{outcome}")
    for flips in (count_flips(names, key, whole, part), count_flips(names, key, part, whole)):
        assert (flips.n, flips.both_wrong, flips.left_out) == (2, 1, 1)
        assert names[0] in flips.right_to_wrong + flips.wrong_to_right


def test_a_question_without_gold_is_an_error(make_exam, key_of, predict) -> None:
    questions = make_exam("biology", 2013, size=2, options=4)
    answers = predict(questions, "r")
    with pytest.raises(DatasetError, match=r"biology-2013/2"):
        count_flips([question.key for question in questions], key_of(questions[:1]), answers, answers)


@pytest.mark.parametrize(("lost", "gained", "p"), [(0, 0, 1.0), (0, 1, 1.0), (0, 5, 2 / 32), (1, 5, 14 / 64)])
def test_mcnemar_by_hand(lost, gained, p) -> None:
    assert mcnemar_p(lost, gained) == pytest.approx(p)
    assert mcnemar_p(gained, lost) == pytest.approx(p)


@pytest.mark.parametrize(("lost", "gained"), [(3, 9), (40, 61), (10, 10), (120, 41)])
def test_mcnemar_against_statsmodels_and_the_binomial_sum(lost, gained) -> None:
    both_ways = mcnemar([[50, lost], [gained, 30]], exact=True).pvalue
    assert mcnemar_p(lost, gained) == pytest.approx(both_ways)
    assert mcnemar_p(lost, gained) == pytest.approx(min(1.0, 2 * binom.cdf(min(lost, gained), lost + gained, 0.5)))


@pytest.mark.parametrize(("lost", "gained"), list(product(range(7), repeat=2)))
def test_mcnemar_is_the_share_of_all_coin_rows_as_uneven(lost, gained) -> None:
    n = lost + gained
    rows = sum(1 for row in product((0, 1), repeat=n) if abs(2 * sum(row) - n) >= abs(lost - gained))
    assert mcnemar_p(lost, gained) == pytest.approx(rows / 2**n, abs=1e-15)


def test_a_pair_by_hand(make_exam, key_of, predict) -> None:
    first, second = make_exam("biology", 2013, 4, 4), make_exam("medicine", 2015, 2, 4)
    questions = [*first, *second]
    paired = _compare(questions, key_of(questions), predict(questions, "rrwuww"), predict(questions, "rwrwwu"))
    assert (paired.n, paired.exams, paired.baseline_accuracy) == (6, 2, 2 / 6)
    assert (paired.flips.right_to_wrong, paired.flips.wrong_to_right) == ((questions[1].key,), (questions[2].key,))
    assert (paired.flips.both_right, paired.flips.both_wrong, paired.flips.p) == (1, 3, 1.0)
    assert (paired.either_right, paired.same_answer) == (0.5, 2 / 6)
    assert paired.accuracy.value == 0.0
    # Points: 5 and -2 before (6 - 1, 0 - 2), 4 and -1 after.
    assert paired.points.value == pytest.approx(((4 - 5) + (-1 - -2)) / 2)
    assert paired.exam_score.value == pytest.approx(((4 - 1) - (5 - 2)) / 18)


@pytest.mark.parametrize("seed", range(5))
def test_differences_are_those_of_the_runs_own_scores(seed, exams, key_of, predict) -> None:
    rng = np.random.default_rng(seed)
    questions = exams(int(rng.integers(2, 30)), 15)
    key = key_of(questions)
    before, after = (_draw(rng, questions, predict, weights) for weights in ((0.3, 0.6, 0.1), (0.4, 0.4, 0.2)))
    paired = _compare(questions, key, before, after)
    mine, its = compute_metrics(questions, key, before), compute_metrics(questions, key, after)
    assert paired.baseline_accuracy == mine.accuracy
    for name in ("accuracy", "exam_score", "points"):
        assert getattr(paired, name).value == pytest.approx(getattr(its, name) - getattr(mine, name), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_intervals_agree_with_a_bootstrap_written_out(seed) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(180, 235, size=30)
    before = [Tally(right=int(r), wrong=int(n - r)) for n, r in zip(sizes, rng.binomial(sizes, 0.4), strict=True)]
    after = [
        Tally(right=int(r), wrong=int(n - r) - 9, unanswered=9)
        for n, r in zip(sizes, rng.binomial(sizes, 0.5), strict=True)
    ]
    right = np.array([b.right - a.right for a, b in zip(before, after, strict=True)])
    points = np.array([(3 * b.right - b.wrong) - (3 * a.right - a.wrong) for a, b in zip(before, after, strict=True)])
    draws = rng.integers(0, 30, size=(40_000, 30))
    whole = sizes[draws].sum(axis=1)
    resampled = (right[draws].sum(1) / whole, points[draws].sum(1) / (3 * whole), points[draws].mean(axis=1))
    found = paired_differences(np.column_stack([right, points, sizes]).astype(float), list)
    for difference, values in zip(found, resampled, strict=True):
        low, high = np.percentile(values, [2.5, 97.5])
        assert difference.resampled is Resampling.CLUSTERS
        assert difference.interval == pytest.approx((low, high), abs=0.04 * (high - low))


def test_two_exams_have_the_questions_of_both_runs_drawn_together(make_exam, key_of, predict) -> None:
    questions = [*make_exam("biology", 2013, 60, 4), *make_exam("chemistry", 2014, 90, 4)]
    before, after = predict(questions, "rrwwuwrwrw"), predict(questions, "rwwrwrrwww")
    paired = _compare(questions, key_of(questions), before, after)
    rng, counts = np.random.default_rng(5), {"r": (1, 3), "w": (0, -1), "u": (0, 0)}
    changes = np.array([np.subtract(counts[b], counts[a]) for a, b in zip("rrwwuwrwrw", "rwwrwrrwww", strict=True)])
    draws = [changes[rng.integers(0, 10, size=(20_000, n))].sum(axis=1) for n in (60, 90)]
    right, points = (sum(drawn[:, column] for drawn in draws) for column in (0, 1))
    expected = {"accuracy": right / 150, "exam_score": points / 450, "points": points / 2}
    for name, values in expected.items():
        found, (low, high) = getattr(paired, name), np.percentile(values, [2.5, 97.5])
        assert found.resampled is Resampling.WITHIN_EXAMS
        assert found.interval == pytest.approx((low, high), abs=0.04 * (high - low))


def test_the_same_runs_give_the_same_intervals_again(exams, key_of, predict) -> None:
    questions = exams(6, 10)
    before, after = predict(questions, "rwwr"), predict(questions, "rrwuw")
    assert _compare(questions, key_of(questions), before, after) == _compare(
        questions, key_of(questions), before, after
    )


def test_exams_stand_in_the_order_in_which_a_part_of_the_questions_names_them(make_exam, key_of, predict) -> None:
    first, second = make_exam("biology", 2013, 3, 4), make_exam("medicine", 2015, 3, 4)
    questions = [first[0], second[0], first[1], second[1]]
    runs = [predict(questions, outcomes) for outcomes in ("rwuw", "wrrw")]
    sheet = Sheet.of(questions, key_of(questions), runs)
    assert sheet.exams.tolist() == [0, 1, 0, 1]
    part = sheet.only([1, 2, 3])
    assert part.exams.tolist() == [0, 1, 0]
    assert part.keys == [question.key for question in questions[1:]]
    assert compare_pair(part, 1) == _compare(questions[1:], key_of(questions), *runs)


def test_swapping_the_runs_turns_every_sign(exams, key_of, predict) -> None:
    questions = exams(12, 10)
    key, before, after = key_of(questions), predict(questions, "rwwr"), predict(questions, "rrwuw")
    there, back = _compare(questions, key, before, after), _compare(questions, key, after, before)
    for name in ("accuracy", "exam_score", "points"):
        mine, its = getattr(there, name), getattr(back, name)
        assert mine.value == pytest.approx(-its.value)
        assert mine.interval == pytest.approx((-its.interval[1], -its.interval[0]))
    assert (there.flips.right_to_wrong, there.flips.p) == (back.flips.wrong_to_right, back.flips.p)
    assert (there.kappa, there.either_right) == (pytest.approx(back.kappa), back.either_right)


def test_a_run_beside_itself_differs_in_nothing(exams, key_of, predict) -> None:
    questions = exams(6, 10)
    same = predict(questions, "rwu")
    paired = _compare(questions, key_of(questions), same, same)
    for difference in (paired.accuracy, paired.exam_score, paired.points):
        assert (difference.value, difference.interval, difference.excludes_zero) == (0.0, (0.0, 0.0), False)
    assert (paired.flips.p, paired.same_answer, paired.kappa) == (1.0, 1.0, pytest.approx(1.0))
    assert judge(paired.accuracy, paired.flips.p) == "not told apart"


def test_one_exam_in_which_every_question_flips_has_no_interval(make_exam, key_of, predict) -> None:
    questions = make_exam("biology", 2013, 40, 4)
    paired = _compare(questions, key_of(questions), predict(questions, "w"), predict(questions, "r"))
    assert (paired.accuracy.value, paired.accuracy.interval, paired.accuracy.excludes_zero) == (1.0, None, True)
    assert paired.accuracy.resampled is Resampling.ALIKE
    assert paired.flips.p < 1e-6
    assert judge(paired.accuracy, paired.flips.p) == "better"


@pytest.mark.parametrize(
    ("value", "interval", "p", "verdict"),
    [
        (0.1, (0.01, 0.2), 0.01, "better"),
        (-0.1, (-0.2, -0.01), 0.01, "worse"),
        (0.1, (-0.01, 0.2), 0.01, "not told apart"),
        (0.1, (0.0, 0.2), 0.01, "not told apart"),
        (-0.1, (-0.2, 0.0), 0.01, "not told apart"),
        (0.1, (0.01, 0.2), 0.05, "not told apart"),
        (0.1, (0.01, 0.2), 0.049, "better"),
        (0.1, None, 0.0, "not told apart"),
    ],
)
def test_a_verdict_needs_the_interval_and_the_test(value, interval, p, verdict) -> None:
    assert judge(Difference(value=value, interval=interval), p) == verdict


def test_runs_of_one_skill_are_seldom_told_apart(exams, key_of, predict) -> None:
    rng = np.random.default_rng(11)
    questions = exams(30, 20)
    key, told = key_of(questions), 0
    for _ in range(60):
        before, after = (_draw(rng, questions, predict, (0.4, 0.5, 0.1)) for _ in range(2))
        paired = _compare(questions, key, before, after)
        told += judge(paired.accuracy, paired.flips.p) != "not told apart"
    assert told <= 8


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        ([], []),
        ([0.03], [0.03]),
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
        ([0.5, 0.9], [1.0, 1.0]),
        ([0.04, 0.001], [0.04, 0.002]),
    ],
)
def test_holm_by_hand(p_values, adjusted) -> None:
    assert adjust_holm(p_values) == pytest.approx(adjusted)


@pytest.mark.parametrize("seed", range(5))
def test_holm_steps_down(seed) -> None:
    p_values = np.random.default_rng(seed).random(9) ** 3
    order = np.argsort(p_values)
    expected = np.empty(9)
    expected[order] = np.minimum(1, np.maximum.accumulate(p_values[order] * np.arange(9, 0, -1)))
    assert adjust_holm(list(p_values)) == pytest.approx(list(expected))


def _kappa(answers) -> float | None:
    mine, its = np.array([[NO_ANSWER if each is None else each for each in pair] for pair in answers]).T
    return kappa(mine, its)


def test_kappa_by_hand() -> None:
    # Agreement 3/4; by chance 1/2 * 1/4 + 1/4 * 1/2 + 1/4 * 1/4.
    answers = [(1, 1), (1, 2), (2, 2), (None, None)]
    assert _kappa(answers) == pytest.approx((3 / 4 - 5 / 16) / (1 - 5 / 16))


@pytest.mark.parametrize("seed", range(5))
def test_kappa_against_statsmodels_on_its_own_table(seed) -> None:
    rng = np.random.default_rng(seed)
    mine, its = rng.integers(0, 5, size=200), rng.integers(0, 5, size=200)
    its = np.where(rng.random(200) < 0.4, mine, its)
    table = np.histogram2d(mine, its, bins=range(6))[0]
    answers = [(int(a) or None, int(b) or None) for a, b in zip(mine, its, strict=True)]
    assert _kappa(answers) == pytest.approx(cohens_kappa(table).kappa)


@pytest.mark.parametrize("answers", [[(2, 2)] * 3, [(None, None)]])
def test_kappa_of_one_answer_alone_is_not_defined(answers) -> None:
    assert _kappa(answers) is None


def test_two_constant_runs_agree_no_more_than_by_chance() -> None:
    assert _kappa([(1, 2)] * 4) == 0.0


def test_what_runs_have_right_together(make_exam, key_of, predict) -> None:
    questions = make_exam("biology", 2013, 6, 4)
    runs = [predict(questions, outcomes) for outcomes in ("rrwwuw", "rwrwww", "rwwrwu")]
    together = complementarity(Sheet.of(questions, key_of(questions), runs))
    assert (together.n, together.any_right, together.all_right, together.none_right) == (6, 4, 1, 2)
    assert together.alone_right == (1, 1, 1)
    pair = complementarity(Sheet.of(questions, key_of(questions), runs[:2]))
    paired = _compare(questions, key_of(questions), *runs[:2])
    assert paired.either_right == pair.any_right / pair.n
    assert pair.alone_right == (len(paired.flips.right_to_wrong), len(paired.flips.wrong_to_right))


def test_the_binomial_row_sums_as_scipy_has_it() -> None:
    assert mcnemar_p(2, 9) == pytest.approx(2 * sum(comb(11, k) for k in range(3)) / 2**11)
