"""A question on its way from the booklet to the data set: mutable, with all that was noticed about it.

Drafts are made of numbered lines: lines are joined, places gathered, and drawings given to the question around them.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medexam_companions.booklets.images import BookletPicture
from medexam_companions.booklets.pages.frames import Box
from medexam_companions.booklets.pages.hyphens import Vocabulary, join_lines
from medexam_companions.booklets.pages.layout import BookletLayout, Line
from medexam_companions.booklets.pages.numbering import Numbered, RawQuestion

_BESIDE = 6.0
"""Points that a drawing may stand out of its question's column."""


@dataclass(slots=True)
class Draft:
    """One question as far as it is known now."""

    number: int
    stem: str
    options: dict[int, str]
    """In the order of the booklet, by printed number."""
    boxes: tuple[Box, ...]
    """Where it stands, one box for each column or page that it runs over; none for one that was added by hand."""
    hyphens: Sequence[Mapping[str, Any]] = ()
    """What was done with those at the ends of its lines."""
    first_label: str = "1"
    """How the booklet labels a first option: `1`, `a` or `A`."""
    restarted: bool = False
    """Whether its options began twice."""
    after: str = ""
    """Text that stands after it and belongs to no question."""
    drawings: tuple[Box, ...] = ()
    """Pictures printed inside it."""
    guessed: int = 0
    """Characters that the PDF does not tell, so that their codes were taken for them."""
    gold: int | None = None
    """The official answer; None if it was annulled."""
    picture: BookletPicture | None = None

    @property
    def page(self) -> int | None:
        """The page that it begins on, from 1; None for one that was added by hand."""
        return self.boxes[0].page if self.boxes else None

    @property
    def text(self) -> str:
        """All of its text."""
        return " ".join([self.stem, *self.options.values()])


def draft_questions(numbered: Numbered, layout: BookletLayout, words: Vocabulary) -> list[Draft]:
    """Draft each question, in the booklet's order."""
    drafts = [_draft(question, words) for question in numbered.questions]
    for number, drawing in _place_drawings(numbered.questions, layout):
        drafts[number].drawings += (drawing,)
    for draft in drafts:
        draft.boxes = tuple(
            Box.around(
                [
                    box,
                    *(
                        each
                        for each in draft.drawings
                        if each.page == box.page and each.x0 < box.x1 and each.x1 > box.x0
                    ),
                ]
            )
            for box in draft.boxes
        )
    return drafts


def _draft(raw: RawQuestion, words: Vocabulary) -> Draft:
    paragraphs = {0: raw.stem} | {option.number: option.lines for option in raw.options}
    joined = {
        number: join_lines((line.text for line in lines), words, raw.number) for number, lines in paragraphs.items()
    }
    stem, *options = (text for text, _ in joined.values())
    after, _ = join_lines((line.text for line in raw.after), words, raw.number)
    boxes: defaultdict[tuple[int, int], list[Box]] = defaultdict(list)
    for line in raw.lines:
        boxes[_column(line)].append(line.box)
    first_characters = [option.printed.text.lstrip("(")[:1] for option in raw.options]
    return Draft(
        raw.number,
        stem,
        dict(zip([option.number for option in raw.options], options, strict=True)),
        tuple(map(Box.around, boxes.values())),
        tuple(end for _, ends in joined.values() for end in ends),
        "A" if any(map(str.isupper, first_characters)) else "a" if any(map(str.islower, first_characters)) else "1",
        raw.restarted,
        after,
        guessed=sum(line.guessed for line in raw.lines),
    )


def _place_drawings(questions: Sequence[RawQuestion], layout: BookletLayout) -> Iterator[tuple[int, Box]]:
    """Yield each drawing with the question that it stands in, by place in `questions`. It is the question of the line
    before the drawing.
    """
    lines = [(line, number) for number, question in enumerate(questions) for line in question.lines]
    spans: dict[tuple[int, int], tuple[float, float]] = {}
    for line, _ in lines:
        x0, x1 = spans.get(_column(line), (line.box.x0, line.box.x1))
        spans[_column(line)] = min(x0, line.box.x0), max(x1, line.box.x1)
    for box in layout.drawings:
        x, y = box.middle
        column = next(
            (place for place, (x0, x1) in spans.items() if place[0] == box.page and x0 - _BESIDE <= x <= x1 + _BESIDE),
            None,
        )
        inside = [place for place, (line, _) in enumerate(lines) if _column(line) == column]
        if not inside:
            continue
        before = [place for place in inside if lines[place][0].box.top >= y]
        anchor = before[-1] if before else inside[0] - 1
        if anchor >= 0:
            yield lines[anchor][1], box


def _column(line: Line) -> tuple[int, int]:
    return line.box.page, line.column
