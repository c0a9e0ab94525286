"""The semantic score: its layers by hand with a small encoder, and the worked values with the real MiniLM."""

import math

import numpy as np
import pytest

from medexam.companions.cliniqlink.measures.answers import gold_flaw
from medexam.companions.cliniqlink.measures.items import PAPER, PUBLISHED, Format, reference_texts
from medexam.companions.cliniqlink.measures.scoring import score_cliniqlink
from medexam.companions.cliniqlink.measures.semantic import (
    EQUAL,
    combine_layers,
    compare_texts,
    content_words,
    draw_pairs,
    piece_weights,
    stop_words,
)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("It is not the benign kind.", "benign kind."),
        ("No , nor ( yes ) -- x", "yes x"),
        ("THE liver;", "liver;"),
        ("it's theirs", ""),
        ("", ""),
    ],
)
def test_words_that_carry_no_meaning_go(text: str, clean: str) -> None:
    assert content_words(text) == clean


def test_the_stop_words_are_those_of_nltk() -> None:
    assert len(stop_words()) == 198
    assert {"not", "no", "nor", "he'd"} <= stop_words()


def test_pieces_are_weighed_over_the_references(letters) -> None:
    weights = piece_weights(["a b", "a a c"], letters)
    assert weights == pytest.approx({"a": 1.0, "b": math.log(3 / 2) + 1, "c": math.log(3 / 2) + 1})


@pytest.mark.parametrize(
    ("layers", "score"),
    [((1, 1, 1), 0.75), ((0.5, 0.5, 0.5), 0.25), ((0.2, 0.2, 0.2), 0.0), ((0, 0, 0), 0.0), ((0.9, 0.5, 0.1), 0.33)],
)
def test_layers_are_weighed_and_lowered(layers, score: float) -> None:
    assert combine_layers(*layers).score == pytest.approx(score)


@pytest.mark.parametrize("raw", [False, True])
def test_layers_by_hand(letters, raw: bool) -> None:
    gold, said, references = "The liver, liver", "spleen is big", ["liver", "spleen", "heart"]
    [found], baseline = compare_texts([(gold, said)], references, letters, raw_paragraph=raw)

    def cosine(one: str, other: str) -> float:
        first, second = letters.encode([one, other])
        return float(first @ second)

    best = max(cosine("liver", "spleen"), cosine("liver", "big"))
    known, unknown = math.log(4 / 2) + 1, 1.0
    precision = (known * cosine("liver", "spleen") + unknown * cosine("liver", "big")) / (known + unknown)
    assert found.pieces == pytest.approx(2 * precision * best / (precision + best), abs=1e-6)
    assert found.sentence == pytest.approx(cosine("liver, liver", "spleen big"), abs=1e-6)
    whole = cosine(gold, said) if raw else found.sentence
    assert found.paragraph == pytest.approx(max(0.0, (whole - 0.3) / 0.7), abs=1e-6)
    assert (baseline.cosine, baseline.references, baseline.seed) == (0.3, 3, None)


def test_every_text_is_encoded_once_and_in_one_call(letters) -> None:
    pairs = [("liver cell", "liver"), ("liver cell", "heart cell"), ("same", "SAME"), ("liver", "liver cell")]
    found, _ = compare_texts(pairs, ["liver"], letters, raw_paragraph=True)
    [texts] = letters.calls
    assert sorted(texts) == ["cell", "heart", "heart cell", "liver", "liver cell"]
    assert found[2] == EQUAL
    assert found[0] == found[3]


def test_equal_texts_need_no_encoder(letters) -> None:
    found, _ = compare_texts([(" A ", "a"), ("", "")], [], letters, raw_paragraph=False)
    assert found == [EQUAL, EQUAL]
    assert letters.calls == []


@pytest.mark.parametrize(("gold", "said"), [("liver", ""), ("liver", "it is not"), ("liver", "...")])
def test_a_side_without_words_has_no_pieces(letters, gold: str, said: str) -> None:
    [found], _ = compare_texts([(gold, said)], [gold], letters, raw_paragraph=False)
    assert found.pieces == 0.0


def test_the_baseline_of_many_references_comes_from_a_seed(letters) -> None:
    words = ["liver", "spleen", "heart", "kidney", "lung"]
    references = [f"{words[n % 5]} {words[n // 5 % 5]} {chr(97 + n % 26)}" for n in range(100)]
    few = compare_texts([("a", "b")], references[:99], letters, raw_paragraph=False)[1]
    assert (few.cosine, few.references, few.seed) == (0.3, 99, None)
    first, again, other = (
        compare_texts([("a", "b")], references, letters, raw_paragraph=False, seed=seed)[1] for seed in (1, 1, 2)
    )
    assert first == again
    assert (first.seed, other.seed) == (1, 2)
    assert first.cosine != other.cosine
    vectors = letters.encode(references)
    expected = np.mean([vectors[one] @ vectors[two] for one, two in draw_pairs(100, 1)])
    assert first.cosine == pytest.approx(float(expected), abs=1e-6)


def test_fifty_pairs_of_different_places() -> None:
    drawn = draw_pairs(100, 3)
    assert len(drawn) == 50
    assert all(one != other and 0 <= one < 100 and 0 <= other < 100 for one, other in drawn)
    assert all(one != other for one, other in draw_pairs(2, 0))


def test_real_vectors_tell_meaning(minilm) -> None:
    pairs = [("Insulin lowers glucose.", said) for said in ("Glucose falls by insulin.", "The femur is a bone.")]
    (near, far), _ = compare_texts(pairs, ["Insulin lowers glucose."], minilm, raw_paragraph=False)
    assert 0.3 < near.score < 0.75
    assert far.score < 0.1


@pytest.mark.data
class TestWorkedValues:
    """Figures that the released scorer gives for the benchmark's own sample, to 1e-4 on a CPU."""

    def score(self, sample, minilm, key: str, text: str, profile=PUBLISHED) -> float:
        item = next(item for item in sample if item.key == key)
        references = reference_texts(sample)
        found = score_cliniqlink([item], {key: text}, minilm, profile=profile, references=references)
        return found.formats[item.format].score

    def test_the_references(self, sample, minilm) -> None:
        references = reference_texts(sample)
        assert len(references) == 30
        assert len(piece_weights(references, minilm)) == 486

    @pytest.mark.parametrize(
        ("key", "reply", "score"),
        [
            ("short/3", "Benign prostatic hyperplasia.", 1.0),
            ("short/3", "Benign prostatic hyperplasia", 0.7447),
            ("short/3", "Final Answer: Benign prostatic hyperplasia.", 0.6732),
            ("short/3", "It is not benign prostatic hyperplasia.", 0.75),
            ("short/3", "What condition is treated by blocking 5\u03b1-reductase?", 0.0),
            ("short/3", "", 0.0),
        ],
    )
    def test_short_answers(self, sample, minilm, key: str, reply: str, score: float) -> None:
        assert self.score(sample, minilm, key, reply) == pytest.approx(score, abs=1e-4)

    def test_reasoning_costs_a_right_answer(self, sample, minilm, sample_rows) -> None:
        row = sample_rows("multi_hop")[1]
        alone = f"Final Answer: {row['answer']}"
        whole = f"{alone}\n\nReasoning: " + "\n".join(row["reasoning"])
        assert self.score(sample, minilm, "multi_hop/2", alone) == pytest.approx(0.7281, abs=1e-4)
        assert self.score(sample, minilm, "multi_hop/2", whole) == pytest.approx(0.5689, abs=1e-4)

    @pytest.mark.parametrize(("number", "step", "score"), [(1, 3, 1.0), (2, 4, 1.0), (5, 5, 0.4286)])
    @pytest.mark.parametrize("profile", [PUBLISHED, PAPER])
    def test_the_explanation_of_a_step(self, sample, minilm, profile, number: int, step: int, score: float) -> None:
        key = f"multi_hop_inverse/{number}"
        lines = next(item for item in sample if item.key == key).incorrect_step
        assert gold_flaw(lines).step == step
        intended = lines[1].split(":", 1)[1].strip()
        text = f"Incorrect Reasoning Step: {step}\nIncorrect Reasoning Explanation: {intended}"
        exact = profile is PUBLISHED or score == 1.0
        assert self.score(sample, minilm, key, text, profile) == pytest.approx(score, abs=1e-4 if exact else 0.02)

    def test_perfect_and_empty_replies_to_the_whole_sample(self, sample, minilm, perfect_replies) -> None:
        for profile in (PUBLISHED, PAPER):
            perfect = score_cliniqlink(sample, perfect_replies, minilm, profile=profile)
            assert {kind: found.score for kind, found in perfect.formats.items()} == dict.fromkeys(Format, 1.0)
            assert perfect.overall == perfect.forgiving_overall == 1.0
            assert all(not found.malformed for found in perfect.formats.values())
            empty = score_cliniqlink(sample, dict.fromkeys(perfect_replies, ""), minilm, profile=profile)
            assert {kind: found.score for kind, found in empty.formats.items()} == dict.fromkeys(Format, 0.0)
            assert empty.overall == 0.0
