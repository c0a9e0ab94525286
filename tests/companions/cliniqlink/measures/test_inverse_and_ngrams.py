"""Multi-hop inverse: steps, explanations, penalties. N-grams: nltk and rouge-score used directly."""

import sys

import pytest

from medexam.companions.cliniqlink.measures.answers import gold_flaw, read_flaw, step_factor
from medexam.companions.cliniqlink.measures.items import PAPER, PUBLISHED, Format
from medexam.companions.cliniqlink.measures.ngrams import NgramScorer, NgramScores, mean_scores
from medexam.companions.cliniqlink.measures.scoring import score_cliniqlink
from medexam.errors import MedExamError


@pytest.mark.parametrize(
    ("lines", "step", "explanation"),
    [
        (["- Step 3 contains the error.", "- Explanation: it is: baseless."], 3, "it is: baseless."),
        (["- Step number 12 is wrong", "- EXPLANATION none"], 12, "- EXPLANATION none"),
        (["- Step 5: the explanation fails", "- Explanation: intended"], 5, "the explanation fails"),
        (["Nothing", "step two", "then step 4"], 4, ""),
        (["Explanation: x"], None, "x"),
        ([], None, ""),
    ],
)
def test_golds(lines, step: int | None, explanation: str) -> None:
    flaw = gold_flaw(lines)
    assert (flaw.step, flaw.explanation) == (step, explanation)


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
        ("", None, "", False),
    ],
)
def test_answers(text: str, step: int | None, explanation: str, marked: bool) -> None:
    flaw = read_flaw(text)
    assert (flaw.step, flaw.explanation, flaw.has_marker) == (step, explanation, marked)


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
        (None, 3, 1.0, 1.0),
        (1, 10**9, 0.0, 0.3),
    ],
)
def test_penalties(gold, said, published: float, paper: float) -> None:
    assert step_factor(gold, said, PUBLISHED) == pytest.approx(published)
    assert step_factor(gold, said, PAPER) == pytest.approx(paper)


@pytest.mark.parametrize("package", ["nltk", "rouge_score"])
def test_a_missing_package_names_the_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if package == "rouge_score":
        pytest.importorskip("nltk", reason="nltk is looked for first")
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MedExamError, match=rf"need {package.replace('_', '-')}.*medexam\[cliniqlink\]"):
        NgramScorer()


def test_means_leave_out_what_any_answer_lacks() -> None:
    assert mean_scores([]) is None
    assert mean_scores([NgramScores(0.5, None, 0.2), NgramScores(1.0, 0.4, 0.4)]) == NgramScores(
        0.75, None, pytest.approx(0.3)
    )


GOLD = "The physician gave a drug to the patient. It was large, and costly."
SAID = [GOLD, "The doctor gave the patient a medicine. It was big.", "Nothing of it", "large", "", "αβγ"]


class TestAgainstTheLibraries:
    """Needs nltk and rouge-score."""

    @pytest.fixture
    def scorer(self) -> NgramScorer:
        for name in ("nltk", "rouge_score"):
            pytest.importorskip(name, reason=f"{name} is not installed")
        return NgramScorer()

    @pytest.mark.parametrize("said", SAID)
    def test_rouge(self, scorer: NgramScorer, said: str) -> None:
        from rouge_score.rouge_scorer import RougeScorer

        found = RougeScorer(["rouge1", "rougeL"], use_stemmer=True).score(GOLD.lower(), said.lower())
        mean = (found["rouge1"].fmeasure + found["rougeL"].fmeasure) / 2
        assert scorer.score(GOLD, said).rouge == pytest.approx(mean)

    @pytest.mark.parametrize("said", SAID)
    def test_bleu(self, scorer: NgramScorer, said: str) -> None:
        if scorer.score("a", "a").bleu is None:
            pytest.skip("NLTK's punkt_tab is not on this machine")
        from nltk.tokenize import word_tokenize
        from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

        expected = sentence_bleu(
            [word_tokenize(GOLD.lower())],
            word_tokenize(said.lower()),
            smoothing_function=SmoothingFunction(epsilon=0.1).method1,
        )
        assert scorer.score(GOLD, said).bleu == pytest.approx(expected)
        assert scorer.score("benign", "benign").bleu == pytest.approx(0.1778, abs=1e-4)

    @pytest.mark.parametrize("said", SAID)
    def test_meteor(self, scorer: NgramScorer, said: str) -> None:
        if scorer.missing:
            pytest.skip("NLTK's wordnet is not on this machine")
        from nltk.tokenize import word_tokenize
        from nltk.translate.meteor_score import meteor_score

        expected = meteor_score(
            [word_tokenize(GOLD.lower())], word_tokenize(said.lower()), alpha=0.9, beta=3, gamma=0.5
        )
        assert scorer.score(GOLD, said).meteor == pytest.approx(expected)

    def test_a_whole_set(self, scorer: NgramScorer, seven, perfect, letters) -> None:
        perfect["short"] = "What?"
        found = score_cliniqlink(seven, perfect, letters, ngrams=True)
        assert found.ngrams_missing == scorer.missing
        assert found.formats[Format.SHORT].ngrams == scorer.zero()
        assert found.formats[Format.MULTI_HOP].ngrams == scorer.score("Resistance develops.", "Resistance develops.")
        assert found.formats[Format.LIST].ngrams is None
        assert found.ngrams.rouge == pytest.approx(0.75)

    def test_what_nltk_lacks_is_none_and_named(self, scorer: NgramScorer, monkeypatch: pytest.MonkeyPatch) -> None:
        import nltk

        def absent(*_: object) -> None:
            raise LookupError

        monkeypatch.setattr(nltk.translate.meteor_score, "meteor_score", absent)
        without = NgramScorer()
        assert any(name.startswith("wordnet") for name in without.missing)
        assert without.score(GOLD, GOLD).meteor is None
        assert without.zero().meteor is None
        monkeypatch.setattr(nltk.tokenize, "word_tokenize", absent)
        bare = NgramScorer()
        assert any(name.startswith("punkt_tab") for name in bare.missing)
        assert bare.score(GOLD, GOLD) == NgramScores(None, None, 1.0)
        assert bare.zero() == NgramScores(None, None, 0.0)
