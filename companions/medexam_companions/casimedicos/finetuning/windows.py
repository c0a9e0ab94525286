"""From questions with spans to what a model learns from: windows with the first and the last token of the answer."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from medexam.datasets import SpanItem, read_squad
from medexam.errors import DatasetError
from medexam_companions.casimedicos.readers.windows import Window, cut_windows

Reason = Literal["too_long", "misplaced"]
REASONS: dict[Reason, str] = {
    "too_long": "answers that fit into no window",
    "misplaced": "answers that are not at their offset",
}

Lesson = dict[str, Any]
"""The model's inputs of one window, with `start_positions` and `end_positions`; both at the token that means the whole
text if the window does not hold the answer, or the question has none."""


@dataclass(frozen=True)
class SpanFile:
    """A file of questions with spans."""

    path: Path
    sha256: str
    items: tuple[SpanItem, ...]


@dataclass(frozen=True)
class Lessons:
    """What a model learns from one file."""

    file: SpanFile
    windows: tuple[Lesson, ...]
    omissions: dict[str, Reason]
    """Key of each question that nothing is learnt from -> why."""

    @property
    def used(self) -> int:
        """Questions that something is learnt from."""
        return len(self.file.items) - len(self.omissions)

    def warnings(self, limit: int = 5) -> list[str]:
        """Write a line for each reason for which questions are left out, with the first keys."""
        lines = []
        for reason, words in REASONS.items():
            keys = [key for key, cause in self.omissions.items() if cause == reason]
            if keys:
                note = f" and {len(keys) - limit:,} more" if len(keys) > limit else ""
                examples = f"{', '.join(keys[:limit])}{note}"
                advice = "; raise --window to include them, if the model allows it" if reason == "too_long" else ""
                total = len(self.file.items)
                lines.append(
                    f"{self.file.path}: {len(keys):,} of {total:,} questions are left out ({words}): {examples}{advice}"
                )
        return lines

    def document(self) -> dict[str, Any]:
        """Build what the record says of the file, JSON-ready."""
        return {
            "path": str(self.file.path.resolve()),
            "sha256": self.file.sha256,
            "questions": len(self.file.items),
            "used": self.used,
            "unanswerable": sum(not _has_answer(item) for item in self.file.items),
            "windows": len(self.windows),
            "left_out": self.omissions,
        }


def read_span_file(path: Path, variant: str | None = None, *, unstructured: bool = False) -> SpanFile:
    """Read the questions of a file, of one variant alone where its rows tell theirs, and its hash.

    `unstructured` takes the marks that tell the right option out of the contexts.

    Raises `DatasetError` where it cannot be read, or holds other variants alone.
    """
    items_in_file = read_squad(path)
    items = tuple(item for item in items_in_file if variant is None or item.variant in {None, variant})
    if not items:
        others = ", ".join(sorted({str(item.variant) for item in items_in_file}))
        raise DatasetError(f"{path}: holds no question of variant {variant}: its variants are {others}")
    if unstructured:
        items = tuple(item.without_marks() for item in items)
    with path.open("rb") as stream:
        return SpanFile(path, hashlib.file_digest(stream, "sha256").hexdigest(), items)


def make_lessons(file: SpanFile, tokenizer: Any, window: int, shared: int) -> Lessons:
    """Cut a file's questions into windows, each with its answer, the first if it has several.

    A window that does not hold the whole answer teaches the first token, as SQuAD's baselines do. So do all windows of
    a question without an answer. A question whose answer no window holds is left out, with all its windows. Raises
    `DatasetError` where no question is left.
    """
    omissions: dict[str, Reason] = {}
    sound_items: list[SpanItem] = []
    for item in file.items:
        if not _has_answer(item):
            sound_items.append(item)
        elif not item.context.startswith(item.answers[0].text, item.answers[0].start):
            omissions[item.key] = "misplaced"
        else:
            sound_items.append(item)
    windows_by_item: list[list[Window]] = [[] for _ in sound_items]
    for piece in cut_windows(tokenizer, [(item.question, item.context) for item in sound_items], window, shared):
        windows_by_item[piece.pair].append(piece)
    lessons: list[Lesson] = []
    for item, windows in zip(sound_items, windows_by_item, strict=True):
        places = [_place(item, piece) for piece in windows]
        if _has_answer(item) and not any(places):
            omissions[item.key] = "too_long"
            continue
        lessons += [_lesson(piece, place) for piece, place in zip(windows, places, strict=True)]
    if not lessons:
        reasons = ", ".join(words for reason, words in REASONS.items() if reason in omissions.values())
        raise DatasetError(
            f"{file.path}: no question is left to learn from ({reasons}): correct the file or raise --window"
        )
    return Lessons(file, tuple(lessons), omissions)


def join_lessons(lessons: Sequence[Lessons]) -> Lessons:
    """Join what is learnt from several files, at least one, in one stage."""
    if len(lessons) == 1:
        return lessons[0]
    name = Path("+".join(str(one.file.path) for one in lessons))
    file = SpanFile(name, "", tuple(item for one in lessons for item in one.file.items))
    omissions = {f"{one.file.path}: {key}": reason for one in lessons for key, reason in one.omissions.items()}
    return Lessons(file, tuple(window for one in lessons for window in one.windows), omissions)


def seen_before(validation: SpanFile, training_files: Sequence[SpanFile]) -> list[str]:
    """Find the keys of the validation questions that stand in the training files, with the same context."""
    training_pairs = {(item.question, item.context) for file in training_files for item in file.items}
    return [item.key for item in validation.items if (item.question, item.context) in training_pairs]


def _place(item: SpanItem, window: Window) -> tuple[int, int] | None:
    """Find the first and last token of the answer in a window; None where it does not hold a whole answer."""
    if not _has_answer(item):
        return None
    answer = item.answers[0]
    text = answer.text.strip()
    start = answer.start + answer.text.index(text)
    end = start + len(text)
    inside = [place for place, offset in enumerate(window.offsets) if offset and offset[1] > start and offset[0] < end]
    if not inside:
        return None
    first, last = window.offsets[inside[0]], window.offsets[inside[-1]]
    holds_answer = first is not None and last is not None and first[0] <= start and last[1] >= end
    return (inside[0], inside[-1]) if holds_answer else None


def _has_answer(item: SpanItem) -> bool:
    return bool(item.answers and item.answers[0].text.strip())


def _lesson(window: Window, place: tuple[int, int] | None) -> Lesson:
    """Build a window with its labels; without the answer, both stand at the token that means the whole text."""
    start, end = place or (window.whole_text, window.whole_text)
    return {**window.inputs, "start_positions": start, "end_positions": end}
