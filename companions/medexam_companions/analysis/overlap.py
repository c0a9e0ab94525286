"""`medexam compare --overlap`: questions that share a run of words with a corpus, and accuracy with and without it.

As Brown et al. (2020, GPT-3) count contamination. Words are runs of two letters or digits and more, in small letters,
so that what numbers the options counts for nothing. Texts stream by: only the questions' n-grams are kept.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from medexam import Question
from medexam.errors import SpecError
from medexam.experiments import ComparisonScope, ComparisonSection
from medexam.retrievers import corpus_texts
from medexam.tables import Captioned, percent
from medexam_companions.analysis.sides import SideWords, TwoSides, contrast_sides

WORDS = 13
"""How many words in a row count as shared, as in GPT-3."""
_WORD = re.compile(r"\w\w+")


class QuestionGrams:
    """The n-grams of questions, over the context, the stem and the options in turn."""

    def __init__(self, questions: Iterable[Question], n: int = WORDS) -> None:
        self.n, self.texts = n, 0
        """How many words, and how many texts were searched."""
        self.too_short: set[str] = set()
        """Keys of questions with fewer words, which cannot overlap."""
        self._keys_by_gram: defaultdict[int, set[str]] = defaultdict(set)
        for question in questions:
            grams = list(self._grams(" ".join([question.asked, *(option.text for option in question.options)])))
            if not grams:
                self.too_short.add(question.key)
            for gram in grams:
                self._keys_by_gram[gram].add(question.key)

    def find(self, texts: Iterable[str]) -> Mapping[str, int]:
        """Map the key of each question that shares an n-gram with a text to the number of texts that do so."""
        counts: defaultdict[str, int] = defaultdict(int)
        for text in texts:
            self.texts += 1
            shared = [self._keys_by_gram[gram] for gram in self._grams(text) if gram in self._keys_by_gram]
            for key in set().union(*shared):
                counts[key] += 1
        return counts

    def _grams(self, text: str) -> Iterable[int]:
        """Yield hashes of 64 bits, of which two that differ are equal once in 10^19 pairs."""
        words = _WORD.findall(text.lower())
        return (hash(tuple(words[start : start + self.n])) for start in range(len(words) - self.n + 1))


@dataclass(frozen=True)
class Overlap(ComparisonSection):
    """What of the compared questions stands in a corpus."""

    name = "overlap"
    counts: Mapping[str, Any]
    """The corpus, how many `words` in a row are shared, how many `passages` were read and `questions` compared; how
    many of these have fewer words (`too_short`); and key of each that overlaps -> with how many passages (`shared`)."""
    sides: TwoSides | None
    """The runs on questions with and without overlap; None if there are none of one sort."""

    def tables(self, names: Sequence[str]) -> list[Captioned]:
        """Build the tables of both sorts of questions."""
        return [] if self.sides is None else self.sides.tables(names)

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write what may be said of each run, and how many questions overlap."""
        shared, short = len(self.counts["shared"]), self.counts["too_short"]
        count = self.counts["questions"] - short
        share = f" ({percent(shared / count)} %)" if count else ""
        note = f"; {short:,} more have fewer words" if short else ""
        summary = (
            f"{shared:,} of {count:,} questions{share} share {self.counts['words']} words in a row with one of the "
            f"{self.counts['passages']:,} passages of {self.counts['corpus']}{note}."
        )
        return [*([] if self.sides is None else self.sides.sentences(names)), summary]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build what `--json` says."""
        return {**self.counts, "accuracy": self.sides and self.sides.document(keys)}


def find_overlap(corpus: str, words: int | None, compared: ComparisonScope) -> Overlap:
    """Find the compared questions in a corpus: file, folder or data set of the hub. Raises what `corpus_texts` does."""
    if not compared.benchmark.right_or_wrong:
        raise SpecError("--overlap needs questions with numbered options, and these have none: leave it out")
    grams = QuestionGrams(_as_printed(compared), words or WORDS)
    shared = grams.find(corpus_texts(corpus))
    keys = list(compared.scores[0])
    first = np.array([key in shared for key in keys])
    second = ~first & np.array([key not in grams.too_short for key in keys])
    name = Path(corpus).name
    side_words = SideWords(
        title=f"overlap with {name}",
        headers=("With", "Without"),
        phrases=(f"with {grams.n} words of {name}", "without"),
        neither="they have fewer words",
        cause="texts like these in its training data",
    )
    sides = contrast_sides(side_words, first, second, compared) if first.any() and second.any() else None
    counts = {
        "corpus": corpus,
        "words": grams.n,
        "passages": grams.texts,
        "questions": len(keys),
        "too_short": len(grams.too_short),
        "shared": {key: shared[key] for key in keys if key in shared},
    }
    return Overlap(counts, sides)


def _as_printed(compared: ComparisonScope) -> list[Question]:
    """Return the compared questions as the first run without alteration was asked them; else as the first run was."""
    records = [folder.read_record() for folder in compared.folders]
    first = next((place for place, record in enumerate(records) if record.cell.dataset.alter is None), 0)
    items_by_key = {item.key: item for item in compared.sets[first].questions}
    return [items_by_key[item.key] for item in compared.items]
