"""The files that the fast tier leaves out are there."""

from pathlib import Path

from suite.tiers import SECONDS


def test_what_the_fast_tier_leaves_out_is_there() -> None:
    tests = Path(__file__).parents[1]
    assert [place for place in SECONDS if not (tests / place.partition("::")[0]).exists()] == []
