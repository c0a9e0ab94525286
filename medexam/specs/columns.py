"""Where the questions of one's own stand in a table: its columns, and its place on the Hugging Face hub."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from pydantic import SerializerFunctionWrapHandler, model_serializer, model_validator

from medexam.specs.base import Spec

AnswerAs = Literal["letter", "number", "text", "one_hot"]
"""What a right answer is written as."""
NOT_READ = ""
"""Where a column would be named: the field is read from none, also if a column has its name; `null` in a file."""
_OPEN = {"stem", "answer", "answer_as", "numbering", "several", "marks", "choices", "leave_out", "as_above"}
_OPEN |= {"ignored", "accepted"}
"""Fields of which `null` decides nothing: `medexam init` writes it where a user has to choose."""


class ColumnsSpec(Spec):
    """Which column of a table holds what; a field of a record within a record is named with a dot.

    None: the column that has the field's own name; `question` is one for `stem`, and `answers` for `answer`. A file
    that says `null` has the field read from no column. Columns of a table without header are 1, 2, 3 and so on.
    """

    other_names: ClassVar[Mapping[str, str]] = MappingProxyType({"question": "stem", "answers": "answer"})
    stem: str | None = None
    """The question; `question` is the same field."""
    options: str | tuple[str, ...] | None = None
    """A column each, or one column with a list, a mapping from letter to text, or lines that begin with letters or
    numbers. None, and no column of that name: they stand at the end of the stem."""
    between: str | None = None
    """What stands between the options of one cell, such as "|"; None: letters or numbers stand before them."""
    marks: Literal["labels", "text"] | None = None
    """What letters or numbers at the beginning of options are: labels, which are cut off, or part of the text. None:
    labels if they run through all rows."""
    shuffled: bool = False
    """Options in an order drawn from their texts, so that the right one does not always come first."""
    answer: str | tuple[str, ...] | None = None
    """The right answer; of several, any one is right. A column for each option: 1 where it is right, else 0.
    `answers` is the same field."""
    answer_as: AnswerAs | None = None
    """How the right answer is written; with `letter`, `ACD` means three letters. None: the one way that fits all
    rows; if several fit and differ, that is an error."""
    numbering: Literal["zero", "one"] | None = None
    """The number of the first option; None: read from the rows, and an error if they do not show it."""
    several: Literal["any", "all"] | None = None
    """What several right answers of a question mean; None, any: each of them is right. all: every one has to be named,
    which no program here does, so such questions are left out and counted."""
    choices: tuple[str, ...] | None = None
    """The options of every question, such as yes, no and maybe, where no column holds them."""
    start: str | None = None
    """spans: where an answer begins in the context, in characters from 0; None, and no such column: not checked."""
    context: str | tuple[str, ...] | None = None
    """A text that stands before the question, or several."""
    explanation: str | None = None
    """Why the answer is right; shown only where `explained` is set."""
    image: str | None = None
    """The picture that the question refers to: a file beside the data, or the hub's bytes; see `program.images`."""
    subject: str | None = None
    """What scores are grouped by."""
    year: str | None = None
    exam: str | None = None
    """The exam that a question comes from; intervals resample whole exams. None: they resample questions."""
    id: str | None = None
    """Stable and unique; None, and no such column: a hash of the question's text."""
    split: str | None = None
    """train, dev or test; validation is dev."""
    leave_out: Mapping[str, tuple[str, ...]] | None = None
    """Column -> the values of rows that are not asked, such as `{status: [annulled]}`; they are counted."""
    as_above: tuple[str, ...] | None = None
    """Columns whose empty cells mean the cell above."""
    ignored: tuple[str, ...] | None = None
    """Columns that no question needs. Where it is set, a column that is neither read nor listed is an error."""
    accepted: tuple[Literal["options", "labels", "pictures", "texts", "signs"], ...] | None = None
    """What `medexam init` found odd in the questions, and is as it should be."""

    @model_validator(mode="before")
    @classmethod
    def _read_stated(cls, tree: Any) -> Any:
        return {key: _stated(key, value) for key, value in tree.items()} if isinstance(tree, Mapping) else tree

    @model_serializer(mode="wrap")
    def _only_stated(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        tree: dict[str, Any] = dump(self)
        stated = {name: value for name, value in tree.items() if value is not None and value is not False}
        return {name: None if value == NOT_READ else value for name, value in stated.items()}


def _stated(field: str, value: Any) -> Any:
    """Return what a file says of a field: numbers of columns as names, and `null` as no column."""
    if value is None and field in _OPEN:
        raise ValueError(f"{field} is open: choose what the line beside it offers, or leave {field} out")
    if value is None and field in ColumnsSpec.model_fields:
        return NOT_READ
    if isinstance(value, (list, tuple)):
        return [_stated("", entry) for entry in value]
    if isinstance(value, Mapping):
        return {str(name): _stated("", entry) for name, entry in value.items()}
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class KeySpec(Spec):
    """The right answers of a table, where they stand apart from its questions."""

    path: Path
    """A table, or a text with a letter or a number and a letter for each question."""
    on: str | tuple[str, ...] | None = None
    """The column that both tables have; two, if the key calls it otherwise. None: the rows are in the same order."""
    answer: str | None = None
    """The key's column with the answers; None: `answer`, or the only one beside `on`."""


class HubSpec(Spec):
    """One split of a data set on the Hugging Face hub, read by `datasets`; its code is never run."""

    id: str
    """Such as `openlifescienceai/medqa`, or a folder with a copy of it."""
    config: str | None = None
    """None: the only one, or the default."""
    split: str = "test"
    """As the hub calls it."""
    revision: str | None = None
    """A commit, tag or branch; None: the newest."""


class PublishedSpec(Spec):
    """What the authors of a data set say of it."""

    title: str = ""
    questions: int | None = None
    """How many questions they count, bad rows included; None: not checked."""
    licence: str = ""
    citation: str = ""
    """How they ask to be cited."""
    layouts: tuple[ColumnsSpec, ...] = ()
    """The columns of the authors' own files. They are tried if `path` names a file without the columns of the hub's
    copy."""
