"""BLEU, METEOR and ROUGE of open answers, by nltk and rouge-score. They are reported and enter no score.

What cannot be computed is None and named, never 0: METEOR needs the WordNet of NLTK's data, and both BLEU and METEOR
its sentence splitter.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from medexam import MedExamError

_INSTALL = "pip install 'medexam[cliniqlink]'"


@dataclass(frozen=True, slots=True)
class NgramScores:
    """Of one answer, or means over several; fractions of 1. None: NLTK's data lack what it needs."""

    bleu: float | None
    """Sentence BLEU-4, uniform weights, NLTK's smoothing method 1. An equal answer of one token has 0.1778."""
    meteor: float | None
    """NLTK's defaults: alpha 0.9, beta 3, gamma 0.5, Porter's stems, WordNet's synonyms."""
    rouge: float
    """Mean of the F of ROUGE-1 and ROUGE-L, stemmed."""


class NgramScorer:
    """Scores answers one by one. Raises `MedExamError` if nltk or rouge-score is not installed."""

    def __init__(self) -> None:
        bleu = _module("nltk.translate.bleu_score")
        self._bleu: Any = bleu.sentence_bleu
        self._smoothing: Any = bleu.SmoothingFunction().method1
        self._meteor: Any = _module("nltk.translate.meteor_score").meteor_score
        self._tokenize: Any = _module("nltk.tokenize").word_tokenize
        self._rouge: Any = _module("rouge_score.rouge_scorer").RougeScorer(["rouge1", "rougeL"], use_stemmer=True)
        self.missing = tuple(self._missing())
        """What of NLTK's data is not on this machine, and what is None for the lack of it."""
        self._tokens = not any(name.startswith("punkt") for name in self.missing)
        self._synonyms = self._tokens and not self.missing

    def score(self, gold: str, predicted: str) -> NgramScores:
        """Score an answer, both texts lower-cased and trimmed."""
        gold, predicted = gold.lower().strip(), predicted.lower().strip()
        rouge_scores = self._rouge.score(gold, predicted)
        rouge = (rouge_scores["rouge1"].fmeasure + rouge_scores["rougeL"].fmeasure) / 2
        if not self._tokens:
            return NgramScores(None, None, rouge)
        references, tokens = [self._tokenize(gold)], self._tokenize(predicted)
        bleu = float(self._bleu(references, tokens, smoothing_function=self._smoothing))
        meteor = float(self._meteor(references, tokens)) if self._synonyms else None
        return NgramScores(bleu, meteor, rouge)

    def zero(self) -> NgramScores:
        """Return what an answer scores that repeats the question: 0, or None for what cannot be computed."""
        return NgramScores(0.0 if self._tokens else None, 0.0 if self._synonyms else None, 0.0)

    def _missing(self) -> Iterable[str]:
        try:
            self._tokenize("a b")
        except LookupError:
            yield "punkt_tab of NLTK's data (BLEU and METEOR); python -m nltk.downloader punkt_tab"
        try:
            self._meteor([["a"]], ["b"])
        except LookupError:
            yield "wordnet of NLTK's data (METEOR); python -m nltk.downloader wordnet"


def mean_scores(scores: Iterable[NgramScores]) -> NgramScores | None:
    """Average measure by measure, unweighted; None without scores, and None for a measure that any of them lacks."""
    score_list = list(scores)
    if not score_list:
        return None
    return NgramScores(
        _mean([score.bleu for score in score_list]),
        _mean([score.meteor for score in score_list]),
        sum(score.rouge for score in score_list) / len(score_list),
    )


def _mean(values: list[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if len(numbers) == len(values) else None


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        package = name.split(".")[0].replace("_", "-")
        raise MedExamError(f"BLEU, METEOR and ROUGE need {package}, which is not installed: {_INSTALL}") from None
