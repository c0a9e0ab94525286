"""From questions with spans to what a model learns from: windows with the first and the last token of the answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medexam.datasets import SpanItem, read_squad
from medexam.errors import DatasetError
from medexam.text import is_negated
from medexam_companions.casimedicos.finetuning.telling_marks import without_marks
from medexam_companions.casimedicos.readers.windows import Window, cut_windows

TOO_LONG = "answers that fit into no window; raise window to include them, if the model allows it"
MISPLACED = "answers that are not at their offset"

Lesson = dict[str, Any]
"""The model's inputs of one window, with `start_positions` and `end_positions`; both at the token that means the whole
text if the window does not hold the answer, or the question has none."""


@dataclass(frozen=True)
class Lessons:
    """What a model learns from the questions of one file."""

    windows: tuple[Lesson, ...]
    omissions: dict[str, str]
    """Key of each question that nothing is learnt from -> why."""


def read_span_file(path: Path, variant: str = "", *, unstructured: bool = False) -> tuple[SpanItem, ...]:
    """Read the questions of a file, of one variant alone where its rows tell theirs.

    `unstructured` takes the marks that tell the right option out of the contexts. Raises `DatasetError` where it cannot
    be read, or holds other variants alone.
    """
    items_in_file = read_squad(path)
    items = tuple(item for item in items_in_file if not variant or item.variant in {None, variant})
    if not items:
        others = ", ".join(sorted({str(item.variant) for item in items_in_file}))
        raise DatasetError(f"{path}: holds no question of variant {variant}: its variants are {others}")
    return tuple(without_marks(item) for item in items) if unstructured else items


def is_negated_item(item: SpanItem) -> bool:
    """Return whether a question asks for what is not so; options behind it, joined by " @@ ", do not count."""
    question, options, _ = item.question.partition(" @@ ")
    end = max(question.rfind("?"), question.rfind(":")) + 1 if options else 0
    return is_negated(question[: end or None])


def make_lessons(questions: Sequence[SpanItem], tokenizer: Any, window: int, shared: int) -> Lessons:
    """Cut questions into windows, each with its answer, the first if it has several.

    A window that does not hold the whole answer teaches the first token, as SQuAD's baselines do. So do all windows of
    a question without an answer. A question whose answer no window holds is left out, with all its windows. Raises
    `DatasetError` where no question is left.
    """
    omissions = {item.key: MISPLACED for item in questions if _has_answer(item) and not _is_placed(item)}
    items = [item for item in questions if item.key not in omissions]
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
        raise DatasetError(f"no question is left to learn from: {reasons}")
    return Lessons(tuple(lessons), omissions)


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
