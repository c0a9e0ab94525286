"""Open answers: the layers of the semantic score by hand, wrong steps, and n-grams by nltk and rouge-score."""

import math
import re
import sys

import numpy as np
import pytest

from medexam.errors import MedExamError
from medexam_companions.cliniqlink import PAPER, PUBLISHED, Format, compare_texts, score_cliniqlink


@pytest.mark.parametrize("raw", [False, True])
def test_layers_by_hand(letters, raw: bool) -> None:
    gold, said, references = "The liver, liver", "spleen is big", ["liver", "spleen", "heart"]
    [found], baseline = compare_texts([(gold, said)], references, letters, raw_paragraph=raw)

    def cosine(one: str, other: str) -> float:
        first, second = letters.encode([one, other])
        return float(first @ second)

    # Stop words are no pieces; `liver` and `big` stand in one and in no reference.
    best = max(cosine("liver", "spleen"), cosine("liver", "big"))
    known, unknown = math.log(4 / 2) + 1, 1.0
    precision = (known * cosine("liver", "spleen") + unknown * cosine("liver", "big")) / (known + unknown)
    assert found.pieces == pytest.approx(2 * precision * best / (precision + best), abs=1e-6)
    assert found.sentence == pytest.approx(cosine("liver, liver", "spleen big"), abs=1e-6)
    whole = cosine(gold, said) if raw else found.sentence
    assert found.paragraph == pytest.approx(max(0.0, (whole - 0.3) / 0.7), abs=1e-6)
    weighed = 0.4 * found.pieces + 0.4 * found.sentence + 0.2 * found.paragraph
    assert found.score == pytest.approx(max(0.0, weighed - 0.25), abs=1e-6)
    assert (baseline.cosine, baseline.references, baseline.seed) == (0.3, 3, None)


def test_every_text_is_encoded_once_and_equal_texts_need_no_encoder(letters) -> None:
    pairs = [("liver cell", "liver"), ("liver cell", "heart cell"), ("same", "SAME"), ("liver", "liver cell")]
    found, _ = compare_texts(pairs, ["liver"], letters, raw_paragraph=True)
    [texts] = letters.calls
    assert sorted(texts) == ["cell", "heart", "heart cell", "liver", "liver cell"]
    assert (found[2].score, found[0]) == (1.0, found[3])
    letters.calls.clear()
    equal, _ = compare_texts([(" A ", "a"), ("", "")], [], letters, raw_paragraph=False)
    assert ([one.score for one in equal], letters.calls) == ([1.0, 1.0], [])


@pytest.mark.parametrize("said", ["", "it is not", "..."])
def test_a_side_without_words_has_no_pieces(letters, said: str) -> None:
    [found], _ = compare_texts([("liver", said)], ["liver"], letters, raw_paragraph=False)
    assert found.pieces == 0.0


def test_the_baseline_of_many_references_comes_from_a_seed(letters) -> None:
    words = ["liver", "spleen", "heart", "kidney", "lung"]
    references = [f"{words[n % 5]} {words[n // 5 % 5]} {chr(97 + n % 26)}" for n in range(100)]

    def baseline(count: int, seed: int):
        return compare_texts([("a", "b")], references[:count], letters, raw_paragraph=False, seed=seed)[1]

    few = baseline(99, 1)
    assert (few.cosine, few.references, few.seed) == (0.3, 99, None)
    many = [baseline(100, seed) for seed in range(30)]
    assert baseline(100, 1) == many[1]
    assert [one.seed for one in many] == list(range(30))
    # Each is the mean of fifty pairs of different references.
    vectors = letters.encode(references)
    cosines = (vectors @ vectors.T)[~np.eye(100, dtype=bool)]
    drawn = np.array([one.cosine for one in many])
    assert drawn.mean() == pytest.approx(cosines.mean(), abs=3 * float(cosines.std()) / math.sqrt(30 * 50))
    assert drawn.std() == pytest.approx(cosines.std() / math.sqrt(50), rel=0.5)


def inverse(make_item, gold, reply, letters, profile=PUBLISHED):
    item = make_item("multi_hop_inverse", "x", incorrect_step=tuple(gold))
    return score_cliniqlink([item], {"k": reply}, letters, profile=profile).formats[Format.MULTI_HOP_INVERSE]


@pytest.mark.parametrize(
    ("lines", "step", "explanation"),
    [
        (["- Step 3 contains the error.", "- Explanation: it is: baseless."], 3, "it is: baseless."),
        (["- Step number 12 is wrong", "- EXPLANATION none"], 12, "- EXPLANATION none"),
        (["- Step 5: the explanation fails", "- Explanation: intended"], 5, "the explanation fails"),
    ],
)
def test_golds(make_item, letters, lines, step: int, explanation: str) -> None:
    right = inverse(make_item, lines, f"Step {step}. Explanation: {explanation}", letters)
    assert (right.score, right.step_rate) == (1.0, 1.0)
    assert inverse(make_item, lines, f"Step {step + 1}. Explanation: {explanation}", letters).step_rate == 0.0


@pytest.mark.parametrize(
    ("text", "step", "explanation", "marked"),
    [
        ("Incorrect Reasoning Step: 3\nIncorrect Reasoning Explanation: it is\nbaseless", 3, "it is\nbaseless", True),
        ("Incorrect Reasoning Step: Step 3\nExplanation - it", 3, "it", True),
        ("step-2 explanation x", 2, "x", True),
        ("Step 1 and 2 are fine. Step 4 is wrong. Explanation: y", 1, "y", True),
        ("Step four. Because.", None, "Step four. Because.", False),
        ("It is wrong in step 7", 7, "It is wrong in step 7", False),
        ("The explanation: first. Explanation: second", None, "first. Explanation: second", True),
    ],
)
def test_answers(make_item, letters, text: str, step: int | None, explanation: str, marked: bool) -> None:
    # A gold whose explanation is the same text scores 1 before any penalty.
    gold = [f"Step {step or 99}", f"Explanation: {explanation}"]
    found = inverse(make_item, gold, text, letters)
    assert found.score == pytest.approx(1.0)
    assert found.step_rate == float(step is not None)
    assert (found.malformed.get("no step", 0), found.malformed.get("no explanation", 0)) == (step is None, not marked)


@pytest.mark.parametrize(
    ("gold", "said", "published", "paper"),
    [
        (3, 3, 1.0, 1.0),
        (3, 2, 0.7, 0.7),
        (3, 4, 0.7, 0.7),
        (3, 1, 0.3, 0.3),
        (3, 6, 0.15, 0.3),
        (5, 1, 0.075, 0.3),
        (1, 11, 0.3 / 256, 0.3),
        (3, None, 1.0, 1.0),
        (1, 10**9, 0.0, 0.3),
    ],
)
def test_penalties_of_a_wrong_step(make_item, letters, gold, said, published: float, paper: float) -> None:
    reply = "Explanation: no link" if said is None else f"Step {said}. Explanation: no link"
    for profile, factor in ((PUBLISHED, published), (PAPER, paper)):
        found = inverse(make_item, [f"Step {gold} is wrong", "Explanation: no link"], reply, letters, profile)
        assert found.score == pytest.approx(factor)


GOLD = "The physician gave a drug to the patient. It was large, and costly."
SAID = [GOLD, "The doctor gave the patient a medicine. It was big.", "Nothing of it", "large", "", "αβγ"]


@pytest.mark.parametrize("said", SAID)
def test_ngrams_are_those_of_the_libraries(make_item, letters, said: str) -> None:
    pytest.importorskip("nltk")
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rouge1", "rougeL"], use_stemmer=True)
    from nltk.tokenize import word_tokenize
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
    from nltk.translate.meteor_score import meteor_score

    whole = score_cliniqlink([make_item("short", GOLD)], {"k": said}, letters, ngrams=True)
    found = whole.formats[Format.SHORT].ngrams
    expected = scorer.score(GOLD.lower(), said.lower())
    assert found.rouge == pytest.approx((expected["rouge1"].fmeasure + expected["rougeL"].fmeasure) / 2)
    missing = " ".join(whole.ngrams_missing)
    assert ((found.bleu is None), (found.meteor is None)) == ("punkt_tab" in missing, bool(missing))
    if found.bleu is not None:
        words, references = word_tokenize(said.lower()), [word_tokenize(GOLD.lower())]
        smoothing = SmoothingFunction(epsilon=0.1).method1
        assert found.bleu == pytest.approx(sentence_bleu(references, words, smoothing_function=smoothing))
        if found.meteor is not None:
            assert found.meteor == pytest.approx(meteor_score(references, words, alpha=0.9, beta=3, gamma=0.5))


def test_ngrams_of_a_whole_set(seven, perfect, letters, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nltk")
    pytest.importorskip("rouge_score")
    perfect["short"] = "What?"  # an echo
    found = score_cliniqlink(seven, perfect, letters, ngrams=True)
    assert (found.formats[Format.SHORT].ngrams.rouge, found.formats[Format.MULTI_HOP].ngrams.rouge) == (0.0, 1.0)
    assert found.formats[Format.LIST].ngrams is None
    assert found.ngrams.rouge == pytest.approx(0.75)
    for name in [name for name in sys.modules if re.match(r"nltk\b", name)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "nltk", None)
    with pytest.raises(MedExamError, match=r"need nltk.*medexam\[cliniqlink\]"):
        score_cliniqlink(seven, perfect, letters, ngrams=True)
