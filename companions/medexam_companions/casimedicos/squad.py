"""Reads extractive questions in the form of SQuAD: contexts, questions, and answers with their place in the context.

It knows SQuAD's nested JSON and the hub's rows as JSON, JSON Lines or Parquet, with either kind of `answers`. An answer
that does not stand where its offset says is kept; what to do about it is for the caller.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from medexam.datasets import Cells, parse_whole_number, read_file
from medexam.errors import DatasetError


@dataclass(frozen=True, slots=True)
class SpanAnswer:
    """One right answer, which is a part of the context."""

    text: str
    start: int
    """The offset that the file states, in characters from 0; see `SpanItem.is_misplaced`."""


@dataclass(frozen=True, slots=True)
class SpanItem:
    """One question about a context."""

    key: str
    """The file's `id`, unique in it."""
    context: str
    question: str
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


def read_squad(path: Path) -> tuple[SpanItem, ...]:
    """Read the questions of a `.json`, `.jsonl` or `.parquet` file, in its order.

    A row needs `id`, `context`, `question` and `answers`, which is a mapping of lists `text` and `answer_start`, or a
    list of mappings with one of each. With `variant`, one `id` may stand once in each variant. Raises `DatasetError`
    naming the row that lacks something, the id that stands twice, or the file that cannot be read.
    """
    if path.suffix not in {".json", ".jsonl", ".parquet"}:
        raise DatasetError(f"{path}: is not a .json, .jsonl or .parquet file; spans are read from these")
    items: dict[str, SpanItem] = {}
    for row in read_file(path).rows:
        try:
            item = _parse_row(row.record)
        except ValueError as error:
            raise DatasetError(f"{path}, {row.place}: {error}") from None
        if item.key in items:
            raise DatasetError(f"{path}, {row.place}: id {item.key!r} occurs twice: make the ids unique")
        items[item.key] = item
    return tuple(items.values())


def _parse_row(row: Cells) -> SpanItem:
    if isinstance(row, str):
        raise ValueError(row)
    if missing := [name for name in ("id", "context", "question", "answers") if name not in row]:
        raise ValueError(f"has no {', '.join(missing)}: its fields are {', '.join(row):.200}")
    key, context, question = row.get("id"), row.get("context"), row.get("question")
    if isinstance(key, bool) or not isinstance(key, (str, int)) or key == "":
        raise ValueError(f"id is {key!r}, not a text or a number")
    for name, value in (("context", context), ("question", question)):
        if not isinstance(value, str):
            raise ValueError(f"{name} of {key!r} is {value!r:.60}, not text")
    answers = tuple(_parse_answers(row.get("answers")))
    name, variant = _name_variant(str(key), row.get("variant"))
    return SpanItem(name, str(context), str(question), answers, variant)


def _name_variant(key: str, stated: object) -> tuple[str, str | None]:
    """Put the variant at the key's end, and return both; the variant is None if the row tells none."""
    if stated is None:
        last = key.rpartition("/")[2]
        return key, last if "#" in last and last != key else None
    if not isinstance(stated, str) or not stated.strip():
        raise ValueError(f"variant of {key!r} is {stated!r:.60}, not a text")
    variant = stated.strip()
    return (key if key.endswith(f"/{variant}") else f"{key}/{variant}"), variant


def _parse_answers(answers: object) -> Iterator[SpanAnswer]:
    if isinstance(answers, Mapping):
        texts, starts = (
            value if isinstance(value, list) else [value]
            for value in (answers.get("text"), answers.get("answer_start"))
        )
        if len(texts) != len(starts):
            raise ValueError(f"answers has {len(texts)} values of text and {len(starts)} of answer_start")
        pairs = list(zip(texts, starts, strict=True))
    elif isinstance(answers, list) and all(isinstance(answer, Mapping) for answer in answers):
        pairs = [(answer.get("text"), answer.get("answer_start")) for answer in answers]
    else:
        raise ValueError(
            f"answers is {answers!r:.60}, not a mapping of text and answer_start, or a list of such mappings"
        )
    for text, stated in pairs:
        start = parse_whole_number(stated)
        if not isinstance(text, str) or start is None:
            raise ValueError(
                f"an answer has text {text!r:.60} and answer_start {stated!r:.60}, not a text and an offset"
            )
        yield SpanAnswer(text, start)
