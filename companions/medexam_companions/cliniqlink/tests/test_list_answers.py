"""Lists: the strict reading, the kind one, and the figures against hand counts, scikit-learn and ir-measures."""

import random
from pathlib import Path

import ir_measures
import pytest
from ir_measures import AP, RR, P
from sklearn.metrics import f1_score
from sklearn.preprocessing import MultiLabelBinarizer
from task_data import rows_in

rows = rows_in(Path(__file__).with_name("readings.jsonl"))
"""What is to be read, and what is read out of it."""

ORGANS = ["Heart", "Liver", "Left, upper lobe", "Head and neck", "Spleen"]
"""A to E; one holds a comma, one an "and"."""


@pytest.fixture
def read(score):
    """Scores of lists: an item and what is said to it, again and again."""
    return lambda *answers, **settings: score(*zip(*answers, strict=True), **settings).formats["list"]


@pytest.mark.parametrize(("text", "picks", "malformed"), rows("strict lists"))
def test_strict_reading(make_item, read, text: str, picks: list[str], malformed: bool) -> None:
    found = read((make_item("list", [pick for pick in ORGANS if pick.lower() in picks] or ["Nail"], ORGANS), text))
    assert found.malformed.get("unmatched piece", 0) == malformed
    # Only who names all of these and no other has all points.
    assert found.score == float(bool(picks) and not malformed)


@pytest.mark.parametrize(("text", "picks"), rows("kind lists"))
def test_kind_reading(make_item, read, text: str, picks: list[str]) -> None:
    known = [pick for pick in ORGANS if pick.lower() in picks]
    found = read((make_item("list", known or ["Nail"], ORGANS), text), profile="paper")
    hits = len(known)
    assert found.forgiving == pytest.approx(2 * hits / (len(picks) + hits) if hits else 0.0)


@pytest.mark.parametrize(("gold", "options", "text", "strict", "kind"), rows("golds of lists"))
def test_golds_with_a_letter(make_item, read, gold, options, text, strict, kind) -> None:
    found = read((make_item("list", gold, options), text))
    assert (found.score, found.forgiving) == (strict, kind)


def test_options_beyond_z_are_reached_by_text_and_a_letter_may_be_a_part_of_one(make_item, read) -> None:
    names = [f"option {n}" for n in range(36)]
    for gold, text in (([27, 35], "option 27, option 35"), ([26, 35], "[: option 26, a: option 35"), ([3], "d")):
        assert read((make_item("list", [names[place] for place in gold], names), text)).score == 1
    coli = make_item("list", ["E coli"], ["Heart", "Liver", "Lung", "Spleen", "E coli"])
    assert read((coli, "See E. coli")).malformed == {}
    assert read((coli, "See A. coli")).malformed == {"unmatched piece": 1}


def test_a_malformed_answer_is_ranked_with_its_matched_picks(make_item, read) -> None:
    found = read((make_item("list", ["Heart", "Spleen"], ORGANS), "Heart, Lung, Spleen"))
    assert found.score == 0
    assert (found.measures["precision_at_5"], found.measures["mean_reciprocal_rank"]) == (0.4, 1.0)
    assert found.measures["mean_average_precision"] == pytest.approx((1 + 2 / 3) / 2)
    late = read((make_item("list", ["Heart"], [*"vwxyz", "Heart"]), "v, w, x, y, z, Heart"))
    assert late.measures["precision_at_5"] == 0.0


def test_rankings_have_the_figures_of_ir_measures(make_item, read) -> None:
    """Answers are built from known picks, options and others, so that nothing of the reading is taken for granted."""
    draw = random.Random(11)
    options = [f"organ {n}" for n in range(9)]
    answers, qrels, run = [], [], []
    for query in range(50):
        gold = draw.sample(options, draw.randint(1, 6))
        named = draw.sample([*options, "nothing", "else", "known"], draw.randint(1, 9))
        answers.append((make_item("list", gold, options, key=str(query)), ", ".join(named)))
        qrels += [ir_measures.Qrel(str(query), text, 1) for text in gold]
        run += [ir_measures.ScoredDoc(str(query), text, -rank) for rank, text in enumerate(named)]
    expected = ir_measures.calc_aggregate([AP, RR, P @ 5], qrels, run)
    found = read(*answers).measures
    assert found["mean_average_precision"] == pytest.approx(expected[AP])
    assert found["mean_reciprocal_rank"] == pytest.approx(expected[RR])
    assert found["precision_at_5"] == pytest.approx(expected[P @ 5])


@pytest.mark.parametrize(("answers", "label", "item", "micro"), rows("three f1"))
def test_the_three_f1_differ(make_item, read, answers, label: float, item: float, micro: float) -> None:
    words = sorted({word for pair in answers for words in pair for word in words.split()})
    pairs = [
        (make_item("list", gold.split(), words, key=str(at)), said.replace(" ", ", "))
        for at, (gold, said) in enumerate(answers)
    ]
    found = read(*pairs).measures
    names = ("published", "paper", "micro_f1")
    assert [found[name] for name in names] == pytest.approx([label, item, micro], abs=5e-5)


def test_label_figures_are_those_of_scikit_learn(make_item, read) -> None:
    draw = random.Random(7)
    for _ in range(30):
        labels = [f"label {n}" for n in range(draw.randint(2, 12))]
        drawn = [
            (draw.sample(labels, draw.randint(1, len(labels))), draw.sample(labels, draw.randint(0, len(labels))))
            for _ in range(draw.randint(1, 9))
        ]
        pairs = [
            (make_item("list", gold, labels, key=str(at)), ", ".join(said)) for at, (gold, said) in enumerate(drawn)
        ]
        matrix = MultiLabelBinarizer().fit([{*gold, *said} for gold, said in drawn])
        gold, said = (matrix.transform([pair[side] for pair in drawn]) for side in (0, 1))
        figures = read(*pairs).measures
        assert figures["published"] == pytest.approx(f1_score(gold, said, average="macro", zero_division=0))
        assert figures["micro_f1"] == pytest.approx(f1_score(gold, said, average="micro", zero_division=0))
