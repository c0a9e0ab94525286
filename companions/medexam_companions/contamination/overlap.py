"""`medexam compare --overlap`: questions that share a run of words with a corpus, and accuracy with and without it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from medexam import Question
from medexam.errors import SpecError
from medexam.experiments import ComparisonScope
from medexam.retrievers import corpus_texts
from medexam.tables import percent
from medexam_companions.contamination.ngram_overlap import WORDS, QuestionGrams
from medexam_companions.contamination.sides import SideWords, TwoSides, contrast_sides


@dataclass(frozen=True)
class Overlap:
    """What of the compared questions stands in a corpus."""

    corpus: str
    words: int
    """How many words in a row are shared."""
    texts: int
    """Passages that were read."""
    questions: int
    too_short: int
    """Questions with fewer words, which cannot overlap."""
    shared: dict[str, int]
    """Key of each question that overlaps -> with how many passages."""
    sides: TwoSides | None
    """The runs on questions with and without overlap; None if there are none of one sort."""

    @property
    def sentence(self) -> str:
        """How many questions overlap."""
        question_count = self.questions - self.too_short
        share = f" ({percent(len(self.shared) / question_count)} %)" if question_count else ""
        note = f"; {self.too_short:,} more have fewer words" if self.too_short else ""
        return (
            f"{len(self.shared):,} of {question_count:,} questions{share} share {self.words} words in a row with one "
            f"of the {self.texts:,} passages of {self.corpus}{note}."
        )

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build what `--json` says."""
        return {
            "corpus": self.corpus,
            "words": self.words,
            "passages": self.texts,
            "questions": self.questions,
            "too_short": self.too_short,
            "shared": self.shared,
            "accuracy": self.sides and self.sides.document(keys),
        }


def find_overlap(corpus: str, words: int | None, compared: ComparisonScope) -> Overlap:
    """Find the compared questions in a corpus: file, folder or data set of the hub. Raises what `load_corpus` does."""
    if not compared.benchmark.right_or_wrong:
        raise SpecError("--overlap needs questions with numbered options, and these have none: leave it out")
    grams = QuestionGrams(_as_printed(compared), words or WORDS)
    text_count = 0

    def counted() -> Iterator[str]:
        nonlocal text_count
        for text_count, text in enumerate(corpus_texts(corpus), start=1):  # noqa: B007
            yield text

    shared = grams.find(counted())
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
    return Overlap(
        corpus=corpus,
        words=grams.n,
        texts=text_count,
        questions=len(keys),
        too_short=len(grams.too_short),
        shared={key: shared[key] for key in keys if key in shared},
        sides=sides,
    )


def _as_printed(compared: ComparisonScope) -> list[Question]:
    """Return the compared questions as the first run without alteration was asked them; else as the first run was."""
    records = [folder.read_record() for folder in compared.folders]
    first = next((place for place, record in enumerate(records) if record.cell.dataset.alter is None), 0)
    items_by_key = {item.key: item for item in compared.sets[first].questions}
    return [items_by_key[item.key] for item in compared.items]
