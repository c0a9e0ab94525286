"""Open answers: which text is compared with which, and how near two texts are in meaning and in words.

Rules: the released scorer of ClinIQLink 2025. The stop words beside this file are NLTK's English list (198 words,
package `stopwords` of NLTK data, from Snowball's lists, BSD licence); "not", "no" and "nor" are among them.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from medexam.questions import Task, TaskGold

if TYPE_CHECKING:
    from medexam_companions.cliniqlink.benchmark import ScorerEncoder

Profile = Literal["published", "paper"]
"""Two readings of the task's rules: what its released code does (commit 25cf06f of
`Brandonio-c/ClinIQLink_CodaBench_docker-setup`), faults included, and what its paper says where that differs."""
Vectors = NDArray[np.float32]
_FEWEST_REFERENCES = 100
_DEFAULT_BASELINE = 0.3
"""The baseline of fewer references."""
_BASELINE_PAIRS = 50
_WEIGHTS = (0.4, 0.4, 0.2)
"""Word pieces, sentence, paragraph."""
_OFFSET = 0.25
_FULL = 0.95
"""From here on a score would be 1; the offset keeps every score at or below 0.75, so that it never is."""
_PUNCTUATION = frozenset(string.punctuation)
_GOLD_STEP = re.compile(r"step\D*(\d+)", re.IGNORECASE)
_STEP = re.compile(r"step\s*[:\-]?\s*(\d+)", re.IGNORECASE)
_EXPLANATION = re.compile(r"(?:incorrect\s+reasoning\s+)?explanation\s*[:\-]?", re.IGNORECASE)
_PREFIX = re.compile(r"\A\s*incorrect explanation\s*:\s*", re.IGNORECASE)
_PENALTIES = (1.0, 0.7, 0.3)


@dataclass(frozen=True, slots=True)
class OpenAnswer:
    """What is compared for an open answer."""

    gold: str
    predicted: str
    """Lower-cased for short and multi-hop; without its leading "incorrect explanation:" for short inverse."""
    is_echo: bool = False
    """It repeats the question."""
    gold_step: int | None = None
    step: int | None = None
    """Multi-hop inverse: the wrong step, and the one that is named; None if no number can be read."""
    has_marker: bool = True
    """Multi-hop inverse: the word "explanation" stands before the explanation."""

    def factor(self, profile: Profile) -> float:
        """Return what the semantic score is multiplied by: 1, 0.7 and 0.3 for a distance of 0, 1 and 2 steps.

        Beyond, the published profile halves 0.3 with each step; the paper's stays at 0.3. 1 where either step is
        unknown, and 0 for an echo.
        """
        if self.is_echo or self.gold_step is None or self.step is None:
            return float(not self.is_echo)
        distance = abs(self.gold_step - self.step)
        beyond = max(distance - 2, 0) if profile == "published" else 0
        return _PENALTIES[min(distance, 2)] * 0.5**beyond


def read_open(task: Task, gold: TaskGold, text: str) -> OpenAnswer:
    """Read an answer to an open format.

    Multi-hop inverse: the first "step" with a number, wherever it stands, and what follows the first "explanation", or
    all without that word.
    """
    if task.group == "multi_hop_inverse":
        step, mark = _STEP.search(text), _EXPLANATION.search(text)
        explanation = text[mark.end() :] if mark else text
        return OpenAnswer(
            _gold_explanation(gold.incorrect_step),
            explanation.strip(),
            gold_step=next((int(m[1]) for line in gold.incorrect_step if (m := _GOLD_STEP.search(line))), None),
            step=int(step[1]) if step else None,
            has_marker=mark is not None,
        )
    is_echo = bool(text) and task.question.strip().lower() == text.strip().lower()
    if task.group == "short_inverse":
        return OpenAnswer(gold.incorrect_explanation, _PREFIX.sub("", text), is_echo)
    return OpenAnswer(" ".join(gold.answers).strip(), text.lower(), is_echo)


def _gold_explanation(lines: Sequence[str]) -> str:
    """Return the first line that holds "explanation", after its first colon, or whole without one.

    So where the line of the step says "explanation", it is taken for the explanation; the released scorer does so.
    """
    line = next((line for line in lines if "explanation" in line.lower()), "")
    return line.split(":", 1)[-1].strip()


def compare_texts(
    pairs: Sequence[tuple[str, str]], references: Sequence[str], encoder: "ScorerEncoder", *, seed: int = 0
) -> tuple[list[dict[str, float]], dict[str, float | int | None]]:
    """Score each (gold, predicted) pair, in order, and say which baseline was used.

    `pieces` is the F1 of the best-matching word pieces, weighted by inverse document frequency; `sentence` the cosine
    of the texts without stop words; `paragraph` the cosine of the whole texts above the baseline, from 0 to 1. `paper`
    is the score of these, from 0 to 0.75, or 1 for equal texts; `published` has no stop words in the paragraph layer
    either. Word pieces are weighed over `references`, and the baseline's pairs are drawn from them. All texts are
    encoded in one call, each distinct one once; the encoder cuts long ones.
    """
    text_pairs = [(gold.strip(), predicted.strip()) for gold, predicted in pairs]
    clean = {text: content_words(text) for pair in text_pairs if not _equal(*pair) for text in pair}
    pieces = {text: [piece for piece in encoder.pieces(clean[text]) if piece.isalnum()] for text in clean}
    draws = _draw_pairs(len(references), seed)
    texts = [word for text in clean for word in (clean[text], text, *pieces[text])]
    texts += [references[place] for pair in draws for place in pair]
    rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    vectors = encoder.encode(list(rows)) if rows else np.zeros((0, 1), dtype=np.float32)

    def cosine(one: str, other: str) -> float:
        return float(vectors[rows[one]] @ vectors[rows[other]])

    cosines = [cosine(references[one], references[other]) for one, other in draws]
    baseline = sum(cosines) / len(cosines) if cosines else _DEFAULT_BASELINE
    weights = _piece_weights(references, encoder) if clean else {}

    def compare(gold: str, predicted: str) -> dict[str, float]:
        if _equal(gold, predicted):
            return dict.fromkeys(("pieces", "sentence", "paragraph", "paper", "published"), 1.0)
        one, other = clean[gold], clean[predicted]
        layers = {
            "pieces": _match_pieces(pieces[gold], pieces[predicted], weights, rows, vectors),
            "sentence": cosine(one, other),
            "paragraph": max(0.0, (cosine(gold, predicted) - baseline) / (1 - baseline)),
        }
        published = layers | {"paragraph": max(0.0, (layers["sentence"] - baseline) / (1 - baseline))}
        return layers | {"paper": _weigh(layers), "published": _weigh(published)}

    return [compare(*pair) for pair in text_pairs], {
        "baseline": baseline,
        "baseline_references": len(references),
        "baseline_seed": seed if draws else None,
    }


def _weigh(layers: Mapping[str, float]) -> float:
    weighted_sum = sum(weight * layer for weight, layer in zip(_WEIGHTS, layers.values(), strict=True))
    score = max(0.0, weighted_sum - _OFFSET)
    return 1.0 if score >= _FULL else score


def content_words(text: str) -> str:
    """Keep the words that are neither stop words nor punctuation alone; punctuation at a word stays."""
    stop = _stop_words()
    words = (word for word in text.split() if word.lower() not in stop and not _PUNCTUATION.issuperset(word))
    return " ".join(words)


@cache
def _stop_words() -> frozenset[str]:
    return frozenset(Path(__file__).with_name("stop_words_en.txt").read_text(encoding="utf-8").split())


def _piece_weights(references: Sequence[str], encoder: "ScorerEncoder") -> dict[str, float]:
    """Compute the inverse document frequency of every piece of the references: `ln((n + 1) / (df + 1)) + 1`."""
    frequency = Counter(piece for text in references for piece in set(encoder.pieces(text)))
    return {piece: math.log((len(references) + 1) / (df + 1)) + 1 for piece, df in frequency.items()}


def _draw_pairs(count: int, seed: int) -> list[tuple[int, int]]:
    """Draw fifty pairs of different places below `count`; none if there are too few references for a baseline."""
    if count < _FEWEST_REFERENCES:
        return []
    generator = np.random.default_rng(seed)
    first = generator.integers(count, size=_BASELINE_PAIRS)
    other = (first + generator.integers(1, count, size=_BASELINE_PAIRS)) % count
    return list(zip(first.tolist(), other.tolist(), strict=True))


def _equal(gold: str, predicted: str) -> bool:
    return gold.lower() == predicted.lower()


def _match_pieces(
    gold: Sequence[str], predicted: Sequence[str], weights: dict[str, float], rows: dict[str, int], vectors: Vectors
) -> float:
    """Compute F1 of each piece's best cosine on the other side; an unknown piece weighs 1, the least a piece can."""
    if not gold or not predicted:
        return 0.0
    cosines = vectors[[rows[piece] for piece in predicted]] @ vectors[[rows[piece] for piece in gold]].T
    precision = np.average(cosines.max(axis=1), weights=[weights.get(piece, 1.0) for piece in predicted])
    recall = np.average(cosines.max(axis=0), weights=[weights.get(piece, 1.0) for piece in gold])
    total = float(precision + recall)
    return float(2 * precision * recall) / total if total > 0 else 0.0


NgramScorer = Callable[[str, str], dict[str, float]]


def load_ngram_scorer() -> tuple[NgramScorer | None, tuple[str, ...]]:
    """Load what scores an answer by BLEU, METEOR and ROUGE, fractions of 1, and say what of it is not here.

    `bleu`: sentence BLEU-4 of NLTK, uniform weights, smoothing method 1; an equal answer of one token has 0.1778.
    `meteor`: NLTK's defaults, alpha 0.9, beta 3, gamma 0.5, Porter's stems, WordNet's synonyms. `rouge`: mean of the F
    of ROUGE-1 and ROUGE-L, stemmed. What NLTK's data lack is no score, and named. None without the packages.
    """
    try:
        from nltk.tokenize import word_tokenize
        from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
        from nltk.translate.meteor_score import meteor_score
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        package = (error.name or "nltk").partition(".")[0]
        return None, (f"{package} is not installed: BLEU, METEOR and ROUGE need medexam[cliniqlink]",)
    smoothing, rouge = SmoothingFunction().method1, RougeScorer(["rouge1", "rougeL"], use_stemmer=True)
    needs: dict[str, Callable[[], object]] = {
        "punkt_tab of NLTK's data (BLEU and METEOR); python -m nltk.downloader punkt_tab": lambda: word_tokenize("a b"),
        "wordnet of NLTK's data (METEOR); python -m nltk.downloader wordnet": lambda: meteor_score([["a"]], ["b"]),
    }
    missing = []
    for name, use in needs.items():
        try:
            use()
        except LookupError:
            missing.append(name)
    has_tokens = not any(name.startswith("punkt") for name in missing)

    def score(gold: str, predicted: str) -> dict[str, float]:
        gold, predicted = gold.lower().strip(), predicted.lower().strip()
        rouges = rouge.score(gold, predicted)
        scores: dict[str, float] = {}
        if has_tokens:
            references, tokens = [word_tokenize(gold)], word_tokenize(predicted)
            scores["bleu"] = float(sentence_bleu(references, tokens, smoothing_function=smoothing))
        if not missing:
            scores["meteor"] = float(meteor_score(references, tokens))
        return scores | {"rouge": (rouges["rouge1"].fmeasure + rouges["rougeL"].fmeasure) / 2}

    return score, tuple(f"not on this machine: {name}" for name in missing)
