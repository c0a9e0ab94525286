"""The whole scorer: profiles, counts of malformed outputs, formats without items, and shared paragraphs."""

import pytest

from medexam_companions.cliniqlink import FORMATS

BOTH = pytest.mark.parametrize("profile", ["published", "paper"])


@BOTH
def test_perfect_replies_score_one(seven, perfect, score, profile) -> None:
    found = score(seven, perfect, profile)
    assert {kind: each.score for kind, each in found.formats.items()} == dict.fromkeys(FORMATS, 1.0)
    assert list(found.formats) == list(FORMATS)
    assert found.overall == found.forgiving_overall == 1.0
    assert found.formats["multi_hop_inverse"].measures["step_rate"] == 1.0
    assert all(not each.malformed and each.n == 1 for each in found.formats.values())


def test_malformed_outputs_are_counted_by_kind(seven, score) -> None:
    replies = [
        "The answer is True",
        "B",
        "- Liver\n- Spleen",
        "what?",
        "WHAT? ",
        "<think>Resistance develops.",
        "The link is baseless.",
    ]
    found = score(seven, replies)
    assert {kind: each.malformed for kind, each in found.formats.items()} == {
        "true_false": {"no verdict": 1},
        "multiple_choice": {"not an option": 1},
        "list": {"unmatched piece": 1},
        "short": {"echo": 1},
        "short_inverse": {"echo": 1},
        "multi_hop": {"unclosed reasoning": 1},
        "multi_hop_inverse": {"no step": 1, "no explanation": 1},
    }
    closed = [found.formats[kind] for kind in ("true_false", "multiple_choice", "list")]
    assert [(each.score, each.forgiving) for each in closed] == [(0.0, 1.0)] * 3
    assert found.formats["multiple_choice"].matches == {"letter": 1}
    assert found.formats["short"].score == 0.0
    assert "short/k" not in found.run.items["pieces"]
    inverse = found.formats["multi_hop_inverse"]
    assert (inverse.score, inverse.measures["step_rate"]) == (1.0, 0.0)
    assert found.overall == pytest.approx((1.0 + found.formats["multi_hop"].score) / 7)
    assert found.forgiving_overall == pytest.approx(found.overall + 3 / 7)


def test_a_format_without_items(seven, perfect, score) -> None:
    assert score(seven[:4], perfect[:4]).overall == pytest.approx(4 / 7)
    assert score(seven[:4], perfect[:4], "paper").overall is None


@BOTH
def test_list_items_without_options_are_dropped_and_counted(make_item, score, profile) -> None:
    items = [make_item("list", ["red"], ["red", "blue"], key="1"), make_item("list", ["red"], key="2")]
    found = score(items, ["red", "red"], profile).formats["list"]
    assert (found.n, found.dropped, found.score, found.items) == (1, 1, 1.0, {"list/1": 1.0})


def test_the_last_of_a_paragraph_counts_in_keyed_results_of_the_published_profile(make_item, score) -> None:
    lines = ("Step 1 is wrong", "Explanation: no link")
    items = [
        make_item("list", ["red"], ["red", "blue"], key="1", paragraph="p"),
        make_item("list", ["blue"], ["red", "blue"], key="2", paragraph="p"),
        make_item("multi_hop_inverse", "x", key="3", incorrect_step=lines, paragraph="q"),
        make_item("multi_hop_inverse", "x", key="4", incorrect_step=lines, paragraph="q"),
        make_item("true_false", "True", key="5", paragraph="p"),
        make_item("true_false", "True", key="6", paragraph="p"),
    ]
    right = "Step 1. Explanation: no link"
    replies = ["red", "red", right, "Step 3. Explanation: no link", "True", "False"]
    published, paper = (score(items, replies, profile).formats for profile in ("published", "paper"))
    assert (published["list"].score, paper["list"].score) == (0.0, 0.5)
    assert published["multi_hop_inverse"].measures["step_rate"] == 0.0
    for found in (published, paper):
        assert found["true_false"].score == 0.5
        assert found["multi_hop_inverse"].score == pytest.approx(0.65)
