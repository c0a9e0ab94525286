"""Runs on the same questions, against hand-computed values, and against scipy, statsmodels and numpy."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.multitest import multipletests

from medexam.benchmarks import compare_exams
from medexam.errors import DatasetError
from medexam.metrics import Difference, Resampling, compute_metrics, judge, mcnemar_p
from medexam.predictions import Prediction, Reason, Status

SCORES = ("accuracy", "exam_score", "points")


@pytest.fixture
def exams(make_exam):
    """`exams(30, 20)` -> the questions of thirty exams of twenty each, over six disciplines and five years."""

    def make(count: int, size: int):
        disciplines = ("biology", "chemistry", "medicine", "nursing", "pharmacology", "psychology")
        names = [(discipline, year) for year in range(2013, 2018) for discipline in disciplines][:count]
        return [question for discipline, year in names for question in make_exam(discipline, year, size, 4)]

    return make


def _draw(rng, questions, weights) -> str:
    """Right, wrong or unanswered by these weights, question by question."""
    return "".join(rng.choice(list("rwu"), size=len(questions), p=weights))


@pytest.fixture
def compare(key_of, predict):
    """`compare(questions, "rrw", "rwu", ...)`: the first run beside the others, right, wrong or unanswered."""

    def make(questions, *runs):
        key = key_of(questions)
        answers = [predict(questions, run) if isinstance(run, str) else run for run in runs]
        metrics = [compute_metrics(questions, key, run) for run in answers]
        return compare_exams(questions, key, answers, metrics, group="discipline")

    return make


def test_a_pair_by_hand(compare, make_exam) -> None:
    questions = [*make_exam("biology", 2013, 4, 4), *make_exam("medicine", 2015, 2, 4)]
    found = compare(questions, "rrwuww", "rwrwwu")
    paired = found.pairs[0].paired
    assert (paired.n, paired.exams, paired.baseline_accuracy) == (6, 2, 2 / 6)
    assert (paired.flips.right_to_wrong, paired.flips.wrong_to_right) == ((questions[1].key,), (questions[2].key,))
    assert (paired.flips.both_right, paired.flips.both_wrong, paired.flips.p) == (1, 3, 1.0)
    assert (paired.either_right, paired.same_answer) == (0.5, 2 / 6)
    assert paired.accuracy.value == 0.0
    # Points: 5 and -2 before (6 - 1, 0 - 2), 4 and -1 after.
    assert paired.points.value == pytest.approx(((4 - 5) + (-1 - -2)) / 2)
    assert paired.exam_score.value == pytest.approx(((4 - 1) - (5 - 2)) / 18)
    assert [(flip.question, flip.gold, flip.answers) for flip in found.flipped] == [
        (questions[1].key, 1, (1, 2)),
        (questions[2].key, 1, (2, 1)),
    ]


def test_a_question_without_gold_is_an_error(make_exam, key_of, predict) -> None:
    questions = make_exam("biology", 2013, size=2, options=4)
    with pytest.raises(DatasetError, match=r"biology-2013/2"):
        compare_exams(questions, key_of(questions[:1]), [predict(questions, "r")] * 2, [], group="discipline")


@pytest.mark.parametrize(("lost", "gained"), [(3, 9), (40, 61), (10, 10), (0, 1020), (120, 41), (26_700, 27_300)])
def test_mcnemar_is_that_of_statsmodels_and_the_binomial_sum(lost, gained) -> None:
    found = mcnemar_p(lost, gained)
    assert found == pytest.approx(mcnemar([[50, lost], [gained, 30]], exact=True).pvalue, rel=1e-9)
    assert found == pytest.approx(min(1.0, 2 * binom.cdf(min(lost, gained), lost + gained, 0.5)), rel=1e-9)


@pytest.mark.parametrize("flips", range(9))
def test_mcnemar_is_the_share_of_all_coin_rows_as_uneven(flips) -> None:
    for lost in range(flips + 1):
        rows = [row for row in product((0, 1), repeat=flips) if abs(2 * sum(row) - flips) >= abs(2 * lost - flips)]
        assert mcnemar_p(lost, flips - lost) == pytest.approx(len(rows) / 2**flips, abs=1e-15)


@pytest.mark.parametrize("seed", range(3))
def test_differences_are_those_of_the_runs_own_scores(seed, exams, compare) -> None:
    rng = np.random.default_rng(seed)
    questions = exams(int(rng.integers(2, 30)), 15)
    before, after = (_draw(rng, questions, weights) for weights in ((0.3, 0.6, 0.1), (0.4, 0.4, 0.2)))
    found, back = compare(questions, before, after), compare(questions, after, before)
    (mine, its), paired, reverse = found.metrics, found.pairs[0].paired, back.pairs[0].paired
    assert paired.baseline_accuracy == mine.accuracy
    for name in SCORES:
        there, returned = getattr(paired, name), getattr(reverse, name)
        assert there.value == pytest.approx(getattr(its, name) - getattr(mine, name), abs=1e-12)
        assert there.value == pytest.approx(-returned.value)
        assert there.interval == pytest.approx((-returned.interval[1], -returned.interval[0]))
    one, other = (np.array(list(run)) for run in (before, after))
    assert len(paired.flips.right_to_wrong) == ((one == "r") & (other != "r")).sum()
    assert paired.flips.both_wrong == ((one != "r") & (other != "r")).sum()
    assert paired.same_answer == pytest.approx((one == other).mean())
    assert (paired.flips.right_to_wrong, paired.flips.p) == (reverse.flips.wrong_to_right, reverse.flips.p)
    table = np.array([[((one == a) & (other == b)).sum() for b in "rwu"] for a in "rwu"])
    assert paired.kappa == pytest.approx(cohens_kappa(table).kappa)
    assert compare(questions, before, after) == found


def test_intervals_agree_with_a_bootstrap_written_out(exams, compare) -> None:
    rng = np.random.default_rng(1)
    questions = exams(30, 40)
    before, after = (_draw(rng, questions, weights) for weights in ((0.4, 0.6, 0), (0.5, 0.45, 0.05)))
    marks = np.array([[{"r": (1, 3), "w": (0, -1), "u": (0, 0)}[each] for each in run] for run in (before, after)])
    changes = (marks[1] - marks[0]).reshape(30, 40, 2).sum(axis=1)
    draws = changes[rng.integers(0, 30, size=(40_000, 30))].sum(axis=1)
    expected = {"accuracy": draws[:, 0] / 1200, "exam_score": draws[:, 1] / 3600, "points": draws[:, 1] / 30}
    paired = compare(questions, before, after).pairs[0].paired
    for name, values in expected.items():
        found, (low, high) = getattr(paired, name), np.percentile(values, [2.5, 97.5])
        assert found.resampled is Resampling.CLUSTERS
        assert found.interval == pytest.approx((low, high), abs=0.04 * (high - low))


def test_two_exams_have_the_questions_of_both_runs_drawn_together(compare, make_exam) -> None:
    questions = [*make_exam("biology", 2013, 60, 4), *make_exam("chemistry", 2014, 90, 4)]
    paired = compare(questions, "rrwwuwrwrw", "rwwrwrrwww").pairs[0].paired
    rng, counts = np.random.default_rng(5), {"r": (1, 3), "w": (0, -1), "u": (0, 0)}
    changes = np.array([np.subtract(counts[b], counts[a]) for a, b in zip("rrwwuwrwrw", "rwwrwrrwww", strict=True)])
    draws = [changes[rng.integers(0, 10, size=(20_000, n))].sum(axis=1) for n in (60, 90)]
    right, points = (sum(drawn[:, column] for drawn in draws) for column in (0, 1))
    expected = {"accuracy": right / 150, "exam_score": points / 450, "points": points / 2}
    for name, values in expected.items():
        found, (low, high) = getattr(paired, name), np.percentile(values, [2.5, 97.5])
        assert found.resampled is Resampling.WITHIN_EXAMS
        assert found.interval == pytest.approx((low, high), abs=0.04 * (high - low))


def test_a_group_is_compared_as_its_questions_alone_are(compare, make_exam) -> None:
    """Questions of three exams that stand in turns."""
    exams = [make_exam("biology", 2013, 12, 4), make_exam("medicine", 2015, 12, 4), make_exam("biology", 2015, 12, 4)]
    questions = [question for each in zip(*exams, strict=True) for question in each]
    runs = ["rwuwrrwwur", "wrrwrwwruu"]
    whole = compare(questions, *runs)
    for groups, group_of in (
        (whole.pairs[0].by_discipline, lambda question: question.exam.discipline),
        (whole.pairs[0].by_year, lambda question: str(question.exam.year)),
    ):
        for name, group in groups.items():
            places = [place for place, question in enumerate(questions) if group_of(question) == name]
            part = ["".join(run[place % 10] for place in places) for run in runs]
            alone = compare([questions[place] for place in places], *part).pairs[0].paired
            assert group.paired == alone
    assert sorted(whole.pairs[0].by_year) == ["2013", "2015"]


def test_a_run_beside_itself_differs_in_nothing(exams, compare) -> None:
    (pair,) = compare(exams(6, 10), "rwu", "rwu").pairs
    for difference in (pair.paired.accuracy, pair.paired.exam_score, pair.paired.points):
        assert (difference.value, difference.interval, difference.excludes_zero) == (0.0, (0.0, 0.0), False)
    assert (pair.paired.flips.p, pair.paired.same_answer, pair.paired.kappa) == (1.0, 1.0, pytest.approx(1.0))
    assert pair.verdict == "not told apart"


def test_one_exam_in_which_every_question_flips_has_no_interval(compare, make_exam) -> None:
    (pair,) = compare(make_exam("biology", 2013, 40, 4), "w", "r").pairs
    accuracy = pair.paired.accuracy
    assert (accuracy.value, accuracy.interval, accuracy.excludes_zero) == (1.0, None, True)
    assert accuracy.resampled is Resampling.ALIKE
    assert pair.verdict == "better"


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


def test_p_values_are_adjusted_over_all_pairs_and_over_all_groups(exams, compare) -> None:
    rng = np.random.default_rng(4)
    questions = exams(6, 20)
    runs = [_draw(rng, questions, (right, 0.9 - right, 0.1)) for right in (0.3, 0.33, 0.4, 0.55)]
    pairs = compare(questions, *runs).pairs
    families = [
        [(pair.paired, pair.p_adjusted) for pair in pairs],
        [(group.paired, group.p_adjusted) for pair in pairs for group in pair.by_discipline.values()],
        [(group.paired, group.p_adjusted) for pair in pairs for group in pair.by_year.values()],
    ]
    for family in families:
        known = multipletests([paired.flips.p for paired, _ in family], method="holm")[1]
        assert [adjusted for _, adjusted in family] == pytest.approx(known)
    assert [pair.verdict for pair in pairs] == [judge(pair.paired.accuracy, pair.p_adjusted) for pair in pairs]
    assert pairs[-1].verdict == "better"


def _answering(questions, numbers) -> dict[str, Prediction]:
    """A run that chose these options; None: no answer."""
    same = {"program": "p", "spec_digest": "d"}
    return {
        question.key: Prediction(question=question.key, status=Status.ANSWERED, answer=number, **same)
        if number
        else Prediction(question=question.key, status=Status.UNANSWERED, reason=Reason.UNPARSED, **same)
        for question, number in zip(questions, numbers, strict=True)
    }


@pytest.mark.parametrize(
    ("before", "after", "kappa"),
    [
        # Agreement 3/4; by chance 1/2 * 1/4 + 1/4 * 1/2 + 1/4 * 1/4.
        ((1, 1, 2, None), (1, 2, 2, None), (3 / 4 - 5 / 16) / (1 - 5 / 16)),
        ((2, 2, 2), (2, 2, 2), None),
        ((None,), (None,), None),
        ((1, 1, 1, 1), (2, 2, 2, 2), 0.0),
    ],
)
def test_kappa_by_hand(before, after, kappa, compare, make_exam) -> None:
    questions = make_exam("biology", 2013, len(before), 4)
    (pair,) = compare(questions, _answering(questions, before), _answering(questions, after)).pairs
    assert pair.paired.kappa == (kappa if kappa is None else pytest.approx(kappa))


def test_what_runs_have_right_together(compare, make_exam) -> None:
    questions = make_exam("biology", 2013, 6, 4)
    found = compare(questions, "rrwwuw", "rwrwww", "rwwrwu")
    together = found.together
    assert (together.n, together.any_right, together.all_right, together.none_right) == (6, 4, 1, 2)
    assert together.alone_right == (1, 1, 1)
    assert [flip.question for flip in found.flipped] == [question.key for question in questions[1:4]]
