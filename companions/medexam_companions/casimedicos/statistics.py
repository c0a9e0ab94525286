"""What explained exams hold, from their archive or from files in the form of SQuAD.

Table 9 of Goenaga et al. (2023) counts the sentences of the answer: the part of an explanation that argues for the
right option. Files in the form of SQuAD hold that part. The archive does not, so there the whole explanation is
counted. Tables 2 and 9 show documents, words and sentences so. A word is what stands between white space.
"""

from collections import Counter

from medexam.datasets import locate_files
from medexam.frozen_model import FrozenModel
from medexam.specs import DatasetSpec
from medexam.tables import Table, percent
from medexam.text import split_sentences
from medexam_companions.casimedicos.documents import read_casimedicos
from medexam_companions.casimedicos.extraction import SPANS
from medexam_companions.casimedicos.squad import read_squad

_LENGTHS = ("1", "2", "3", "more than 3")
"""The numbers of sentences that are told apart."""
_TOP = 5
"""Specialties that are shown, the most frequent ones."""


class ExplanationStatistics(FrozenModel):
    """What explained questions hold."""

    label: str
    documents: int
    """Questions; of a file of spans, different pairs of question and context."""
    words: int
    """Of all that a document holds: case, question, options and explanation, as far as the source has them."""
    words_per_document: float
    specialties: dict[str, int]
    """Specialty -> its documents, the most frequent first; empty if the source does not tell it."""
    counted: str
    """Which texts' sentences are counted."""
    sentences: dict[str, float]
    """`1`, `2`, `3` or `more than 3` sentences -> percent of these texts."""

    def tables(self) -> list[Table]:
        """Build tables of the documents and words, and of the sentences of explanations."""
        label = self.label
        sizes = (f"{self.documents:,}", f"{self.words:,}", f"{self.words_per_document:.0f}")
        top = tuple((name, f"{n:,}", percent(n / self.documents)) for name, n in self.specialties.items())[:_TOP]
        shares = tuple((number, f"{share:.2f}") for number, share in self.sentences.items())
        return [
            Table(f"Documents · {label}", ("Documents", "Words", "Words a document"), (sizes,), text_columns=0),
            *([Table(f"Top specialties · {label}", ("Specialty", "Documents", "Percent"), top)] if top else []),
            Table(
                f"Sentences of an explanation · {label}",
                ("Sentences", "Percent"),
                shares,
                caption=f"Percent of {self.counted}.",
            ),
        ]


def compute_explanation_statistics(spec: DatasetSpec) -> ExplanationStatistics:
    """Compute the statistics of everything that `spec` reads; of its split alone if it names one.

    Raises `DatasetError` if the files are missing or cannot be read.
    """
    path = locate_files(spec.name, spec.language, spec.path)[0]
    if path.suffix in SPANS:
        items = read_squad(path)
        documents = sorted({f"{item.question} {item.context}" for item in items})
        part, texts = "parts that argue for the right option", [each.references[0] for each in items if each.references]
        specialties = Counter[str]()
    else:
        filters = {} if spec.split == "all" else {"splits": [spec.split]}
        cases = read_casimedicos(path, spec.language, **filters)
        documents = [" ".join((case.case, case.question, *case.options, case.explanation)) for case in cases]
        part, texts = "whole explanations", [case.explanation for case in cases]
        specialties = Counter(case.specialty.strip().capitalize() or "none" for case in cases)
    counts = Counter(min(len(split_sentences(text)), len(_LENGTHS)) for text in texts)
    words = sum(len(document.split()) for document in documents)
    return ExplanationStatistics(
        label=f"{spec.name} {spec.language}",
        documents=len(documents),
        words=words,
        words_per_document=words / len(documents),
        specialties=dict(specialties.most_common()),
        counted=f"{len(texts):,} {part}",
        sentences={name: 100 * counts[n] / max(1, len(texts)) for n, name in enumerate(_LENGTHS, start=1)},
    )
