"""From questions with spans to what a model learns from: windows with the first and the last token of the answer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medexam.errors import DatasetError
from medexam_companions.casimedicos.finetuning.telling_marks import without_marks
from medexam_companions.casimedicos.readers.windows import Window, cut_windows
from medexam_companions.casimedicos.squad import SpanAnswer, SpanItem, read_squad

TOO_LONG = "answers that fit into no window; raise window to include them, if the model allows it"
MISPLACED = "answers that are not at their offset"

Lesson = dict[str, Any]
"""The model's inputs of one window, with `start_positions` and `end_positions`; both at the token that means the whole
text if the window does not hold the answer, or the question has none."""


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


def make_lessons(
    questions: Sequence[SpanItem], tokenizer: Any, window: int, shared: int
) -> tuple[list[Lesson], dict[str, str]]:
    """Cut questions into windows, each with its answer, the first if it has several; say which are left out, and why.

    A window that does not hold the whole answer teaches the first token, as SQuAD's baselines do. So do all windows of
    a question without an answer. A question whose answer no window holds is left out, with all its windows. Raises
    `DatasetError` where no question is left.
    """
    answers = {item.key: item.answers[0] for item in questions if item.answers and item.answers[0].text.strip()}
    omissions = {
        item.key: MISPLACED
        for item in questions
        if (answer := answers.get(item.key)) and not item.context.startswith(answer.text, answer.start)
    }
    items = [item for item in questions if item.key not in omissions]
    windows_by_item: list[list[Window]] = [[] for _ in items]
    for piece in cut_windows(tokenizer, [(item.question, item.context) for item in items], window, shared):
        windows_by_item[piece.pair].append(piece)
    lessons: list[Lesson] = []
    for item, windows in zip(items, windows_by_item, strict=True):
        answer = answers.get(item.key)
        places = [_place(answer, piece) if answer else None for piece in windows]
        if answer and not any(places):
            omissions[item.key] = TOO_LONG
            continue
        for piece, place in zip(windows, places, strict=True):
            start, end = place or (piece.whole_text, piece.whole_text)
            lessons.append({**piece.inputs, "start_positions": start, "end_positions": end})
    if not lessons:
        reasons = ", ".join(sorted(set(omissions.values())))
        raise DatasetError(f"no question is left to learn from: {reasons}")
    return lessons, omissions


def _place(answer: SpanAnswer, window: Window) -> tuple[int, int] | None:
    """Find the first and last token of the answer in a window; None where it does not hold the whole answer."""
    start = answer.start + len(answer.text) - len(answer.text.lstrip())
    end = start + len(answer.text.strip())
    inside = [place for place, offset in enumerate(window.offsets) if offset and offset[1] > start and offset[0] < end]
    if not inside:
        return None
    first, last = window.offsets[inside[0]], window.offsets[inside[-1]]
    holds_answer = first is not None and last is not None and first[0] <= start and last[1] >= end
    return (inside[0], inside[-1]) if holds_answer else None
