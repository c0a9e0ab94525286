"""How near two texts are in meaning: word pieces, the whole text, and the whole text above a baseline.

The encoder is given; this knows no model and no format. All texts of a set are encoded in one call, each distinct one
once. Rules: the released scorer of ClinIQLink 2025. The stop words beside this file are NLTK's English list (198 words,
package `stopwords` of NLTK data, from Snowball's lists, BSD licence); "not", "no" and "nor" are among them.
"""

import math
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

FEWEST_REFERENCES = 100
"""With fewer, the baseline is `DEFAULT_BASELINE`."""
DEFAULT_BASELINE = 0.3
BASELINE_PAIRS = 50
_WEIGHTS = (0.4, 0.4, 0.2)
"""Word pieces, sentence, paragraph."""
_OFFSET = 0.25
_FULL = 0.95
"""From here on a score would be 1; the offset keeps every score at or below 0.75, so that it never is."""
_PUNCTUATION = frozenset(string.punctuation)


class TextEncoder(Protocol):
    """A sentence encoder and its tokeniser; the benchmark's is all-MiniLM-L6-v2."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Encode texts as vectors of length 1, `[n, dimension]`; row i is text i."""

    def pieces(self, text: str) -> Sequence[str]:
        """Split a text into word pieces, lower-cased, continuations marked with `##`, no special tokens."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The cosine that unrelated texts have, which the paragraph layer subtracts."""

    cosine: float
    references: int
    """Texts that it comes from."""
    seed: int | None
    """What drew the pairs; None if there were too few references and the cosine is the default."""


@dataclass(frozen=True, slots=True)
class Similarity:
    """The layers and the score of a pair; 1 throughout for equal texts."""

    pieces: float
    """IDF-weighted F1 of the best-matching word pieces."""
    sentence: float
    """Cosine of the texts without stop words."""
    paragraph: float
    """Cosine above the baseline, from 0 to 1."""
    score: float
    """From 0 to 0.75, or 1 for equal texts."""


EQUAL = Similarity(1.0, 1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class _Side:
    """One text of a pair, as the layers see it."""

    clean: str
    paragraph: str
    pieces: tuple[str, ...]


def compare_texts(
    pairs: Sequence[tuple[str, str]],
    references: Sequence[str],
    encoder: TextEncoder,
    *,
    raw_paragraph: bool,
    seed: int = 0,
) -> tuple[list[Similarity], Baseline]:
    """Score each (gold, predicted) pair, in order, and say which baseline was used.

    `references` are what word pieces are weighed over, and what the baseline's pairs are drawn from. With
    `raw_paragraph` the paragraph layer compares the texts as they are, else without their stop words. Texts are cut
    where the encoder cuts them.
    """
    text_pairs = [(gold.strip(), predicted.strip()) for gold, predicted in pairs]
    sides = {text: _side(text, encoder, raw_paragraph) for pair in text_pairs if not _equal(*pair) for text in pair}
    draws = draw_pairs(len(references), seed) if len(references) >= FEWEST_REFERENCES else []
    texts = [text for side in sides.values() for text in (side.clean, side.paragraph, *side.pieces)]
    texts += [references[place] for pair in draws for place in pair]
    rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    vectors = encoder.encode(list(rows)) if rows else np.zeros((0, 1), dtype=np.float32)

    def cosine(one: str, other: str) -> float:
        return float(vectors[rows[one]] @ vectors[rows[other]])

    if draws:
        mean = sum(cosine(references[one], references[other]) for one, other in draws) / len(draws)
        baseline = Baseline(mean, len(references), seed)
    else:
        baseline = Baseline(DEFAULT_BASELINE, len(references), None)
    weights = piece_weights(references, encoder) if sides else {}

    def compare(gold: str, predicted: str) -> Similarity:
        if _equal(gold, predicted):
            return EQUAL
        one, other = sides[gold], sides[predicted]
        piece_score = _match_pieces(one.pieces, other.pieces, weights, rows, vectors)
        sentence = cosine(one.clean, other.clean)
        above = (cosine(one.paragraph, other.paragraph) - baseline.cosine) / (1 - baseline.cosine)
        return combine_layers(piece_score, sentence, max(0.0, above))

    return [compare(*pair) for pair in text_pairs], baseline


def combine_layers(pieces: float, sentence: float, paragraph: float) -> Similarity:
    """Weigh the layers 0.4, 0.4 and 0.2 and take 0.25 off."""
    weighted_sum = sum(weight * layer for weight, layer in zip(_WEIGHTS, (pieces, sentence, paragraph), strict=True))
    score = max(0.0, weighted_sum - _OFFSET)
    return Similarity(pieces, sentence, paragraph, 1.0 if score >= _FULL else score)


def content_words(text: str) -> str:
    """Keep the words that are neither stop words nor punctuation alone; punctuation at a word stays."""
    stop = stop_words()
    words = (word for word in text.split() if word.lower() not in stop and not _PUNCTUATION.issuperset(word))
    return " ".join(words)


@cache
def stop_words() -> frozenset[str]:
    """Load NLTK's English stop words."""
    return frozenset(files(__package__).joinpath("stop_words_en.txt").read_text(encoding="utf-8").split())


def piece_weights(references: Sequence[str], encoder: TextEncoder) -> dict[str, float]:
    """Compute the inverse document frequency of every piece of the references: `ln((n + 1) / (df + 1)) + 1`."""
    frequency = Counter(piece for text in references for piece in set(encoder.pieces(text)))
    return {piece: math.log((len(references) + 1) / (df + 1)) + 1 for piece, df in frequency.items()}


def draw_pairs(count: int, seed: int) -> list[tuple[int, int]]:
    """Draw fifty pairs of different places below `count`, which is 2 at least."""
    generator = np.random.default_rng(seed)
    first = generator.integers(count, size=BASELINE_PAIRS)
    other = (first + generator.integers(1, count, size=BASELINE_PAIRS)) % count
    return list(zip(first.tolist(), other.tolist(), strict=True))


def _side(text: str, encoder: TextEncoder, raw_paragraph: bool) -> _Side:
    clean = content_words(text)
    pieces = tuple(piece for piece in encoder.pieces(clean) if piece.isalnum())
    return _Side(clean, text if raw_paragraph else clean, pieces)


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
