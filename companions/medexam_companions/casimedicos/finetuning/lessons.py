"""From questions with spans to what a model learns from: windows with the first and the last token of the answer."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medexam.datasets import SpanItem, read_squad
from medexam.errors import DatasetError
from medexam_companions.casimedicos.readers.windows import Window, cut_windows

TOO_LONG = "answers that fit into no window; raise window to include them, if the model allows it"
MISPLACED = "answers that are not at their offset"

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
    omissions: dict[str, str]
    """Key of each question that nothing is learnt from -> why."""

    def warnings(self, limit: int = 5) -> Iterator[str]:
        """Yield a line for each reason for which questions are left out, with the first keys."""
        for reason in (TOO_LONG, MISPLACED):
            if keys := [key for key, cause in self.omissions.items() if cause == reason]:
                note = f" and {len(keys) - limit:,} more" if len(keys) > limit else ""
                counts = f"{len(keys):,} of {len(self.file.items):,} questions are left out"
                yield f"{self.file.path}: {counts} ({', '.join(keys[:limit])}{note}): {reason}"

    def document(self) -> dict[str, Any]:
        """Build what the record says of the file, JSON-ready."""
        return {
            "path": str(self.file.path.resolve()),
            "sha256": self.file.sha256,
            "questions": len(self.file.items),
            "used": len(self.file.items) - len(self.omissions),
            "unanswerable": sum(not _has_answer(item) for item in self.file.items),
            "windows": len(self.windows),
            "left_out": self.omissions,
        }


def read_span_file(path: Path, variant: str = "", *, unstructured: bool = False) -> SpanFile:
    """Read the questions of a file, of one variant alone where its rows tell theirs, and its hash.

    `unstructured` takes the marks that tell the right option out of the contexts. Raises `DatasetError` where it cannot
    be read, or holds other variants alone.
    """
    items_in_file = read_squad(path)
    items = tuple(item for item in items_in_file if not variant or item.variant in {None, variant})
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
    omissions = {item.key: MISPLACED for item in file.items if _has_answer(item) and not _is_placed(item)}
    items = [item for item in file.items if item.key not in omissions]
    windows_by_item: list[list[Window]] = [[] for _ in items]
    for piece in cut_windows(tokenizer, [(item.question, item.context) for item in items], window, shared):
        windows_by_item[piece.pair].append(piece)
    lessons: list[Lesson] = []
    for item, windows in zip(items, windows_by_item, strict=True):
        places = [_place(item, piece) for piece in windows]
        if _has_answer(item) and not any(places):
            omissions[item.key] = TOO_LONG
            continue
        for piece, place in zip(windows, places, strict=True):
            start, end = place or (piece.whole_text, piece.whole_text)
            lessons.append({**piece.inputs, "start_positions": start, "end_positions": end})
    if not lessons:
        reasons = ", ".join(sorted(set(omissions.values())))
        raise DatasetError(f"{file.path}: no question is left to learn from: {reasons}")
    return Lessons(file, tuple(lessons), omissions)


def _has_answer(item: SpanItem) -> bool:
    return bool(item.answers and item.answers[0].text.strip())


def _is_placed(item: SpanItem) -> bool:
    return item.context.startswith(item.answers[0].text, item.answers[0].start)


def _place(item: SpanItem, window: Window) -> tuple[int, int] | None:
    """Find the first and last token of the answer in a window; None where it does not hold a whole answer."""
    if not _has_answer(item):
        return None
    answer = item.answers[0]
    start = answer.start + len(answer.text) - len(answer.text.lstrip())
    end = start + len(answer.text.strip())
    inside = [place for place, offset in enumerate(window.offsets) if offset and offset[1] > start and offset[0] < end]
    if not inside:
        return None
    first, last = window.offsets[inside[0]], window.offsets[inside[-1]]
    holds_answer = first is not None and last is not None and first[0] <= start and last[1] >= end
    return (inside[0], inside[-1]) if holds_answer else None
