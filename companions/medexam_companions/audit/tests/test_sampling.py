"""The sample is even, repeatable and paired, and a larger one holds a smaller one."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from medexam_companions.audit import AuditItem, choose_sample

ANSWERS = st.sets(st.tuples(st.sampled_from("ab"), st.sampled_from(["list", "short"]), st.integers(0, 9)), max_size=40)


def keys(sample):
    return [(item.run, item.key) for item in sample]


def make_items(runs):
    """So many questions of each run in each of two groups."""
    return [
        AuditItem(f"{group}/{number}", run, group, "", "", "", {})
        for run, count in runs.items()
        for group in ("list", "short")
        for number in range(count)
    ]


def test_runs_and_groups_are_even_and_paired() -> None:
    sample = choose_sample(make_items({"one": 20, "two": 20, "three": 20}), 5, seed=1)
    assert set(Counter((item.run, item.group) for item in sample).values()) == {5}
    assert set(Counter(item.key for item in sample).values()) == {3}


def test_shared_questions_come_first_and_the_others_fill_up() -> None:
    sample = choose_sample(make_items({"long": 20, "short": 3}), 5, seed=1)
    assert Counter(item.run for item in sample) == {"long": 10, "short": 6}
    assert Counter(Counter(item.key for item in sample).values()) == {2: 6, 1: 4}


def test_the_seed_and_nothing_else_decides() -> None:
    items = make_items({"one": 20})
    drawn = [keys(choose_sample(items, 5, seed)) for seed in range(4)]
    assert len({tuple(each) for each in drawn}) == 4
    assert sorted(keys(choose_sample(items[::-1], 5, 2))) == sorted(drawn[2])


@settings(deadline=None)
@given(ANSWERS, st.integers(1, 6), st.integers(0, 3))
def test_a_larger_sample_holds_a_smaller_one(answers, per_group, seed) -> None:
    items = [AuditItem(f"{group}/{n}", run, group, "", "", "", {}) for run, group, n in sorted(answers)]
    small, large = (choose_sample(items, size, seed) for size in (per_group, per_group + 1))
    assert set(keys(small)) <= set(keys(large))
    available = Counter((item.run, item.group) for item in items)
    found = Counter((item.run, item.group) for item in small)
    assert found == {part: min(per_group, count) for part, count in available.items()}
    assert keys(small) == [each for each in keys(items) if each in set(keys(small))]
