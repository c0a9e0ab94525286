"""What is over its budget."""

from suite.costs import over_budget

BUDGET = {".": 10, "cli": 10, "serve": 10}


def test_a_folder_that_takes_three_times_its_seconds_is_over_budget() -> None:
    seconds = {"tests/test_a.py": 15.0, "tests/test_b.py": 15.0, "tests/cli/test_a.py": 4.0, "tests/serve/a/test.py": 4}
    assert over_budget(seconds, BUDGET) == {".": (30.0, 10)}


def test_a_slow_machine_may_take_longer_in_each_folder() -> None:
    slow = {"tests/test_a.py": 24.0, "tests/cli/test_a.py": 15.0, "tests/serve/test_a.py": 15.0}
    assert over_budget(slow, BUDGET) == {}
    assert over_budget({**slow, "tests/cli/test_a.py": 55.0}, BUDGET) == {"cli": (55.0, 10)}


def test_a_folder_without_a_budget_may_take_some_seconds() -> None:
    assert over_budget({"tests/new/test_a.py": 1.0, "collection": 1.0}, {"collection": 5}) == {}
    assert over_budget({"tests/new/test_a.py": 41.0, "collection": 1.0}, {"collection": 5}) == {"new": (41.0, 5.0)}
