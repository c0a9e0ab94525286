import pytest

from medexam.errors import SpecError
from medexam.metrics.board import weigh

RUNS = {
    "bad": {"short": 0.2, "list": 0.4, "true_false": 0.6},
    "part": {"short": 0.9, "list": None, "true_false": 1.0},
    "good": {"short": 0.8, "list": 1.0, "true_false": 0.9},
}


def test_runs_stand_by_their_weighted_mean() -> None:
    board = weigh(RUNS, {"short": 3, "list": 1, "true_false": 0})
    assert [row.run for row in board.rows] == ["good", "bad", "part"]
    assert [row.weighted for row in board.rows] == pytest.approx([(3 * 0.8 + 1.0) / 4, (3 * 0.2 + 0.4) / 4, None])
    assert board.rows[0].scores == {"short": 0.8, "list": 1.0}
    assert board.mean is None


def test_a_run_without_a_rank_stands_last() -> None:
    board = weigh(RUNS, {"short": 1}, unranked={"part"})
    assert [row.run for row in board.rows] == ["good", "bad", "part"]


def test_the_mean_over_the_runs() -> None:
    board = weigh({name: RUNS[name] for name in ("bad", "good")}, {"short": 1, "true_false": 1})
    assert board.mean == pytest.approx((0.4 + 0.85) / 2)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"best": 1}, "a weight is given for 'best', which no run has; the groups are short, list, true_false"),
        ({"short": -1, "list": 2}, "weights must be 0 or more"),
        ({}, "at least one above 0"),
    ],
)
def test_weights_that_are_refused(weights: dict[str, float], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        weigh(RUNS, weights)
