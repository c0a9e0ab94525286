"""Runs on a board of weighted groups, by hand."""

import pytest

from medexam.errors import SpecError
from medexam.metrics import weigh

RUNS = {
    "bad": {"short": 0.2, "list": 0.4, "true_false": 0.6},
    "part": {"short": 0.9, "list": None, "true_false": 1.0},
    "good": {"short": 0.8, "list": 1.0, "true_false": 0.9},
}


def test_runs_stand_by_their_weighted_mean_and_one_without_a_rank_last() -> None:
    board = weigh(RUNS, {"short": 3, "list": 1, "true_false": 0})
    assert [row.run for row in board.rows] == ["good", "bad", "part"]
    assert [row.weighted for row in board.rows] == pytest.approx([(3 * 0.8 + 1.0) / 4, (3 * 0.2 + 0.4) / 4, None])
    assert board.mean is None
    assert [row.run for row in weigh(RUNS, {"short": 1}, unranked={"part"}).rows] == ["good", "bad", "part"]
    both = weigh({name: RUNS[name] for name in ("bad", "good")}, {"short": 1, "true_false": 1})
    assert both.mean == pytest.approx((0.4 + 0.85) / 2)


@pytest.mark.parametrize("weights", [{"best": 1}, {"short": -1, "list": 2}, {}])
def test_weights_that_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(SpecError, match="weight"):
        weigh(RUNS, weights)
