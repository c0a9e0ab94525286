"""`medexam compare --overlap`: questions that share a run of words with a corpus, and accuracy with and without it.

As Brown et al. (2020, GPT-3) count contamination. Words are runs of two letters or digits and more, in small letters,
so that what numbers the options counts for nothing. Texts stream by: only the questions' n-grams are kept.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from medexam import Question
from medexam.errors import SpecError
from medexam.experiments import ComparisonScope, ComparisonSection
from medexam.retrievers import corpus_texts
from medexam_companions.analysis.sides import SideWords, contrast_sides

WORDS = 13
"""How many words in a row count as shared, as in GPT-3."""
_WORD = re.compile(r"\w\w+")


def count_overlaps(questions: Iterable[Question], texts: Iterable[str], n: int = WORDS) -> dict[str, Any]:
    """Count the texts (`passages`), those that share `n` words in a row with each question (`shared`, by key), and the
    questions of fewer words (`too_short`). A question's words are those of its context, its stem and its options.
    """
    keys_by_gram: defaultdict[int, set[str]] = defaultdict(set)
    too_short, shared, passages = list[str](), Counter[str](), 0
    for question in questions:
        grams = _find_grams(" ".join([question.asked, *(option.text for option in question.options)]), n)
        too_short += [] if grams else [question.key]
        for gram in grams:
            keys_by_gram[gram].add(question.key)
    for passages, text in enumerate(texts, start=1):  # noqa: B007
        shared.update(set().union(*(keys_by_gram[gram] for gram in _find_grams(text, n) if gram in keys_by_gram)))
    return {"words": n, "passages": passages, "too_short": too_short, "shared": dict(shared)}


def _find_grams(text: str, n: int) -> set[int]:
    """Find the hashes of 64 bits of the n-grams of a text; two that differ are equal once in 10^19 pairs."""
    words = _WORD.findall(text.lower())
    return {hash(tuple(words[start : start + n])) for start in range(len(words) - n + 1)}


def find_overlap(corpus: str, words: int | None, compared: ComparisonScope) -> ComparisonSection:
    """Find the compared questions in a corpus: file, folder or data set of the hub. Raises what `corpus_texts` does."""
    if not compared.benchmark.right_or_wrong:
        raise SpecError("--overlap needs questions with numbered options, and these have none: leave it out")
    keys, name = list(compared.scored.keys), Path(corpus).name
    # As the first run without alteration was asked them; else as the first run was.
    plain = next((place for place, record in enumerate(compared.records) if record.cell.dataset.alter is None), 0)
    items = {item.key: item for item in compared.sets[plain].questions}
    overlaps = count_overlaps([items[item.key] for item in compared.items], corpus_texts(corpus), words or WORDS)
    first = np.array([key in overlaps["shared"] for key in keys])
    second = ~first & ~np.isin(keys, overlaps["too_short"])
    side_words = SideWords(
        title=f"overlap with {name}",
        headers=("With", "Without"),
        phrases=(f"with {overlaps['words']} words of {name}", "without"),
        neither="they have fewer words",
        cause="texts like these in its training data",
    )
    sides = contrast_sides(side_words, first, second, compared) if first.any() and second.any() else None
    shared, short = len(overlaps["shared"]), len(overlaps["too_short"])
    summary = (
        f"{shared:,} of {len(keys) - short:,} questions share {overlaps['words']} words in a row with one of the "
        f"{overlaps['passages']:,} passages of {corpus}; {short:,} more have fewer words."
    )
    document = {"corpus": corpus, "questions": len(keys), **overlaps, "sides": sides and sides.document}
    return ComparisonSection(
        "overlap", [*(sides.sentences if sides else []), summary], document, sides.tables if sides else []
    )
