"""What may be said of two runs: never that one wins where the form of the replies alone differs."""

from itertools import cycle, product

import numpy as np

from medexam.measures import Paired, Sheet, find_case, judge, mcnemar_p

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
        return Paired.of((), sheet, "exams")

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
        decided += find_case(paired.pairs[0]).sentence.startswith("The form of the replies decides")
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


def test_a_verdict_is_what_all_readings_find_over_the_noise_of_repeats() -> None:
    some, right = np.arange(N) % OPTIONS, np.zeros(N, dtype=int)

    def read(*runs) -> Paired:
        return _paired(np.stack(runs), np.stack(runs))

    for first, other, verdict in ((some, right, "better"), (right, some, "worse"), (some, some, "not told apart")):
        found = read(first, other)
        for views, floor in product(({}, {"a": found, "b": read(other, first)}), (None, 0.8)):
            expected = "not told apart" if views or floor else verdict
            assert _verdict(found.with_views(views, [floor])) == expected
