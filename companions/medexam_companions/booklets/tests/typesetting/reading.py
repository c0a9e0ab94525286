"""What the package reads of a booklet, compared with the text that was set."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from medexam_companions.booklets import (
    Draft,
    Vocabulary,
    draft_questions,
    load_dictionary,
    open_booklet,
    read_booklet_layout,
    read_numbers,
)
from typesetting.texts import Asked


@dataclass(frozen=True)
class Compared:
    """Questions of one booklet."""

    set: int
    found: int
    """With every option."""
    exact: int
    """Found, with each text as it was set."""
    wrong: tuple[tuple[str, str], ...]
    """Texts as set and as read, where they differ."""


def read_drafts(path: Path) -> dict[int, Draft]:
    """The questions of a booklet as they are read, by number."""
    with open_booklet(path) as booklet:
        layout = read_booklet_layout(booklet.read_pages())
    words = Vocabulary((line.text for line in layout.lines), load_dictionary("es"))
    return {draft.number: draft for draft in draft_questions(read_numbers(layout), layout, words)}


def compare(path: Path, asked: Sequence[Asked]) -> Compared:
    """Read the booklet at `path` and compare it with what was set, question by question."""
    drafts = read_drafts(path)
    found = exact = 0
    wrong: list[tuple[str, str]] = []
    for question in asked:
        draft = drafts.get(question.number)
        texts = [draft.stem, *draft.options.values()] if draft else []
        if len(texts) == len(question.texts):
            found += 1
            apart = [(one, two) for one, two in zip(question.texts, texts, strict=True) if one != two]
        else:
            apart = [(f"{question.number}: {len(question.options)} options", f"{len(texts) - 1}")]
        exact += not apart
        wrong += apart
    return Compared(len(asked), found, exact, tuple(wrong))
