"""Whether a cleaned reply is the question that was to be translated: the checks that count errors by set-up.

The first three are HEAD-QA v2's; a reply that ran out of tokens before its last option ended is one more, for it would
pass them with half an option. None of them says whether the words are right.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from medexam.datasets.translate.cleaning import clean_reply
from medexam.datasets.translate.layout import QuestionText, read_layout, render_layout


class Fault(StrEnum):
    """What makes a translation invalid; one may have several."""

    EMPTY_TEXT = "empty_text"
    """Nothing was written, or the stem or an option has no text."""
    OPTION_COUNT = "option_count"
    """There are more or fewer options than the source has."""
    NUMBERING = "numbering"
    """The options do not carry the source's numbers in the source's order; missing ones at the end are not counted."""
    CUT_OFF = "cut_off"
    """The reply ended at its budget of tokens within the last thing that was kept of it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What one set-up made of one question."""

    setup: str
    text: QuestionText
    faults: tuple[Fault, ...]
    same_as_source: bool
    """Whether it is the source, word for word; no fault, since some questions are names and numbers only."""

    @property
    def valid(self) -> bool:
        """Whether it has no fault."""
        return not self.faults


def judge_reply(
    setup: str, source: QuestionText, reply: str | None, *, cut_off: bool = False, keywords: Collection[str] = ()
) -> Candidate:
    """The candidate that a reply is; None is no reply. `cut_off` says that it ended at its budget of tokens."""
    cleaned = clean_reply(reply or "", source.numbers, keywords)
    text = read_layout(source.key, cleaned)
    faults = find_faults(source, text)
    # What was cleaned away behind the end was written after it, so the end itself is whole.
    if cut_off and reply and reply.rstrip().endswith(_tail(cleaned)):
        faults = (*faults, Fault.CUT_OFF)
    same = cleaned.split() == render_layout(source).split()
    return Candidate(setup, text, faults, same)


def find_faults(source: QuestionText, text: QuestionText) -> tuple[Fault, ...]:
    """What is wrong with `text` as a translation of `source`, as far as the layout tells."""
    faults = []
    if not text.stem.strip() or not all(words.strip() for _, words in text.options) or not text.options:
        faults.append(Fault.EMPTY_TEXT)
    if len(text.options) != len(source.options):
        faults.append(Fault.OPTION_COUNT)
    if text.numbers != source.numbers[: len(text.numbers)]:
        faults.append(Fault.NUMBERING)
    return tuple(faults)


def _tail(text: str) -> str:
    words = text.split()
    return words[-1] if words else ""
