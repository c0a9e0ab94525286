"""Reads ClinIQLink's seven files, one a format, as the shared task of 2025 publishes its sample.

Their quirks end here: items without an id, a name of the file that is not the name of its type, wrong answers under
`answer`. The published sample is for checking formats and scorers only, never to learn from.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from medexam.datasets import TaskReading, TaskRow, read_file
from medexam.errors import DatasetError
from medexam.questions import Task, TaskGold
from medexam.specs import DatasetSpec

FILES: Mapping[str, str] = {
    "true_false": "TF.json",
    "multiple_choice": "MC.json",
    **{kind: f"{kind}.json" for kind in ("list", "short", "short_inverse", "multi_hop", "multi_hop_inverse")},
}
"""Format -> the name of its file."""
_TYPES = {"short": "short_answer"}
"""The `type` of a format's items, where it is not the format's name."""


def read_cliniqlink(path: Path, spec: DatasetSpec) -> TaskReading:  # noqa: ARG001 - all readers take both
    """Read the items of the folder that `path`, one of the seven files, stands in; formats without a file have none.

    An item's key is its `id` where it has one, else its place in its file, from 1. Raises `DatasetError` naming file
    and item where one is of another format or lacks a field, and the folder where it holds none of the files.
    """
    folder = path.parent
    rows: list[TaskRow] = []
    references: list[str] = []
    notes: list[str] = []
    absent = []
    for kind, name in FILES.items():
        file = folder / name
        if not file.is_file():
            absent.append(name)
            continue
        for number, item in enumerate(read_items(file), start=1):
            row = _row(item, kind, number, f"{file}, item {number}")
            rows.append(row)
            if kind != "multiple_choice" and (reference := " ".join(row.gold.answers).strip()):
                references.append(reference)
            if len(row.task.options) > 26:
                notes.append(
                    f"{row.task.key} has {len(row.task.options)} options: options beyond Z are labelled by the "
                    "characters after Z in ASCII, as in the released code"
                )
    if not rows:
        raise DatasetError(f"{folder}: holds none of {', '.join(absent)}: set dataset.path to the folder with them")
    if absent:
        notes.append(f"{folder} lacks {', '.join(absent)}: those formats have no items")
    return TaskReading(
        source=str(folder), version="2025", rows=tuple(rows), references=tuple(references), notes=tuple(notes)
    )


def read_items(path: Path) -> list[Mapping[str, Any]]:
    """Read the items of one file; raises `DatasetError` if it holds none, or something else than objects."""
    items = []
    for row in read_file(path, raw_texts=True).rows:
        if isinstance(row.record, str):
            raise DatasetError(f"{path}, item {row.number}: {row.record}")
        items.append(row.record)
    return items


def _row(item: Mapping[str, Any], kind: str, number: int, place: str) -> TaskRow:
    stated, expected = item.get("type", _TYPES.get(kind, kind)), _TYPES.get(kind, kind)
    if stated != expected:
        raise DatasetError(f"{place}: is of type {stated!r}, not {expected!r}: each file holds one format")
    source = item.get("source")
    paragraph = source.get("paragraph_id") if isinstance(source, Mapping) else None
    gold_field = "correct_answer" if kind == "multiple_choice" else "answer"
    wrong = kind in {"short_inverse", "multi_hop_inverse"}
    given_answer = _text(item, "false_answer" if kind == "short_inverse" else "answer", place) if wrong else ""
    task = Task(
        key=f"cliniqlink/{kind}/{item.get('id', number)}",
        group=kind,
        language="en",
        question=_text(item, "question", place),
        options=_texts(item, "options", place) if kind in {"multiple_choice", "list"} else (),
        given_answer=given_answer,
        given_reasoning=_texts(item, "reasoning", place) if kind == "multi_hop_inverse" else (),
    )
    gold = TaskGold(
        answers=_texts(item, gold_field, place) if kind == "list" else (_text(item, gold_field, place),),
        incorrect_explanation=_text(item, "incorrect_explanation", place) if kind == "short_inverse" else "",
        incorrect_step=_texts(item, "incorrect_reasoning_step", place) if kind == "multi_hop_inverse" else (),
        paragraph=str(paragraph) if paragraph is not None else None,
    )
    return TaskRow(task, gold, split=None)


def _text(item: Mapping[str, object], field: str, place: str) -> str:
    value = item.get(field)
    if not isinstance(value, str):
        raise DatasetError(f"{place}: {field} is {value!r:.60}, not text: is this another format's file?")
    return value


def _texts(item: Mapping[str, object], field: str, place: str) -> tuple[str, ...]:
    """Return a list of texts, or the lines of one text."""
    value = item.get(field)
    if isinstance(value, str):
        return tuple(line for line in value.splitlines() if line.strip())
    if not isinstance(value, Sequence) or not all(isinstance(entry, str) for entry in value):
        raise DatasetError(f"{place}: {field} is {value!r:.60}, not a list of texts: is this another format's file?")
    return tuple(value)
