"""What a human should look at in a parsed question, and what keeps it out of the data set.

It judges and never repairs; corrections do.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from medexam.text import count_of
from medexam_companions.booklets.drafts import Draft
from medexam_companions.booklets.images import MENTION, parse_links
from medexam_companions.booklets.pages.numbering import MOST_OPTIONS

LONGEST_OPTION = 400
"""Characters of an option over which two may have run together."""

_UNREADABLE = re.compile(r"[\ue000-\uf8ff\ufffd\u25a1]")


def find_doubts(draft: Draft, usual_options: int, printed: str) -> Iterator[tuple[str, str]]:
    """Yield what is odd about a question, as kind and detail; `printed` is its text as the PDF library reads it."""
    if len(draft.options) != usual_options or _has_gap(draft):
        yield "missing_option", f"has options {_show(draft.options)}, most questions have {usual_options}"
    for number, text in draft.options.items():
        if len(text) > LONGEST_OPTION:
            yield "long_option", f"option {number} has {len(text)} characters"
        if label := _find_label(draft, number):
            yield "label_inside", f"option {number} holds the label {label!r}: it may contain another option"
    if lost := find_lost_digits(draft, printed):
        yield "digits_lost", f"the page has the digits {lost}, which the question lacks"
    if draft.restarted:
        yield "two_questions_in_one", "its options begin twice: numbered statements, or two questions"
    elif re.search(rf"(?<![\d.,]){draft.number + 1}\s?\.\s+[¿A-ZÁÉÍÓÚÑ]", draft.text):
        yield "two_questions_in_one", f"holds what looks like the beginning of question {draft.number + 1}"
    if draft.after:
        yield "text_between_questions", f"is followed by text that belongs to no question: {draft.after[:100]!r}"
    yield from _find_unread(draft)
    if draft.drawings:
        drawn = count_of(len(draft.drawings), "picture")
        yield "drawing", f"contains {drawn}, perhaps chemical structures: write their SMILES in --corrections"
    links = parse_links(draft.stem)
    if len(links) > 1:
        yield "several_pictures", f"is linked to pictures {list(links)}: the first was taken"
    if draft.picture is None and (links or MENTION.search(draft.stem)):
        yield "picture_missing", "speaks of a picture and has none"


def _find_label(draft: Draft, number: int) -> str:
    """Find the label of the next option, or of one that is missed, in an option's text; empty if there is none."""
    for other in range(number + 1, MOST_OPTIONS + 1):
        if draft.first_label == "1" and other == draft.number + 1:
            continue  # The next question's own.
        label = chr(ord(draft.first_label) + other - 1)
        inside = re.search(rf"(?<![\w.,(-])\(?{label}\s?[.)]\s*(?=[^\W\d])", draft.options[number])
        if inside and (other == number + 1 or other not in draft.options):
            return inside[0].strip()
    return ""


def _find_unread(draft: Draft) -> Iterator[tuple[str, str]]:
    if codes := sorted({f"U+{ord(character):04X}" for character in _UNREADABLE.findall(draft.text)}):
        yield "unreadable_character", f"holds {', '.join(codes)}: characters without a meaning"
    if draft.guessed:
        guessed = count_of(draft.guessed, "guessed character")
        yield "guessed_characters", f"contains {guessed}: the font does not name them"


def find_flaw(draft: Draft) -> str | None:
    """Return why a question cannot be asked; None if it can."""
    if not draft.stem.strip():
        return "nothing is asked"
    if len(draft.options) < 2:
        return f"has {len(draft.options)} options"
    if _has_gap(draft):
        return f"has options {_show(draft.options)}: one could not be read"
    empty = [number for number, text in draft.options.items() if not text.strip()]
    if empty:
        hint = ": they may be drawn" if draft.drawings else ""
        return f"no text in options {_show(empty)}{hint}"
    if draft.gold is not None and draft.gold not in draft.options:
        return f"the official answer {draft.gold} is none of its options {_show(draft.options)}"
    return None


def find_lost_digits(draft: Draft, printed: str) -> str:
    """Find digits of the page that the question does not hold, its own number and its options' aside."""
    labels = "".join(map(str, [draft.number, *draft.options]))
    lost = Counter(re.findall(r"\d", printed)) - Counter(re.findall(r"\d", draft.text + labels))
    return "".join(sorted(lost.elements()))


def _has_gap(draft: Draft) -> bool:
    return list(draft.options) != list(range(1, len(draft.options) + 1))


def _show(numbers: Sequence[int] | dict[int, str]) -> str:
    return ", ".join(map(str, numbers)) or "none"
