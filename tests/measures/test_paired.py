"""Runs on the same questions, against hand-computed values, and against scipy, statsmodels and numpy."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.multitest import multipletests

from medexam.errors import DatasetError
from medexam.measures import Difference, Resampling, RunAnswers, find_benchmark, find_case, judge, mcnemar_p, pair_runs
from medexam.predictions import Prediction, Reason, Status
from medexam.questions import ExamSet
from medexam.specs import DatasetSpec

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

    def make(questions, *runs, key=None):
        marks = dict.fromkeys(("name", "version", "source", "fingerprint", "golds_fingerprint"), "")
        items = ExamSet(**marks, language="en", questions=tuple(questions), golds=key or key_of(questions))
        answers = [predict(questions, run) if isinstance(run, str) else run for run in runs]
        benchmark = find_benchmark(DatasetSpec(name="headqa_v1"))
        return pair_runs(benchmark, items, [items] * len(runs), [RunAnswers(lambda run=run: run) for run in answers])

    return make


def test_a_pair_by_hand(compare, make_exam) -> None:
    questions = [*make_exam("biology", 2013, 4, 4), *make_exam("medicine", 2015, 2, 4)]
    found = compare(questions, "rrwuww", "rwrwwu")
    measures = found.pairs[0].measures
    accuracy, flips = measures["accuracy"], measures["accuracy"].flips
    assert (accuracy.n, accuracy.clusters, accuracy.baseline, accuracy.other) == (6, 2, 2 / 6, 2 / 6)
    assert (flips.right_to_wrong, flips.wrong_to_right, flips.both_right, flips.both_wrong) == (1, 1, 1, 3)
    assert (accuracy.p, flips.same_answer, accuracy.difference.value) == (1.0, 2 / 6, 0.0)
    # Points: 5 and -2 before (6 - 1, 0 - 2), 4 and -1 after.
    assert measures["points"].difference.value == pytest.approx(((4 - 5) + (-1 - -2)) / 2)
    assert measures["exam_score"].difference.value == pytest.approx(((4 - 1) - (5 - 2)) / 18)
    assert np.ptp(found.sheet.first, axis=0).astype(bool).tolist() == [False, True, True, False, False, False]


def test_a_question_without_gold_is_an_error(compare, make_exam, key_of) -> None:
    questions = make_exam("biology", 2013, size=2, options=4)
    with pytest.raises(DatasetError, match=r"biology-2013/2"):
        compare(questions, "r", "r", key=key_of(questions[:1]))


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
    (mine, its), pair, reverse = found.metrics, found.pairs[0].measures, back.pairs[0].measures
    for name in SCORES:
        there, returned = pair[name].difference, reverse[name].difference
        assert (pair[name].baseline, pair[name].other) == (
            pytest.approx(mine.measure(name).value),
            pytest.approx(its.measure(name).value),
        )
        assert there.value == pytest.approx(its.measure(name).value - mine.measure(name).value, abs=1e-12)
        assert there.value == pytest.approx(-returned.value)
        assert there.interval == pytest.approx((-returned.interval[1], -returned.interval[0]))
    one, other = (np.array(list(run)) for run in (before, after))
    flips = pair["accuracy"].flips
    assert flips.right_to_wrong == ((one == "r") & (other != "r")).sum()
    assert flips.both_wrong == ((one != "r") & (other != "r")).sum()
    assert flips.same_answer == pytest.approx((one == other).mean())
    assert (flips.right_to_wrong, pair["accuracy"].p) == (
        reverse["accuracy"].flips.wrong_to_right,
        reverse["accuracy"].p,
    )
    table = np.array([[((one == a) & (other == b)).sum() for b in "rwu"] for a in "rwu"])
    assert flips.kappa == pytest.approx(cohens_kappa(table).kappa)
    assert compare(questions, before, after).pairs == found.pairs


def test_intervals_agree_with_a_bootstrap_written_out(exams, compare) -> None:
    rng = np.random.default_rng(1)
    questions = exams(30, 40)
    before, after = (_draw(rng, questions, weights) for weights in ((0.4, 0.6, 0), (0.5, 0.45, 0.05)))
    marks = np.array([[{"r": (1, 3), "w": (0, -1), "u": (0, 0)}[each] for each in run] for run in (before, after)])
    changes = (marks[1] - marks[0]).reshape(30, 40, 2).sum(axis=1)
    draws = changes[rng.integers(0, 30, size=(40_000, 30))].sum(axis=1)
    expected = {"accuracy": draws[:, 0] / 1200, "exam_score": draws[:, 1] / 3600, "points": draws[:, 1] / 30}
    measures = compare(questions, before, after).pairs[0].measures
    for name, values in expected.items():
        found, (low, high) = measures[name].difference, np.percentile(values, [2.5, 97.5])
        assert found.resampled is Resampling.CLUSTERS
        assert found.interval == pytest.approx((low, high), abs=0.04 * (high - low))


def test_two_exams_have_the_questions_of_both_runs_drawn_together(compare, make_exam) -> None:
    questions = [*make_exam("biology", 2013, 60, 4), *make_exam("chemistry", 2014, 90, 4)]
    measures = compare(questions, "rrwwuwrwrw", "rwwrwrrwww").pairs[0].measures
    rng, counts = np.random.default_rng(5), {"r": (1, 3), "w": (0, -1), "u": (0, 0)}
    changes = np.array([np.subtract(counts[b], counts[a]) for a, b in zip("rrwwuwrwrw", "rwwrwrrwww", strict=True)])
    draws = [changes[rng.integers(0, 10, size=(20_000, n))].sum(axis=1) for n in (60, 90)]
    right, points = (sum(drawn[:, column] for drawn in draws) for column in (0, 1))
    expected = {"accuracy": right / 150, "exam_score": points / 450, "points": points / 2}
    for name, values in expected.items():
        found, (low, high) = measures[name].difference, np.percentile(values, [2.5, 97.5])
        assert found.resampled is Resampling.WITHIN_EXAMS
        assert found.interval == pytest.approx((low, high), abs=0.04 * (high - low))


def test_a_group_is_compared_as_its_questions_alone_are(compare, make_exam) -> None:
    """Questions of three exams that stand in turns."""
    exams = [make_exam("biology", 2013, 12, 4), make_exam("medicine", 2015, 12, 4), make_exam("biology", 2015, 12, 4)]
    questions = [question for each in zip(*exams, strict=True) for question in each]
    runs = ["rwuwrrwwur", "wrrwrwwruu"]
    whole = compare(questions, *runs)
    for facet, group_of in (
        ("discipline", lambda question: question.exam.discipline),
        ("year", lambda question: str(question.exam.year)),
    ):
        for name, group in whole.by[facet][0].items():
            places = [place for place, question in enumerate(questions) if group_of(question) == name]
            part = ["".join(run[place % 10] for place in places) for run in runs]
            alone = compare([questions[place] for place in places], *part).pairs[0].measures["accuracy"]
            family = {"p_adjusted": alone.p_adjusted, "verdict": alone.verdict}
            assert group.model_copy(update=family) == alone
    assert list(whole.by["year"][0]) == ["2013", "2015"]


def test_a_run_beside_itself_differs_in_nothing(exams, compare) -> None:
    (pair,) = compare(exams(6, 10), "rwu", "rwu").pairs
    for name in SCORES:
        difference = pair.measures[name].difference
        assert (difference.value, difference.interval, difference.excludes_zero) == (0.0, None, False)
        assert difference.resampled is Resampling.ALIKE
    assert (pair.first.p, pair.first.flips.same_answer, pair.first.flips.kappa) == (1.0, 1.0, pytest.approx(1.0))
    assert find_case(pair).verdict == "not told apart"


def test_one_exam_in_which_every_question_flips_has_no_interval(compare, make_exam) -> None:
    (pair,) = compare(make_exam("biology", 2013, 40, 4), "w", "r").pairs
    accuracy = pair.first.difference
    assert (accuracy.value, accuracy.interval, accuracy.excludes_zero) == (1.0, None, True)
    assert accuracy.resampled is Resampling.ALIKE
    assert find_case(pair).verdict == "better"


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
    found = compare(questions, *runs)
    families = [
        [pair.first for pair in found.pairs],
        *([each for pair in found.by[facet] for each in pair.values()] for facet in ("discipline", "year")),
    ]
    for family in families:
        known = multipletests([each.p for each in family], method="holm")[1]
        assert [each.p_adjusted for each in family] == pytest.approx(known)
    assert [pair.first.verdict for pair in found.pairs] == [
        judge(pair.first.difference, pair.first.p_adjusted) for pair in found.pairs
    ]
    assert found.pairs[-1].first.verdict == "better"


def test_a_verdict_is_by_the_adjusted_p_value(exams, compare) -> None:
    """Six questions gained and none lost, one in each exam: p is 2 / 2**6, which three pairs treble."""
    questions = exams(6, 20)
    first, other = "w" * 120, ("r" + "w" * 19) * 6
    assert [pair.first.verdict for pair in compare(questions, first, other).pairs] == ["better"]
    pairs = compare(questions, first, other, other, other).pairs
    assert [(pair.first.p, pair.first.p_adjusted) for pair in pairs] == [pytest.approx((2 / 64, 6 / 64))] * 3
    assert [pair.first.verdict for pair in pairs] == ["not told apart"] * 3


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
    assert pair.first.flips.kappa == (kappa if kappa is None else pytest.approx(kappa))
