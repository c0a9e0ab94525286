"""Lines to questions: which number begins a question, which an option, in sequence and by where it stands.

A number at the left edge that continues the count of questions begins one; a number further in that continues the
count of options begins an option. Where a booklet sets both alike, the next number decides. It knows nothing of pages
beyond their order.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, zip_longest

from medexam_companions.booklets.pages.layout import BookletLayout, Line

MOST_OPTIONS = 9
LONGEST_JUMP = 5
"""Question numbers that may be missing before a number is no longer taken for the next question's."""

_END = r"\s?[.)]\s?[-\u2013]?"
_LABEL = re.compile(rf"^(?:pregunta\s*)?\(?(\d{{1,3}}){_END}\s*(?=\D|$)(.*)$", re.IGNORECASE)
_LABEL_CLOSE = re.compile(rf"^\(?(\d{{1,3}}){_END}\s+(.*)$")
_LETTER = re.compile(rf"^\(?([a-i]){_END}(?:\s+|$|(?=[\w\xbf]))(.*)$", re.IGNORECASE)
_BARE = re.compile(r"^(\d{1,3})(?:\s+|$)(.*)$")
_NEAR = 8.0
"""Points: labels that differ less in their indent are set alike; numbers of one, two and three digits do, aligned."""
_PARAGRAPH = 1.5
"""Leadings between two lines that belong to different paragraphs."""
_MOST_STARTS = 40
"""Lines numbered 1 that are tried as the first question."""


@dataclass(slots=True)
class RawOption:
    """The lines of one option."""

    number: int
    printed: Line
    """Its first line with its number."""
    lines: list[Line]
    """The number taken off."""


@dataclass(slots=True)
class RawQuestion:
    """The lines of one question, before they are joined."""

    number: int
    stem: list[Line]
    """The number taken off."""
    options: list[RawOption] = field(default_factory=list)
    restarted: bool = False
    """Whether its options began twice, as when a stem lists statements by number or two questions ran together."""
    after: list[Line] = field(default_factory=list)
    """Lines that stand apart after its last option and belong to no question."""

    @property
    def lines(self) -> list[Line]:
        """Its lines in reading order, without those after it."""
        return [*self.stem, *(line for option in self.options for line in option.lines)]


@dataclass(frozen=True, slots=True)
class Numbered:
    """What a booklet asks, as it was told apart by number."""

    questions: tuple[RawQuestion, ...]
    before: tuple[Line, ...]
    """Covers and instructions: what stands before the first question."""

    @property
    def usual_options(self) -> int:
        """How many options most questions have; 0 without questions."""
        return (
            Counter(len(question.options) for question in self.questions).most_common(1)[0][0] if self.questions else 0
        )


@dataclass(frozen=True, slots=True)
class _Label:
    place: int
    """Of its line, from 0."""
    number: int
    text: str
    role: str
    """`question`, `option` or `either`."""


def read_numbers(layout: BookletLayout) -> Numbered:
    """Read the questions in a booklet's lines; none when no line is numbered 1 with options after it.

    Options are labelled by numbers, or else by letters; questions by numbers with a full stop, or else by bare ones.
    """
    best: list[RawQuestion] = []
    first_place = 0
    for labels in (
        _find_labels(layout.lines),
        _find_by_form(layout.lines, _LETTER, "question", "option"),
        _find_by_form(layout.lines, _BARE, "option", "question"),
    ):
        # Covers and instructions are numbered too, so every 1 is tried; the start with most whole questions is right.
        for start in [label for label in labels if label.number == 1 and label.role != "option"][:_MOST_STARTS]:
            questions = _read_from(layout, labels, start.place)
            if _count_whole(questions) > _count_whole(best):
                best, first_place = questions, start.place
    numbered = Numbered(tuple(best), tuple(layout.lines[:first_place]))
    for question in best:
        _set_apart(question, layout.leading, numbered.usual_options, last=question is best[-1])
    return numbered


def _count_whole(questions: Sequence[RawQuestion]) -> int:
    return sum(len(question.options) >= 2 for question in questions)


def _find_labels(lines: Sequence[Line]) -> list[_Label]:
    candidates = []
    for place, line in enumerate(lines):
        match = _LABEL_CLOSE.match(line.text) or _LABEL.match(line.text)
        if match:
            candidates.append((place, int(match.group(1)), match.group(2), line.indent))
    outer = [round(indent) for _, number, _, indent in candidates if number > MOST_OPTIONS]
    outer = outer or [round(min(indent for *_, indent in candidates))] if candidates else []
    edge = Counter(outer).most_common(1)[0][0] if outer else 0
    inner = [round(indent) for _, number, _, indent in candidates if number <= MOST_OPTIONS and indent > edge + _NEAR]
    apart = len(inner) > len(candidates) / 2
    option_edge = Counter(inner).most_common(1)[0][0] if apart else edge
    labels = []
    for place, number, text, indent in candidates:
        if not apart:
            role = "either" if abs(indent - edge) <= _NEAR else ""
        elif abs(indent - edge) <= _NEAR:
            role = "question"
        else:
            role = "option" if abs(indent - option_edge) <= _NEAR else ""
        if role:
            labels.append(_Label(place, number, text, role))
    return labels


def _find_by_form(lines: Sequence[Line], other: re.Pattern[str], role: str, other_role: str) -> list[_Label]:
    """Find labels whose form tells their role: `role` for numbers with a full stop, else letters or bare numbers.

    Bare numbers are labels at the edge alone.
    """
    labels = []
    for place, line in enumerate(lines):
        if match := _LABEL_CLOSE.match(line.text) or _LABEL.match(line.text):
            labels.append(_Label(place, int(match[1]), match[2], role))
        elif (match := other.match(line.text)) and (other is _LETTER or line.indent <= _NEAR):
            number = int(match[1]) if match[1].isdigit() else ord(match[1].lower()) - ord("a") + 1
            labels.append(_Label(place, number, match[2], other_role))
    return labels


def _read_from(layout: BookletLayout, labels: Sequence[_Label], start: int) -> list[RawQuestion]:
    """Read the questions from the line at `start`, which is taken for the first one's."""
    pair_by_place = {label.place: (label, following) for label, following in zip_longest(labels, labels[1:])}
    questions: list[RawQuestion] = []
    for place in range(start, len(layout.lines)):
        line = layout.lines[place]
        label, following = pair_by_place.get(place, (None, None))
        last = questions[-1] if questions else None
        if label is not None and _begins_question(label, following, last):
            questions.append(RawQuestion(label.number, [replace(line, text=label.text)]))
        elif last is not None and label is not None and _begins_option(label, following, last):
            if label.number == 1 and last.options:
                # What was taken for options are numbered lines of the stem.
                last.restarted = True
                last.stem += [each for option in last.options for each in (option.printed, *option.lines[1:])]
                last.options.clear()
            last.options.append(RawOption(label.number, line, [replace(line, text=label.text)]))
        elif last is not None:
            (last.options[-1].lines if last.options else last.stem).append(line)
    return questions


def _begins_question(label: _Label, following: _Label | None, last: RawQuestion | None) -> bool:
    if label.role == "option":
        return False
    expected = last.number + 1 if last else 1
    opens = following is not None and following.number == 1
    if label.role == "question" and label.number == expected:
        return True
    return opens and expected <= label.number <= expected + LONGEST_JUMP and (last is None or len(last.options) >= 2)


def _begins_option(label: _Label, following: _Label | None, question: RawQuestion) -> bool:
    if label.role == "question" or label.number > MOST_OPTIONS:
        return False
    if label.number == 1:
        return not question.options or (following is not None and following.number == 2)
    # One number may not have been read: better a gap that is seen than two options in one.
    skips_one = bool(question.options) and label.number == question.options[-1].number + 2
    return label.number == len(question.options) + 1 or skips_one


def _set_apart(question: RawQuestion, leading: float, usual: int, *, last: bool) -> None:
    """Move what stands a paragraph's distance after the last option out of it."""
    if not question.options or len(question.options) < usual:
        return
    option = question.options[-1]
    for place, (before, line) in enumerate(pairwise(option.lines), start=1):
        same_column = before.box.page == line.box.page and before.column == line.column
        apart = before.baseline - line.baseline > _PARAGRAPH * leading if same_column else False
        if apart or (last and before.box.page != line.box.page):
            question.after = option.lines[place:]
            del option.lines[place:]
            return
