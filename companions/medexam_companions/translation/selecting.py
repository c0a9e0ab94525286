"""Which of several translations of a question is kept: three rules (Correa-Guillén et al. 2025, section 2.4).

1. Only one is valid: that one.
2. Two are valid: that of the set-up with fewer errors over all questions.
3. Three or more are valid: of the two most similar ones, that of the set-up with fewer errors.

A question without a valid translation is discarded. Set-ups with equally many errors keep the order they came in.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from medexam_companions.translation.layout import render_layout
from medexam_companions.translation.validity import TranslationCandidate

_GRAM = 3


RULES = ("only_valid", "fewer_errors", "most_similar")
"""Why a translation may be chosen."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The translation that is kept of one question."""

    candidate: TranslationCandidate
    rule: str
    similarity: float | None
    """Of the two most similar ones, from 0 to 1; None if it was not asked for."""


def select(candidates: Mapping[str, Sequence[TranslationCandidate]]) -> dict[str, Choice]:
    """Choose among the candidates of each question, by its key; a question without a valid one is left out.

    The set-ups stand in one order everywhere.
    """
    errors: Counter[str] = Counter()
    for offered in candidates.values():
        for candidate in offered:
            errors[candidate.setup] += not candidate.valid
    valid = {key: [candidate for candidate in offered if candidate.valid] for key, offered in candidates.items()}
    return {key: _choose(offered, errors) for key, offered in valid.items() if offered}


def _choose(valid: Sequence[TranslationCandidate], errors: Mapping[str, int]) -> Choice:
    if len(valid) == 1:
        return Choice(valid[0], "only_valid", None)
    if len(valid) == 2:
        return Choice(min(valid, key=lambda candidate: errors[candidate.setup]), "fewer_errors", None)
    texts = [render_layout(candidate.text) for candidate in valid]
    pairs = combinations(range(len(valid)), 2)
    nearness, index, other_index = max(
        ((similarity(texts[a], texts[b]), a, b) for a, b in pairs), key=lambda pair: (pair[0], -pair[1], -pair[2])
    )
    choice = min((valid[index], valid[other_index]), key=lambda candidate: errors[candidate.setup])
    return Choice(choice, "most_similar", nearness)


def similarity(text: str, other: str) -> float:
    """Compute Dice's coefficient over character trigrams of the lower-cased texts, as multisets: from 0 to 1.

    Dice (1945), "Measures of the amount of ecologic association between species": twice the trigrams in common over
    the trigrams of both. The paper names no measure; this one needs no model, works in every script and does not mind
    the order of words as much as an edit distance does.
    """
    first, second = _trigrams(text), _trigrams(other)
    total = first.total() + second.total()
    return 2 * (first & second).total() / total if total else 1.0


def _trigrams(text: str) -> Counter[str]:
    padded = f" {' '.join(text.lower().split())} "
    return Counter([padded[place : place + _GRAM] for place in range(len(padded) - _GRAM + 1)])
