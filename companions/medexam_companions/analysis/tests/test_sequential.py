"""The sequential test: against its definition question by question, against likelihood ratios, and by simulation."""

import itertools

import numpy as np
import pytest

from medexam_companions.analysis import SequentialTest

TEST = SequentialTest(0.05, 0.8)
REPLAYS = 10_000
LOOKS = np.arange(20, 1021, 20)


def capital(differences, mean, bets) -> float:
    """The mean capital of the bets, question after question."""
    capitals = []
    for bet in bets:
        each = 1.0
        for difference in differences:
            each *= 1 + bet * (difference - mean)
        capitals.append(each)
    return sum(capitals) / len(capitals)


@pytest.mark.parametrize(("gained", "lost", "n"), [(30, 12, 150), (5, 5, 40), (0, 9, 60), (0, 0, 20)])
def test_the_evidence_is_what_bets_on_every_question_win(gained, lost, n) -> None:
    differences = np.random.default_rng(1).permutation([1] * gained + [-1] * lost + [0] * (n - gained - lost))
    found = TEST.evidence(gained, lost, n)
    bets = (0.05 / 0.3, 0.1 / 0.3)
    assert found["better"] == pytest.approx(capital(differences, 0, bets), rel=1e-9)
    assert found["worse"] == pytest.approx(capital(-differences, 0, bets), rel=1e-9)
    below, above = (capital(signed, -0.05, (0.1, 0.05 / 0.3)) for signed in (differences, -differences))
    assert found["no difference"] == pytest.approx(min(below, above), rel=1e-9)


def test_decisions_agree_with_the_interval() -> None:
    for gained, lost in itertools.product(range(0, 60, 4), repeat=2):
        low, high = TEST.interval(gained, lost, 300)
        assert -1 <= low <= (gained - lost) / 300 <= high <= 1
        ending = TEST.decide(gained, lost, 300)
        assert (ending == "better") == (low > 0)
        assert (ending == "worse") == (high < 0)
    low, high = TEST.interval(40, 20, 300)
    assert capital([1] * 40 + [-1] * 20 + [0] * 240, low, (0.05 / 0.3, 0.1 / 0.3)) == pytest.approx(40, rel=1e-6)
    assert capital([-1] * 40 + [1] * 20 + [0] * 240, -high, (0.05 / 0.3, 0.1 / 0.3)) == pytest.approx(40, rel=1e-6)


@pytest.mark.nightly
@pytest.mark.parametrize(("difference", "flipped"), [(0.05, 0.3), (0.03, 0.15), (0.1, 0.5)])
def test_its_errors_stay_below_their_bounds_over_ten_thousand_replays(difference, flipped) -> None:
    test = SequentialTest(difference, 0.8)
    for true in (0.0, difference):
        gained, lost = _simulate(true, flipped)
        found = test.evidence(gained, lost, LOOKS)
        wrong_side = "worse" if true else "better"
        assert (found[wrong_side] >= test.needed[wrong_side]).any(axis=1).mean() < 0.025 + _error(0.025)
        if true:
            assert (found["no difference"] >= test.needed["no difference"]).any(axis=1).mean() < 0.2 + _error(0.2)


def test_extreme_counts_overflow_nothing() -> None:
    found = TEST.evidence(10**6, 0, 10**6)
    assert np.isfinite(found["better"])
    assert TEST.decide(10**6, 0, 10**6) == "better"
    assert SequentialTest(0.5, 0.95).decide(0, 0, 10**6) == "no difference"
    assert TEST.interval(0, 0, 0) == (-1.0, 1.0)


def _simulate(true: float, flipped: float):
    """Counts of gained and lost questions at every look; one row a replay."""
    chances = [(flipped + true) / 2, (flipped - true) / 2, 1 - flipped]
    blocks = np.random.default_rng(7).multinomial(20, chances, size=(REPLAYS, len(LOOKS)))
    counts = blocks.cumsum(axis=1)
    return counts[:, :, 0], counts[:, :, 1]


def _error(rate: float) -> float:
    """Three standard errors of a rate over the replays."""
    return 3 * (rate * (1 - rate) / REPLAYS) ** 0.5
