"""Where the questions of one's own stand in a table: its columns, and its place on the Hugging Face hub."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from pydantic import SerializerFunctionWrapHandler, model_serializer, model_validator

from medexam.specs.base import Spec

AnswerAs = Literal["letter", "number", "text", "one_hot"]
"""What a right answer is written as."""
OTHER_NAMES: Mapping[str, str] = MappingProxyType({"question": "stem", "answers": "answer"})
"""The names that questions answered in words use for two of the fields."""


class ColumnsSpec(Spec):
    """Which column of a table holds what; a field of a record within a record is named with a dot.

    None: the column that has the field's own name; `question` is one for `stem`, and `answers` for `answer`.
    """

    stem: str | None = None
    """The question; `question` is the same field."""
    options: str | tuple[str, ...] | None = None
    """A column each, or one column with a list, a mapping from letter to text, or lines behind letters or numbers.
    None, and no column of that name: they stand at the end of the stem."""
    answer: str | tuple[str, ...] | None = None
    """The right answer; of several, any one is right. A column for each option: 1 where it is right, else 0.
    `answers` is the same field."""
    answer_as: AnswerAs | None = None
    """What the answer is written as, `ACD` being three letters if it is letters; None: what fits the rows, an error if
    several do and differ."""
    numbering: Literal["zero", "one"] | None = None
    """What the number of the first option is; None: what the rows say, an error if they do not."""
    several: Literal["any", "all"] | None = None
    """What several right answers of a question mean; None, any: each of them is right. all: every one has to be named,
    which no program here does, so such questions are left out and counted."""
    choices: tuple[str, ...] | None = None
    """The options of every question, such as yes, no and maybe, where no column holds them."""
    start: str | None = None
    """spans: where an answer begins in the context, in characters from 0; None, and no such column: not checked."""
    context: str | None = None
    """A text that stands before the question."""
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

    @model_validator(mode="before")
    @classmethod
    def _other_names(cls, tree: Any) -> Any:
        if not isinstance(tree, Mapping):
            return tree
        for other, name in OTHER_NAMES.items():
            if other in tree and name in tree:
                raise ValueError(f"{other} and {name} are the same: leave one of them out")
        return {OTHER_NAMES.get(key, key): value for key, value in tree.items()}

    @model_serializer(mode="wrap")
    def _only_stated(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        tree: dict[str, Any] = dump(self)
        return {name: value for name, value in tree.items() if value is not None}


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
