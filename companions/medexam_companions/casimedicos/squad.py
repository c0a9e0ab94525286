"""Reads extractive questions in the form of SQuAD: contexts, questions, and answers with their place in the context.

It knows SQuAD's nested JSON and the hub's rows as JSON, JSON Lines or Parquet, with either kind of `answers`. An answer
that does not stand where its offset says is kept; what to do about it is for the caller.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from medexam.datasets import read_file
from medexam.errors import DatasetError
from medexam.specs import describe_faults


@dataclass(frozen=True, slots=True)
class SpanAnswer:
    """One right answer, which is a part of the context."""

    text: str
    start: int
    """The offset that the file states, in characters from 0; see `SpanItem.is_misplaced`."""


@dataclass(frozen=True, slots=True, config=ConfigDict(coerce_numbers_to_str=True))
class SpanItem:
    """One question about a context."""

    key: Annotated[str, Field(min_length=1)]
    """The file's `id`, unique in it."""
    context: Annotated[str, Field(strict=True)]
    question: Annotated[str, Field(strict=True)]
    answers: tuple[SpanAnswer, ...]
    """Empty where the file says that the context holds no answer."""
    variant: str | None = None
    """How the question is posed, if the file says it by `variant` or at the end of its ids, such as `17/CQ#E`."""

    @property
    def is_misplaced(self) -> bool:
        """Whether an answer does not stand at its offset."""
        return any(each.start < 0 or not self.context.startswith(each.text, each.start) for each in self.answers)

    @property
    def references(self) -> tuple[str, ...]:
        """The texts of the answers."""
        return tuple(answer.text for answer in self.answers)


_ITEM = TypeAdapter(SpanItem)


def read_squad(path: Path) -> tuple[SpanItem, ...]:
    """Read the questions of a file, in its order.

    A row needs `id`, `context`, `question` and `answers`, which is a mapping of lists `text` and `answer_start`, or a
    list of mappings with one of each. With `variant`, one `id` may stand once in each variant. Raises `DatasetError`
    naming the row that lacks something, the id that stands twice, or the file that cannot be read.
    """
    items: dict[str, SpanItem] = {}
    for row in read_file(path, raw_texts=True).rows:
        try:
            if isinstance(row.record, str):
                raise ValueError(row.record)
            item = _ITEM.validate_python(_fields(row.record))
        except ValueError as error:
            fault = describe_faults(error) if isinstance(error, ValidationError) else error
            raise DatasetError(f"{path}, {row.place}: {fault}") from None
        if item.key in items:
            raise DatasetError(f"{path}, {row.place}: id {item.key!r} occurs twice: make the ids unique")
        items[item.key] = item
    return tuple(items.values())


def _fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a `SpanItem`: the variant stands at the key's end, and each answer has its offset."""
    key, variant, answers = row.get("id"), row.get("variant"), row.get("answers")
    last = str(key).rpartition("/")[2]
    if variant is not None and key is not None:
        key = key if str(key).endswith(f"/{variant}") else f"{key}/{variant}"
    elif "#" in last and last != key:
        variant = last
    if isinstance(answers, Mapping):
        values = map(answers.get, ("text", "answer_start"))
        parts, starts = (value if isinstance(value, list) else [value] for value in values)
        if len(parts) != len(starts):
            raise ValueError(f"answers has {len(parts)} values of text and {len(starts)} of answer_start")
        answers = [{"text": text, "answer_start": start} for text, start in zip(parts, starts, strict=True)]
    if isinstance(answers, list) and all(isinstance(each, Mapping) for each in answers):
        answers = [{"text": each.get("text"), "start": each.get("answer_start")} for each in answers]
    texts = {name: row.get(name) for name in ("context", "question")}
    return texts | {"key": key, "answers": answers, "variant": variant}
