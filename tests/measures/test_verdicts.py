"""What may be said of two runs: never that one wins where the form of the replies alone differs."""

from itertools import cycle, product

import numpy as np
import pytest

from medexam.measures import (
    CASES,
    Pair,
    Paired,
    Sheet,
    compare_all,
    find_case,
    judge,
    leader_sentence,
    mcnemar_p,
    pair_sentences,
)

N, EXAMS, OPTIONS = 240, 8, 4
SHARES = (0.0, 0.2, 0.4, 0.6)
UNREAD = -1


def _paired(strict, lenient) -> Paired:
    """Two runs as they are scored strictly, beside both readings; answers are numbers, of which 0 is right."""

    def read(answers) -> Paired:
        sheet = Sheet(
            [f"q/{place}" for place in range(N)],
            [str(place % EXAMS) for place in range(N)],
            {"accuracy": (answers == 0) * 1.0},
            answers=answers,
            unread=answers == UNREAD,
        )
        return Paired((), sheet, tuple(map(Pair, compare_all(sheet))), "exams")

    strictly = read(strict)
    differ = (strict != lenient).any()
    return strictly.with_views({"read strictly": strictly, "read leniently": read(lenient)} if differ else {})


def _simulate(rng, truth, unread, only_lenient):
    """Both runs' replies: those that nobody reads by these shares, and those that the lenient reader alone reads."""
    strict, lenient = truth.copy(), truth.copy()
    for run in (0, 1):
        lost = rng.random(N) < unread[run]
        loose = rng.random(N) < only_lenient[run]
        lenient[run][lost] = UNREAD
        strict[run][lost | loose] = UNREAD
    return strict, lenient


def _draw(rng, accuracy: float):
    return np.where(rng.random(N) < accuracy, 0, rng.integers(1, OPTIONS, N))


def _verdict(paired: Paired) -> str:
    return find_case(paired.pairs[0]).verdict


def test_the_same_answers_in_another_form_never_win() -> None:
    rng, decided = np.random.default_rng(1), 0
    forms = cycle(product(SHARES, SHARES, (0.0, 0.3, 0.6)))
    for place, (first, second, loose) in zip(range(200), forms, strict=False):
        answers = _draw(rng, 0.3 + 0.5 * rng.random())
        shares = (0.0, loose) if place % 2 else (loose, 0.0)
        paired = _paired(*_simulate(rng, np.stack([answers, answers]), (first, second), shares))
        assert _verdict(paired) == "not told apart"
        decided += "The form of the replies decides" in pair_sentences(paired, ["a", "b"])[0]
    assert decided > 50


def test_runs_of_equal_accuracy_win_no_more_often_than_the_test_allows() -> None:
    rng = np.random.default_rng(2)
    told = []
    for place in range(200):
        truth = np.stack([_draw(rng, 0.5), _draw(rng, 0.5)])
        unread, loose = SHARES[place % 4], SHARES[place // 4 % 4]
        told.append(_verdict(_paired(*_simulate(rng, truth, (unread, 0.0), (0.0, loose)))))
    assert sum(each != "not told apart" for each in told) <= 0.05 * 200


def test_power_is_that_of_mcnemar_where_all_is_read_and_where_as_much_is_unread_of_both() -> None:
    rng = np.random.default_rng(3)
    for share in (0.0, 0.3):
        told, tested = [], []
        for _ in range(50):
            truth = np.stack([_draw(rng, 0.5), _draw(rng, 0.72)])
            strict, lenient = _simulate(rng, truth, (share, share), (0.0, 0.0))
            told.append(_verdict(_paired(strict, lenient)) == "better")
            both = (lenient != UNREAD).all(axis=0)
            right = lenient[:, both] == 0
            tested.append(mcnemar_p((right[0] & ~right[1]).sum(), (right[1] & ~right[0]).sum()) < 0.05)
        assert np.mean(told) >= np.mean(tested) - (0.1 if share == 0 else 0.3)
        assert np.mean(told) > 0.6


def test_where_all_is_read_the_verdict_is_that_of_interval_and_test() -> None:
    rng = np.random.default_rng(4)
    for accuracy in (0.5, 0.55, 0.6, 0.7, 0.4):
        truth = np.stack([_draw(rng, 0.5), _draw(rng, accuracy)])
        paired = _paired(truth, truth)
        first = paired.pairs[0].first
        assert not paired.pairs[0].views
        assert _verdict(paired) == judge(first.difference, first.p)


def test_every_combination_of_readings_stands_once_in_the_table() -> None:
    for found, over_noise in product(("better", "worse", "not told apart", None), (True, False)):
        (case,) = (case for case in CASES if case.result == found and case.over_noise in (None, over_noise))
        assert case.verdict == (found if found and over_noise else "not told apart")


def test_a_difference_under_the_noise_of_repeats_is_none() -> None:
    truth = np.stack([np.arange(N) % 4, np.zeros(N, dtype=int)])
    paired = _paired(truth, truth)
    assert _verdict(paired) == "better"
    assert _verdict(paired.with_views({}, [0.8])) == "not told apart"


@pytest.fixture
def three() -> Paired:
    """A leading run that is better than one, and than another in form alone."""
    rng = np.random.default_rng(5)
    best = _draw(rng, 0.8)
    strict = np.stack([best, _draw(rng, 0.4), np.where(np.arange(N) % 2, UNREAD, best)])
    sheet_of = _paired(strict[:2], strict[:2])
    assert sheet_of.pairs[0].first.verdict == "worse"
    return _paired(strict, np.stack([*strict[:2], best]))


def test_the_leader_is_not_called_best_where_the_form_decides(three) -> None:
    sentence = leader_sentence(three, ["guided", "weak", "free"])
    assert sentence.startswith("guided is first in accuracy, but the form of the replies decides whether it differs")
    assert "beside free" in sentence
    assert "read strictly +" in sentence
    assert "read leniently 0.0" in sentence
