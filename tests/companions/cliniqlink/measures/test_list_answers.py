"""Lists: the strict reading, the kind one, and the figures against hand counts and scikit-learn."""

import random

import ir_measures
import pytest
from ir_measures import AP, RR, P
from sklearn.metrics import f1_score
from sklearn.preprocessing import MultiLabelBinarizer

from medexam.companions.cliniqlink.measures.closed import forgiven_list
from medexam.companions.cliniqlink.measures.lists import (
    Picks,
    gold_labels,
    label_macro_f1,
    list_figures,
    micro_f1,
    read_list_answer,
)
from medexam.companions.cliniqlink.measures.ranking import RankedList, ranking_figures

ORGANS = ["Heart", "Liver", "Left, upper lobe", "Head and neck", "Spleen"]
"""A to E; one holds a comma, one an "and"."""


@pytest.mark.parametrize(
    ("text", "picks", "malformed"),
    [
        ("Heart, Liver", ["heart", "liver"], False),
        ("liver,HEART,", ["liver", "heart"], False),
        ("Heart, Heart", ["heart"], False),
        ("Heart, Liver\n\nBecause they do.", ["heart", "liver"], False),
        ("A, B", ["heart", "liver"], False),
        ("a,e", ["heart", "spleen"], False),
        ("A: Heart, B: Liver", ["heart", "liver"], False),
        ("A. Heart\nB. Liver", ["heart", "liver"], False),
        ("(A): Heart", ["heart"], False),
        ("E: Heart", ["heart"], False),
        ("Left, upper lobe, Liver", ["left, upper lobe", "liver"], False),
        ("C: Left, upper lobe", ["left, upper lobe"], False),
        ("Head and neck", ["head and neck"], False),
        ("The correct options are: Heart, Liver", ["heart", "liver"], False),
        ("They would be: Heart, Liver", ["heart", "liver"], False),
        ("The options: Heart, Liver", ["the options: heart"], True),
        ("Heart, Lung", ["lung"], True),
        ("A: Heart, B: Lung", ["b: lung"], True),
        ("F, Heart", ["f"], True),
        ("Heart\nLiver", ["heart liver"], True),
        ("- Heart\n- Liver", ["heart liver"], True),
        ("Heart; Liver", ["heart liver"], True),
        ("Heart and Liver", ["heart and liver"], True),
        ("A) Heart, B) Liver", ["a heart", "b liver"], True),
        ("Left", ["left"], True),
        ("", [], False),
        (" , ", [], False),
    ],
)
def test_strict_reading(make_item, text: str, picks: list[str], malformed: bool) -> None:
    reading = read_list_answer(make_item("list", ["Heart"], ORGANS), text)
    assert (list(reading.picks), reading.malformed) == (picks, malformed)


@pytest.mark.parametrize(
    ("text", "picks"),
    [
        ("Heart, Liver", ["heart", "liver"]),
        ("Heart\nLiver", ["heart", "liver"]),
        ("- Heart\n- Liver", ["heart", "liver"]),
        ("* **Heart**\n* **Liver**", ["heart", "liver"]),
        ("1. Heart\n2) Liver", ["heart", "liver"]),
        ("Heart; Liver; Spleen.", ["heart", "liver", "spleen"]),
        ("Heart and Liver", ["heart", "liver"]),
        ("Heart, Liver, and Head and neck", ["heart", "liver", "head and neck"]),
        ("Left, upper lobe and Spleen", ["left, upper lobe", "spleen"]),
        ("A) Heart, B) Liver", ["heart", "liver"]),
        ("A) and B)", ["heart", "liver"]),
        ("(A) Heart; (E) Spleen", ["heart", "spleen"]),
        ("A - Heart\nB - Liver", ["heart", "liver"]),
        ("The correct answers are: Heart and Spleen", ["heart", "spleen"]),
        ("Here are the options:\n\n- Heart\n- Liver\n\nThey are organs.", ["heart", "liver"]),
        ("Options:\n- Heart\n- Liver", ["heart", "liver"]),
        ("Heart, Lung", ["heart", "lung"]),
        ("Heart, Z", ["heart", "z"]),
        ("Lung", ["lung"]),
        ("", []),
    ],
)
def test_kind_reading(make_item, text: str, picks: list[str]) -> None:
    assert list(forgiven_list(make_item("list", ["Heart"], ORGANS), text).picks) == picks


@pytest.mark.parametrize(
    ("gold", "options", "strict", "kind"),
    [
        (["Heart", "B"], ["Heart", "Liver"], {"heart", "liver"}, {"heart", "liver"}),
        (["a. Heart", "B: Liver"], ["Heart", "Liver"], {"heart", "liver"}, {"heart", "liver"}),
        (["A fib"], ["A fib", "Flutter"], {"fib"}, {"a fib"}),
        (["Apo B-48"], ["Apo B-48", "Apo C"], {"apo b 48"}, {"apo b 48"}),
        (["Heart"], ["A. Heart", "B: Liver"], {"heart"}, {"heart"}),
        (["Lung"], ["Heart"], {"lung"}, {"lung"}),
    ],
)
def test_golds(make_item, gold, options, strict, kind) -> None:
    item = make_item("list", gold, options)
    assert gold_labels(item) == strict
    assert forgiven_list(item, "").gold == kind


def test_a_gold_behind_a_letter_can_be_named_by_the_kind_reading_alone(make_item) -> None:
    item = make_item("list", ["A fib"], ["A fib", "Flutter"])
    assert Picks(gold_labels(item), read_list_answer(item, "A fib").picks).f1 == 0
    assert forgiven_list(item, "A fib").f1 == 1


def test_options_beyond_z_are_reached_by_text(make_item) -> None:
    names = [f"option {n}" for n in range(36)]
    item = make_item("list", [names[27], names[35]], names)
    assert read_list_answer(item, "option 27, option 35").picks == ("option 27", "option 35")
    assert read_list_answer(item, "[: option 26, a: option 35").picks == ("option 26", "option 35")
    assert read_list_answer(item, "d").picks == ("option 3",)


def test_a_letter_may_be_a_part_of_an_option(make_item) -> None:
    item = make_item("list", ["Heart"], ["Heart", "Liver", "Lung", "Spleen", "E coli"])
    assert read_list_answer(item, "See E. coli").picks == ("e coli",)
    assert read_list_answer(item, "See A. coli").malformed


def test_a_malformed_answer_is_ranked_with_its_matched_picks(make_item) -> None:
    item = make_item("list", ["Heart", "Spleen"], ORGANS)
    reading = read_list_answer(item, "Heart, Lung, Spleen")
    assert (reading.picks, reading.ranked) == (("lung",), ("heart", "lung", "spleen"))
    ranked = RankedList(gold_labels(item), reading.ranked)
    assert (ranked.precision_at_5, ranked.reciprocal_rank) == (0.4, 1.0)
    assert ranked.average_precision == pytest.approx((1 + 2 / 3) / 2)
    assert RankedList(gold_labels(item), ("x",) * 5 + ("heart",)).precision_at_5 == 0.0
    assert ranking_figures([]) is None


def test_rankings_have_the_figures_of_ir_measures(make_item) -> None:
    """Answers are built from known picks, options and others, so that nothing of the reading is taken for granted."""
    draw = random.Random(11)
    options = [f"organ {n}" for n in range(9)]
    items, qrels, run = [], [], []
    for query in range(50):
        gold = draw.sample(options, draw.randint(1, 6))
        named = draw.sample([*options, "nothing", "else", "known"], draw.randint(1, 9))
        item = make_item("list", gold, options)
        items.append(RankedList(gold_labels(item), read_list_answer(item, ", ".join(named)).ranked))
        qrels += [ir_measures.Qrel(str(query), text, 1) for text in gold]
        run += [ir_measures.ScoredDoc(str(query), text, -rank) for rank, text in enumerate(named)]
    expected = ir_measures.calc_aggregate([AP, RR, P @ 5], qrels, run)
    found = ranking_figures(items)
    assert found.mean_average_precision == pytest.approx(expected[AP])
    assert found.mean_reciprocal_rank == pytest.approx(expected[RR])
    assert found.precision_at_5 == pytest.approx(expected[P @ 5])


def _picks(gold: str, picks: str) -> Picks:
    return Picks(frozenset(gold.split()), tuple(picks.split()))


@pytest.mark.parametrize(
    ("items", "label", "item", "micro"),
    [
        ([("a b c", "a b d")], 0.5, 2 / 3, 2 / 3),
        ([("a b", "a b"), ("c d", "c e")], 0.6, 0.75, 0.75),
        ([("0 1 2 3 4 5 6 7 8 9", "0"), ("x", "x")], 0.1818, 0.5909, 0.3077),
        ([("a b", "b a")], 1.0, 1.0, 1.0),
        ([("a b", "")], 0.0, 0.0, 0.0),
        ([("", "")], 0.0, 0.0, 0.0),
        ([("a", "a"), ("a", "")], 2 / 3, 0.5, 2 / 3),
    ],
)
def test_the_three_f1_differ(items, label: float, item: float, micro: float) -> None:
    figures = list_figures([_picks(*each) for each in items])
    found = (figures.label_macro_f1, figures.item_macro_f1, figures.micro_f1)
    assert found == pytest.approx((label, item, micro), abs=5e-5)


def test_label_figures_are_those_of_scikit_learn() -> None:
    draw = random.Random(7)
    for _ in range(60):
        labels = [f"l{n}" for n in range(draw.randint(2, 12))]
        items = [
            Picks(
                frozenset(draw.sample(labels, draw.randint(1, len(labels)))),
                tuple(draw.sample(labels, draw.randint(0, len(labels)))),
            )
            for _ in range(draw.randint(1, 9))
        ]
        matrix = MultiLabelBinarizer().fit([item.gold | set(item.picks) for item in items])
        gold, said = matrix.transform([i.gold for i in items]), matrix.transform([i.picks for i in items])
        assert label_macro_f1(items) == pytest.approx(f1_score(gold, said, average="macro", zero_division=0))
        assert micro_f1(items) == pytest.approx(f1_score(gold, said, average="micro", zero_division=0))


def test_no_items_no_figures() -> None:
    assert list_figures([]) is None
