"""The whole scorer: profiles, counts of malformed outputs, what is refused, and boards of several runs."""

import pytest

from medexam.errors import DatasetError
from medexam_companions.cliniqlink import PAPER, PUBLISHED, Format, score_cliniqlink

BOTH = pytest.mark.parametrize("profile", [PUBLISHED, PAPER], ids=lambda profile: profile.name)


@BOTH
def test_perfect_replies_score_one(seven, perfect, letters, profile) -> None:
    found = score_cliniqlink(seven, perfect, letters, profile=profile)
    assert found.profile == profile.name
    assert list(found.formats) == list(Format)
    assert {kind: each.score for kind, each in found.formats.items()} == dict.fromkeys(Format, 1.0)
    assert found.overall == found.forgiving_overall == 1.0
    assert found.formats[Format.MULTI_HOP_INVERSE].step_rate == 1.0
    assert all(not each.malformed and each.n == 1 for each in found.formats.values())
    assert found.ngrams is None


def test_malformed_outputs_are_counted_by_kind(seven, letters) -> None:
    replies = {
        "tf": "The answer is True",
        "mc": "B",
        "list": "- Liver\n- Spleen",
        "short": "what?",
        "short_inverse": "WHAT? ",
        "multi_hop": "<think>Resistance develops.",
        "inverse": "The link is baseless.",
    }
    found = score_cliniqlink(seven, replies, letters)
    assert {kind: each.malformed for kind, each in found.formats.items()} == {
        Format.TRUE_FALSE: {"no verdict": 1},
        Format.MULTIPLE_CHOICE: {"not an option": 1},
        Format.LIST: {"unmatched piece": 1},
        Format.SHORT: {"echo": 1},
        Format.SHORT_INVERSE: {"echo": 1},
        Format.MULTI_HOP: {"unclosed reasoning": 1},
        Format.MULTI_HOP_INVERSE: {"no step": 1, "no explanation": 1},
    }
    closed = [found.formats[kind] for kind in (Format.TRUE_FALSE, Format.MULTIPLE_CHOICE, Format.LIST)]
    assert [(each.score, each.forgiving) for each in closed] == [(0.0, 1.0)] * 3
    assert found.formats[Format.MULTIPLE_CHOICE].matches == {"letter": 1}
    assert found.formats[Format.SHORT].score == 0.0
    assert found.formats[Format.SHORT].layers == {}
    inverse = found.formats[Format.MULTI_HOP_INVERSE]
    assert (inverse.score, inverse.step_rate) == (1.0, 0.0)
    assert found.overall == pytest.approx((1.0 + found.formats[Format.MULTI_HOP].score) / 7)
    assert found.forgiving_overall == pytest.approx(found.overall + 3 / 7)


def test_profiles_part_in_the_list_score_and_the_step_penalty(make_item, letters) -> None:
    items = [
        make_item("list", ["red", "blue"], ["red", "blue"], key="1"),
        make_item("list", ["one", "two"], ["one", "two", "six"], key="2"),
        make_item("multi_hop_inverse", "x", key="3", incorrect_step=("Step 1 is wrong", "Explanation: no link")),
    ]
    replies = {"1": "red, blue", "2": "one, six", "3": "Step 4. Explanation: no link"}
    published = score_cliniqlink(items, replies, letters).formats
    paper = score_cliniqlink(items, replies, letters, profile=PAPER).formats
    assert (published[Format.LIST].score, paper[Format.LIST].score) == pytest.approx((0.6, 0.75))
    assert published[Format.LIST].items == paper[Format.LIST].items == {"1": 1.0, "2": 0.5}
    assert published[Format.MULTI_HOP_INVERSE].score == pytest.approx(0.15)
    assert paper[Format.MULTI_HOP_INVERSE].score == pytest.approx(0.3)


def test_a_format_without_items(seven, perfect, letters) -> None:
    items, replies = seven[:4], {item.key: perfect[item.key] for item in seven[:4]}
    published = score_cliniqlink(items, replies, letters)
    assert published.overall == pytest.approx(4 / 7)
    paper = score_cliniqlink(items, replies, letters, profile=PAPER)
    assert paper.overall is None
    without = {each.format for each in paper.formats.values() if each.score is None}
    assert without == {Format.SHORT_INVERSE, Format.MULTI_HOP, Format.MULTI_HOP_INVERSE}


@BOTH
def test_list_items_without_options_are_dropped_and_counted(make_item, profile) -> None:
    items = [make_item("list", ["red"], ["red", "blue"], key="1"), make_item("list", ["red"], key="2")]
    found = score_cliniqlink(items, {"1": "red", "2": "red"}, profile=profile).formats[Format.LIST]
    assert (found.n, found.without_options, found.score, found.items) == (1, 1, 1.0, {"1": 1.0})


def test_the_last_of_a_paragraph_counts_in_keyed_results_of_the_published_profile(make_item, letters) -> None:
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
    replies = {"1": "red", "2": "red", "3": right, "4": "Step 3. Explanation: no link", "5": "True", "6": "False"}
    published = score_cliniqlink(items, replies, letters).formats
    paper = score_cliniqlink(items, replies, letters, profile=PAPER).formats
    assert (published[Format.LIST].score, paper[Format.LIST].score) == (0.0, 0.5)
    assert (published[Format.MULTI_HOP_INVERSE].step_rate, paper[Format.MULTI_HOP_INVERSE].step_rate) == (0.0, 0.5)
    for found in (published, paper):
        assert found[Format.TRUE_FALSE].score == 0.5
        assert found[Format.MULTI_HOP_INVERSE].score == pytest.approx(0.65)


def test_the_baseline_and_its_seed_are_in_the_result(make_item, letters) -> None:
    items = [make_item("short", f"{chr(97 + n % 26)} organ {n}", key=str(n)) for n in range(100)]
    replies = {item.key: "liver" for item in items}
    found = score_cliniqlink(items, replies, letters, seed=5)
    assert (found.baseline.seed, found.baseline.references) == (5, 100)
    assert score_cliniqlink(items, replies, letters, seed=5) == found
    assert score_cliniqlink(items, replies, letters, references=["a"]).baseline.cosine == 0.3
    assert score_cliniqlink([make_item("true_false", "True")], {"k": "True"}).baseline is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.pop("mc"), "^7 items and 6 replies: item 'mc' has no reply"),
        (lambda r: r.update(z="x"), "^7 items and 8 replies: the reply 'z' belongs to no item"),
        (lambda r: r.update(z=r.pop("tf")), "^7 items and 7 replies: item 'tf' has no reply"),
        (lambda r: r.update(tf=None), "^the reply 'tf' is of type NoneType"),
    ],
)
def test_items_and_replies_that_do_not_belong_together(seven, perfect, letters, change, message: str) -> None:
    change(perfect)
    with pytest.raises(DatasetError, match=message) as caught:
        score_cliniqlink(seven, perfect, letters)
    assert "\n" not in str(caught.value)
