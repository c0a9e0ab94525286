"""Open answers: the layers of the semantic score by hand, wrong steps, and n-grams by nltk and rouge-score."""

import math
from pathlib import Path

import numpy as np
import pytest
from task_data import rows_in

from medexam_companions.cliniqlink import compare_texts

rows = rows_in(Path(__file__).with_name("readings.jsonl"))
"""What is to be read, and what is read out of it."""


def test_layers_by_hand(letters) -> None:
    gold, said, references = "The liver, liver", "spleen is big", ["liver", "spleen", "heart"]
    [found], baseline = compare_texts([(gold, said)], references, letters)

    def cosine(one: str, other: str) -> float:
        first, second = letters.encode([one, other])
        return float(first @ second)

    # Stop words are no pieces; `liver` and `big` stand in one and in no reference.
    best = max(cosine("liver", "spleen"), cosine("liver", "big"))
    known, unknown = math.log(4 / 2) + 1, 1.0
    precision = (known * cosine("liver", "spleen") + unknown * cosine("liver", "big")) / (known + unknown)
    assert found["pieces"] == pytest.approx(2 * precision * best / (precision + best), abs=1e-6)
    assert found["sentence"] == pytest.approx(cosine("liver, liver", "spleen big"), abs=1e-6)
    assert found["paragraph"] == pytest.approx(max(0.0, (cosine(gold, said) - 0.3) / 0.7), abs=1e-6)
    published = max(0.0, (found["sentence"] - 0.3) / 0.7)
    for profile, paragraph in (("paper", found["paragraph"]), ("published", published)):
        weighed = 0.4 * found["pieces"] + 0.4 * found["sentence"] + 0.2 * paragraph
        assert found[profile] == pytest.approx(max(0.0, weighed - 0.25), abs=1e-6)
    assert baseline == {"baseline": 0.3, "baseline_references": 3, "baseline_seed": None}


@pytest.mark.parametrize("said", ["", "it is not", "..."])
def test_a_side_without_words_has_no_pieces(letters, said: str) -> None:
    [found], _ = compare_texts([("liver", said)], ["liver"], letters)
    assert found["pieces"] == 0.0


def test_the_baseline_of_many_references_comes_from_a_seed(letters) -> None:
    words = ["liver", "spleen", "heart", "kidney", "lung"]
    references = [f"{words[n % 5]} {words[n // 5 % 5]} {chr(97 + n % 26)}" for n in range(100)]

    def baseline(count: int, seed: int):
        return compare_texts([("a", "b")], references[:count], letters, seed=seed)[1]

    few = baseline(99, 1)
    assert few == {"baseline": 0.3, "baseline_references": 99, "baseline_seed": None}
    many = [baseline(100, seed) for seed in range(30)]
    assert baseline(100, 1) == many[1]
    assert [one["baseline_seed"] for one in many] == list(range(30))
    # Each is the mean of fifty pairs of different references.
    vectors = letters.encode(references)
    cosines = (vectors @ vectors.T)[~np.eye(100, dtype=bool)]
    drawn = np.array([one["baseline"] for one in many])
    assert drawn.mean() == pytest.approx(cosines.mean(), abs=3 * float(cosines.std()) / math.sqrt(30 * 50))
    assert drawn.std() == pytest.approx(cosines.std() / math.sqrt(50), rel=0.5)


@pytest.fixture
def inverse(make_item, score):
    """What a reply scores against the lines of a wrong step."""

    def call(lines, reply, profile="published"):
        item = make_item("multi_hop_inverse", "x", incorrect_step=tuple(lines))
        return score([item], [reply], profile).formats["multi_hop_inverse"]

    return call


@pytest.mark.parametrize(("lines", "step", "explanation"), rows("golds of steps"))
def test_golds(inverse, lines, step: int, explanation: str) -> None:
    right = inverse(lines, f"Step {step}. Explanation: {explanation}")
    assert (right.score, right.measures["step_rate"]) == (1.0, 1.0)
    assert inverse(lines, f"Step {step + 1}. Explanation: {explanation}").measures["step_rate"] == 0.0


@pytest.mark.parametrize(("text", "step", "explanation", "marked"), rows("steps"))
def test_answers(inverse, text: str, step: int | None, explanation: str, marked: bool) -> None:
    # A gold whose explanation is the same text scores 1 before any penalty.
    gold = [f"Step {step or 99}", f"Explanation: {explanation}"]
    found = inverse(gold, text)
    assert found.score == pytest.approx(1.0)
    assert found.measures["step_rate"] == float(step is not None)
    assert (found.malformed.get("no step", 0), found.malformed.get("no explanation", 0)) == (step is None, not marked)


@pytest.mark.parametrize(("gold", "said", "published", "paper"), rows("penalties"))
def test_penalties_of_a_wrong_step(inverse, gold, said, published: float, paper: float) -> None:
    reply = "Explanation: no link" if said is None else f"Step {said}. Explanation: no link"
    for profile, factor in (("published", published), ("paper", paper)):
        found = inverse([f"Step {gold} is wrong", "Explanation: no link"], reply, profile)
        assert found.score == pytest.approx(factor)


GOLD = "The physician gave a drug to the patient. It was large, and costly."
SAID = [GOLD, "The doctor gave the patient a medicine. It was big.", "Nothing of it", "large", "", "αβγ"]


@pytest.mark.parametrize("said", SAID)
def test_ngrams_are_those_of_the_libraries(make_item, score, said: str) -> None:
    pytest.importorskip("nltk")
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rouge1", "rougeL"], use_stemmer=True)
    from nltk.tokenize import word_tokenize
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
    from nltk.translate.meteor_score import meteor_score

    whole = score([make_item("short", GOLD)], [said])
    found = whole.formats["short"].measures
    expected = scorer.score(GOLD.lower(), said.lower())
    assert found["rouge"] == pytest.approx((expected["rouge1"].fmeasure + expected["rougeL"].fmeasure) / 2)
    missing = " ".join(whole.run.metrics.notes)
    assert ("bleu" in found, "meteor" in found) == ("punkt_tab" not in missing, not missing)
    if "bleu" in found:
        words, references = word_tokenize(said.lower()), [word_tokenize(GOLD.lower())]
        smoothing = SmoothingFunction(epsilon=0.1).method1
        assert found["bleu"] == pytest.approx(sentence_bleu(references, words, smoothing_function=smoothing))
        if "meteor" in found:
            assert found["meteor"] == pytest.approx(meteor_score(references, words, alpha=0.9, beta=3, gamma=0.5))
