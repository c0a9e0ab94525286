"""Exact match and F1 of spans: every trap of the two rules by hand, and torchmetrics' SQuAD on 100 real pairs."""

import json
import string
import unicodedata
from pathlib import Path

import pytest

from medexam.measures import score_span

TABLE = json.loads((Path(__file__).parent / "torchmetrics_squad.json").read_text(encoding="utf-8"))

EQUAL, NOTHING, EMPTY = (1, 1), (0, 0), (1, 0)


@pytest.mark.parametrize(
    ("prediction", "reference", "squad", "spanish"),
    [
        # words
        ("Biopsia intestinal", "biopsia  INTESTINAL\n", EQUAL, EQUAL),
        ("biopsia", "biopsia intestinal", (0, 2 / 3), (0, 2 / 3)),
        ("intestinal biopsia", "biopsia intestinal", (0, 1), (0, 1)),
        ("no no no", "no", (0, 1 / 2), (0, 1 / 2)),
        ("no no", "no sí no", (0, 4 / 5), (0, 4 / 5)),
        ("Colonoscopia.", "Serología.", NOTHING, NOTHING),
        ("biopsia\u00a0intestinal", "biopsia intestinal", EQUAL, EQUAL),
        # nothing left of one side, or of both
        ("", "biopsia", NOTHING, NOTHING),
        ("biopsia", "", NOTHING, NOTHING),
        ("", "", EMPTY, EMPTY),
        ("...", " - ", EMPTY, EMPTY),
        ("the", "A", EMPTY, NOTHING),
        ("la", "¡el!", NOTHING, EMPTY),
        # articles, English and Spanish
        ("the spleen", "a spleen", EQUAL, (0, 1 / 2)),
        ("theatre", "atre", NOTHING, NOTHING),
        ("la fiebre reumática aguda", "fiebre reumática aguda", (0, 6 / 7), EQUAL),
        ("los unos y las unas", "y", (0, 1 / 3), EQUAL),
        ("lo al del", "", NOTHING, NOTHING),
        ("lo normal", "normal", (0, 2 / 3), (0, 2 / 3)),
        # the preposition "a" and letters that name a thing
        ("infección a distancia", "infección distancia", EQUAL, (0, 4 / 5)),
        ("hepatitis A", "hepatitis", EQUAL, (0, 2 / 3)),
        ("vitamina A", "vitamina", EQUAL, (0, 2 / 3)),
        ("vitamina A", "vitamina D", (0, 2 / 3), (0, 1 / 2)),
        ("hepatitis (A)", "hepatitis", EQUAL, (0, 2 / 3)),
        # punctuation beyond ASCII
        ("¿Cuál es?", "Cuál es", (0, 1 / 2), EQUAL),
        ("«fiebre»", "fiebre", NOTHING, EQUAL),
        ("“fiebre alta” y tos", "fiebre alta y tos", (0, 1 / 2), EQUAL),
        ("no \u2013 fiebre alta", "no fiebre alta", (0, 6 / 7), EQUAL),
        ("fiebre…", "fiebre", NOTHING, EQUAL),
        ("l·l", "ll", NOTHING, EQUAL),
        # signs that are no punctuation: ASCII ones go, others stay
        ("a + b < c", "a b c", EQUAL, EQUAL),
        ("1º dosis", "1 dosis", (0, 1 / 2), (0, 1 / 2)),
        ("38° C", "38 C", (0, 1 / 2), (0, 1 / 2)),
        ("±2", "2", NOTHING, NOTHING),
        # what punctuation glues
        ("3,5", "3.5", EQUAL, EQUAL),
        ("3,5", "35", EQUAL, EQUAL),
        ("mg/dl", "mg dl", NOTHING, NOTHING),
        ("post-operatorio", "postoperatorio", EQUAL, EQUAL),
        ("post-operatorio", "post operatorio", NOTHING, NOTHING),
        ("the-spleen", "thespleen", EQUAL, EQUAL),
        ("U.S.A.", "usa", EQUAL, EQUAL),
        # accents
        ("nefropatia", "nefropatía", NOTHING, NOTHING),
        ("nefropati\u0301a", "nefropatía", EQUAL, EQUAL),
        ("nefropati\u0301a membranosa", "nefropatía membranosa", EQUAL, EQUAL),
        ("NEFROPATÍA", "nefropati\u0301a", EQUAL, EQUAL),
    ],
)
def test_one_pair_by_hand(prediction, reference, squad, spanish) -> None:
    for normalisation, (exact_match, f1) in (("squad", squad), ("spanish", spanish)):
        for one, other in ((prediction, reference), (reference, prediction)):
            scores = score_span(one, [other], normalisation)
            assert (scores.exact_match, scores.f1) == (exact_match, pytest.approx(f1)), (normalisation, one)


def test_spanish_drops_ascii_marks_and_unicode_punctuation_alone() -> None:
    for mark in map(chr, range(0x3000)):
        dropped = mark in string.punctuation or unicodedata.category(mark)[0] == "P" or mark.isspace()
        if unicodedata.is_normalized("NFC", mark):
            assert (score_span(f"tos {mark}", ["tos"], "spanish").exact_match == 1) == dropped, hex(ord(mark))


def _parts(scores) -> tuple[float, float, float, float]:
    return scores.exact_match, scores.f1, scores.precision, scores.recall


def test_the_best_of_several_references_counts() -> None:
    references = ["Endoscopia", "biopsia intestinal", "la biopsia"]
    assert _parts(score_span("biopsia", references)) == (0.0, pytest.approx(2 / 3), 1.0, 0.5)
    assert _parts(score_span("biopsia", references, "spanish")) == (1.0, 1.0, 1.0, 1.0)
    assert _parts(score_span("the", ["a", "biopsia"])) == (1.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(("references", "message"), [([], "at least one reference"), ("tos", "put it into a list")])
def test_refusals(references, message) -> None:
    with pytest.raises(ValueError, match=message):
        score_span("tos", references)


def test_torchmetrics_says_the_same_of_real_pairs() -> None:
    assert len(TABLE["pairs"]) == 100
    for pair in TABLE["pairs"]:
        scores = score_span(pair["prediction"], pair["references"])
        expected = pair["exact_match"], pair["f1"]
        assert (100 * scores.exact_match, 100 * scores.f1) == pytest.approx(expected, abs=1e-3), pair
    whole = [score_span(pair["prediction"], pair["references"]) for pair in TABLE["pairs"]]
    means = sum(each.exact_match for each in whole), sum(each.f1 for each in whole)
    assert means == pytest.approx((*TABLE["set"].values(),), abs=1e-3)
