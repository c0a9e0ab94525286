"""What a model wrote, cleaned to the translation, and whether that is the question that was to be translated.

The post-processing of Correa-Guillén et al. (2025, section 2.4): the marks of options are normalised, the text ends
with the last option or where the prompt's own keywords come again, and what follows is removed. Three of the checks are
theirs. A fourth finds a reply that ran out of tokens before its last option ended, which would pass them with half an
option. No check says whether the words are right.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from medexam_companions.translation.layout import QuestionText, find_first_option, parse_layout, render_layout

_FENCE = re.compile(r"^\s*```\w*\s*$")
_BEFORE = r"^[\s*_#>•·\-\u2013]*[(\[]?"
"""Blanks, list bullets, the marks of Markdown and a bracket."""
_MARK = re.compile(
    _BEFORE + r"\s*(?P<label>\d{1,2})\s*"
    # 1)  1.  1.-  1:  1 -  but not 1.5 and 5-HT; a minus behind the mark is the option's
    r"(?:[)\]](?:[.:\-\u2013](?=\s))?|\.(?:[\-\u2013)](?=\s))?(?!\d)|[:\-\u2013\u2014](?=[\s*]|$))"
    r"(?:\*\*)?\s*(?P<text>.*?)\s*$"
)
_LETTER = re.compile(
    _BEFORE + r"(?P<label>[A-Ha-h])(?:[)\]](?:[.:\-\u2013](?=\s))?|\.(?=\s))(?:\*\*)?\s*(?P<text>.*?)\s*$"
)
_INLINE = r"(?:(?<=\s)|^)[(\[]?{number}(?:[)\]]\.?|\.[-)]?)\s+"
_LETTERS = "abcdefgh"
_EMPHASIS = re.compile(r"\*\*(?P<text>.+?)\*\*")


class TranslationFault(StrEnum):
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
class TranslationCandidate:
    """What one set-up made of one question."""

    setup: str
    text: QuestionText
    faults: tuple[TranslationFault, ...]
    same_as_source: bool
    """Whether it is the source, word for word; no fault, since some questions are names and numbers only."""

    @property
    def valid(self) -> bool:
        """Whether it has no fault."""
        return not self.faults


def judge_text(
    setup: str, source: QuestionText, cleaned: str, reply: str | None, *, cut_off: bool = False
) -> TranslationCandidate:
    """Judge the candidate that a cleaned reply is; None is no reply. `cut_off`: it ended at its budget of tokens."""
    text = parse_layout(source.key, cleaned)
    faults = find_faults(source, text)
    # What was cleaned away behind the end was written after it, so the end itself is whole.
    if cut_off and reply and reply.rstrip().endswith((cleaned.split() or [""])[-1]):
        faults = (*faults, TranslationFault.CUT_OFF)
    is_unchanged = cleaned.split() == render_layout(source).split()
    return TranslationCandidate(setup, text, faults, is_unchanged)


def find_faults(source: QuestionText, text: QuestionText) -> tuple[TranslationFault, ...]:
    """Find what is wrong with `text` as a translation of `source`, as far as the layout tells."""
    faults = []
    if not text.stem.strip() or not all(words.strip() for _, words in text.options) or not text.options:
        faults.append(TranslationFault.EMPTY_TEXT)
    if len(text.options) != len(source.options):
        faults.append(TranslationFault.OPTION_COUNT)
    if text.numbers != source.numbers[: len(text.numbers)]:
        faults.append(TranslationFault.NUMBERING)
    return tuple(faults)


def clean_reply(reply: str, numbers: Sequence[int], keywords: Collection[str] = ()) -> str:
    """Return the translation that `reply` holds, in the layout of `render_layout`; empty if it holds nothing.

    `numbers` are those of the source's options; the text ends with the line of the last one. `keywords` open the parts
    of the prompt, such as `English:`: one at the beginning is taken off, and at the next one the text ends.
    """
    lines = [line for line in reply.replace("\r\n", "\n").split("\n") if not _FENCE.match(line)]
    lines = _cut_at_keyword(lines, keywords)
    lines = _normalise_marks(lines, numbers)
    lines = _drop_announcement(lines)
    lines = _end_with_last_option(lines, numbers)
    return "\n".join(line for line in lines if line.strip()).strip()


def _cut_at_keyword(lines: list[str], keywords: Collection[str]) -> list[str]:
    body: list[str] = []
    for line in lines:
        bare = line.strip().lstrip("*#_ ").replace("**", "")
        keyword = next((word for word in keywords if bare.lower().startswith(word.lower())), None)
        if keyword is None:
            body.append(line)
        elif any(text.strip() for text in body):
            break
        elif remainder := bare[len(keyword) :].strip():
            body.append(remainder)
    return body


def _normalise_marks(lines: list[str], numbers: Sequence[int]) -> list[str]:
    """Write every mark of an option as `1. `, whatever stood for it: `1)`, `(1)`, `1.-`, `**1.**`, `a)`, or all in a
    line.
    """
    marks = [_MARK.match(line) for line in lines]
    numbered_lines = list(map(_rewrite, lines, marks))
    if any(mark is not None and int(mark["label"]) in numbers for mark in marks[1:]):
        return numbered_lines
    letters = [_LETTER.match(line) for line in lines]
    sequence = "".join(mark["label"].lower() for mark in letters if mark)
    if len(sequence) > 1 and _LETTERS.startswith(sequence):
        return list(map(_rewrite, lines, letters))
    return [part for line in numbered_lines for part in _split_inline(line, numbers)]


def _rewrite(line: str, mark: re.Match[str] | None) -> str:
    """Write the line with `1. ` instead of its mark, a number or a letter."""
    if mark is None:
        return _plain(line)
    label = mark["label"]
    return _marked(int(label) if label.isdigit() else _LETTERS.index(label.lower()) + 1, mark["text"])


def _split_inline(line: str, numbers: Sequence[int]) -> list[str]:
    """Put the stem and each option on a line of its own, where one line holds all marks in their order."""
    places: list[tuple[int, int]] = []
    position = 0
    for number in numbers:
        mark = re.compile(_INLINE.format(number=number)).search(line, position)
        if mark is None:
            return [line]
        places.append(mark.span())
        position = mark.end()
    ends = [begin for begin, _ in places[1:]] + [len(line)]
    options = [
        _marked(number, line[begin:end].strip()) for number, (_, begin), end in zip(numbers, places, ends, strict=True)
    ]
    return [line[: places[0][0]].strip(), *options]


def _drop_announcement(lines: list[str]) -> list[str]:
    """Drop a first paragraph such as `Here is the translation:`, where a stem stands behind it."""
    lines = lines[next((place for place, line in enumerate(lines) if line.strip()), len(lines)) :]
    if len(lines) < 3 or lines[1].strip() or not lines[0].strip().endswith(":"):
        return lines
    body = [line for line in lines[1:] if line.strip()]
    return lines if not body or _MARK.match(body[0]) else body


def _end_with_last_option(lines: list[str], numbers: Sequence[int]) -> list[str]:
    """Cut behind the line of the last option; without that option, at the blank line behind the last one there is."""
    matches = [_MARK.match(line) for line in lines]
    marks = [int(mark["label"]) if mark else None for mark in matches]
    begins = find_first_option(marks)
    last = next((place for place in range(begins, len(lines)) if marks[place] == numbers[-1]), None)
    if last is not None:
        return lines[: last + 1]
    options = [place for place in range(begins, len(lines)) if marks[place] is not None]
    if not options:
        return lines
    blank = (place for place in range(options[-1] + 1, len(lines)) if not lines[place].strip())
    return lines[: next(blank, len(lines))]


def _marked(number: int, text: str) -> str:
    return f"{number}. {_plain(text)}".rstrip()


def _plain(line: str) -> str:
    return _EMPHASIS.sub(r"\g<text>", line).rstrip()
