"""Which questions: the `dataset` part of a spec, and where those of one's own stand in a table."""

from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from medexam.errors import SpecError
from medexam.plugins import added_names, is_own_name, ships
from medexam.questions import Discipline, Language
from medexam.specs.base import ALTERATIONS, BENCHMARKS, PlacedError, Spec, find_source, part_name, part_of, short_name
from medexam.specs.catalogue import CATALOGUE, SAMPLE, Form
from medexam.text import nearest

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

    model_config = ConfigDict(coerce_numbers_to_str=True)
    other_names: ClassVar[Mapping[str, str]] = {"question": "stem", "answers": "answer"}
    stem: str | None = None
    """The question; `question` is the same field."""
    options: str | tuple[str, ...] | None = None
    """A column each, or one column with a list, a mapping from letter to text, or lines that begin with letters or
    numbers. None, and no column of that name: they stand at the end of the stem."""
    between: str | None = None
    """What stands between the options of one cell, such as "|"; None: letters or numbers stand before them."""
    marks: Literal["labels", "text"] | None = None
    """What letters or numbers before options are; None: labels, which are cut off, if they run through all rows."""
    shuffled: bool = False
    """Options in an order drawn from their texts, so that the right one does not always come first."""
    answer: str | tuple[str, ...] | None = None
    """The right answer, or several, of which any is right; or a column for each option: 1 where it is right, else 0."""
    answer_as: Literal["letter", "number", "text", "one_hot"] | None = None
    """How the right answer is written, `ACD` being three letters; None: the one way that fits all rows."""
    numbering: Literal["zero", "one"] | None = None
    """The number of the first option; None: read from the rows, and an error if they do not show it."""
    several: Literal["any", "all"] | None = None
    """Of several right answers any is right (None too), or all must be named; such questions are left out."""
    choices: tuple[str, ...] | None = None
    """The options of every question, such as yes, no and maybe, where no column holds them."""
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
    accepted: tuple[Literal["options", "labels", "pictures", "texts", "signs", "sheet"], ...] | None = None
    """What `medexam init` found odd in the questions, and is as it should be."""

    @model_validator(mode="before")
    @classmethod
    def _read_null(cls, tree: Any) -> Any:
        """Read `null` as no column."""
        unread = [name for name, value in tree.items() if value is None] if isinstance(tree, Mapping) else []
        if is_open := next((name for name in unread if cls.other_names.get(name, name) in _OPEN), None):
            raise PlacedError(is_open, f"{is_open} is open: choose what the line beside it offers, or leave it out")
        return {**tree, **dict.fromkeys(unread, NOT_READ)} if unread else tree

    @model_serializer(mode="wrap")
    def _only_stated(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        tree: dict[str, Any] = dump(self)
        stated = {name: value for name, value in tree.items() if value is not None and value is not False}
        return {name: None if value == NOT_READ else value for name, value in stated.items()}


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
    """The columns of the authors' own files, tried where `path` lacks the columns of the hub's copy."""


OwnKind = Literal["choice", "short_answer", "spans"]
"""The form of questions of one's own: numbered options, answers in words, or parts of a context."""
STORED = "stored"
"""The context in which a stored run is read: the package that brought its data set may be gone."""
EXAMPLES = "examples"
"""The kind of the `dspy.Example`s of a `medexam.Evaluate`, which its run folder holds."""
Format = Literal["true_false", "multiple_choice", "list", "short", "short_inverse", "multi_hop", "multi_hop_inverse"]
Split = Literal["all", "train", "dev", "test"]
_OWN = ("hub", "columns", "answers", "skip_bad", "published")
"""Fields of questions of one's own alone."""
_OF_KIND = {
    "choice": {"years", "disciplines", "option_counts", "images", "explained", "alter", "scoring", *_OWN},
    **{kind: {"disciplines", *_OWN} for kind in ("short_answer", "spans")},
    EXAMPLES: {*_OWN},
}
"""Kind of one's own -> the fields that not every data set has and it does, as the catalogue says of those that ship."""
_SPECIAL = (*sorted(_OF_KIND["choice"]), "as_published", "variants", "formats")


class Alteration(Spec):
    """What alters every question, such as to test whether a model has memorised it."""

    short_form = "how"
    how: Annotated[str, part_of(ALTERATIONS)]
    """The name that a package adds, or a function of one's own: it takes the rows with a right answer and their
    language, and returns a `medexam.datasets.Altered`."""
    seed: int | None = None
    """Chooses what it draws; None is its own default."""
    table: Path | None = None
    """A file that it takes texts from."""

    @property
    def label(self) -> str:
        """What it is called in tables and folders."""
        return short_name(self.how) + ("" if self.seed is None else f" seed {self.seed}")


def _read_fraction(value: Any) -> Any:
    with suppress(ValueError, ZeroDivisionError):
        return float(Fraction(value)) if isinstance(value, str) else value
    return value


class ScoringSpec(Spec):
    """How answers with numbered options are scored."""

    penalty: Annotated[float, BeforeValidator(_read_fraction, json_schema_input_type=float | str), Field(gt=0, le=1)]
    """What a wrong answer takes off, where a right one gives 1: a number, or a fraction such as `1/3`."""


class PartSpec(Spec):
    """A part of a data set."""

    split: Split = "all"
    """The authors' own, which the files or the data set's entry in the catalogue say."""
    years: tuple[int, ...] | None = None
    """None takes every year."""
    disciplines: tuple[str, ...] | None = None
    """None takes every discipline; with `kind`, every subject."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """At most this many questions, spread evenly over exams, formats or variants; None takes all that are selected."""
    seed: int = 0
    """Chooses the questions that a `limit` keeps."""


class DatasetSpec(PartSpec):
    """A data set in one language and the part of it that is asked."""

    short_form = "name"
    kind: OwnKind | Literal["examples"] | None = None
    """The form of questions of one's own, in `path` or `hub`; None: `name` names them. `examples`: `Evaluate`'s."""
    name: str = SAMPLE.name
    """A data set that ships, or is read from disk or the hub; or a benchmark of one's own, `./file.py:Name`. With
    `kind`: what tables call the questions, by default the file's name or the last part of the hub's id."""
    language: Language = "en"
    path: Path | None = None
    """The file or folder to read; None looks in `$MEDEXAM_DATA`, then in what `medexam data fetch` brought."""
    hub: HubSpec | None = None
    """With `kind`: the data set of the Hugging Face hub to read; a `path` is a copy that is read instead."""
    columns: ColumnsSpec = ColumnsSpec()
    """With `kind`: which column holds what; a field that is left out is read from the column of its own name."""
    answers: KeySpec | None = None
    """With `kind`: the right answers, if they are in another file, as `{path: key.csv, on: id}`, or as a list."""
    skip_bad: bool | Annotated[float, Field(gt=0, le=1)] = False
    """With `kind`: leave out and count rows that cannot be asked: true up to 5 %, or up to a share such as 0.2."""
    scoring: ScoringSpec | None = None
    """With `kind: choice`: what a wrong answer costs, as `{penalty: 1/3}`, which gives an exam score; None: nothing."""
    published: PublishedSpec | None = None
    """With `kind`: what its authors say of it; a run warns if it reads another number of questions."""
    option_counts: tuple[int, ...] | None = None
    """None asks questions with any number of options."""
    images: Literal["all", "with", "without"] = "all"
    """Whether questions that refer to a picture are asked; `program.images` says whether the picture is shown."""
    as_published: bool = False
    """Whether private-use characters stay; else they are read as the signs that `medexam data check` lists."""
    explained: bool = False
    """Whether the explanation stands before the question, where a data set has it, or `columns.explanation`."""
    alter: Alteration | None = None
    """What alters the questions, by its name or with its settings; None: nothing does."""
    variants: tuple[Literal["CQ#E", "CQP#E", "Q#CE", "QP#CE"], ...] | None = None
    """Of explained exams: what is shown of Case, Question, Possible answers and Explanation; None: all four."""
    formats: tuple[Format, ...] | None = None
    """Of questions in several formats: None asks all seven."""

    @model_validator(mode="before")
    @classmethod
    def _name_own(cls, tree: Any) -> Any:
        """Give questions of one's own a name: a file's up to its first dot, or the last part of a hub's id."""
        if not isinstance(tree, Mapping) or tree.get("kind") is None or tree.get("name") is not None:
            return tree
        path, hub = tree.get("path"), tree.get("hub")
        key = hub.get("id") if isinstance(hub, Mapping) else getattr(hub, "id", None)
        name = Path(path).name.split(".")[0] if isinstance(path, str | Path) else Path(str(key or "")).name
        return {**tree, "name": name or "questions"}

    @field_validator("name")
    @classmethod
    def _name_is_known(cls, name: str, info: Any) -> str:
        if info.data.get("kind") is not None:
            if name in CATALOGUE or not name.strip():
                raise ValueError(f"{name!r} is already used: choose another name for your own questions")
            return name
        if is_own_name(name, BENCHMARKS):
            return part_name(name, CATALOGUE, BENCHMARKS)
        if name in CATALOGUE or info.context == STORED:
            return name
        names = list(dict.fromkeys((*CATALOGUE, *added_names(BENCHMARKS))))
        near = f"did you mean {near}? " if (near := nearest(name, names)) else ""
        raise ValueError(
            f"no data set is called {name!r}: {near}the names are {', '.join(names)}; "
            f"`medexam init {name}` writes a spec for a file of yours"
        )

    @model_validator(mode="after")
    def _settings_belong(self) -> Self:
        if self.is_own:
            if self.alter is not None and is_own_name(self.name, BENCHMARKS):
                raise ValueError("alter works on questions that medexam reads, not on your own benchmark")
            return self
        fields = _OF_KIND[self.kind] if self.kind else CATALOGUE[self.name].fields
        for field in _SPECIAL:
            if field not in fields and getattr(self, field) != type(self).model_fields[field].default:
                whose = "questions of your own: set kind too, or" if field in _OWN else "other data sets:"
                raise ValueError(f"{self.kind or self.name} has no {field}, which belongs to {whose} leave it out")
        if self.kind is None and (unknown := [name for name in self.disciplines or () if name not in {*Discipline}]):
            raise ValueError(f"disciplines: {', '.join(unknown)}: the disciplines are {', '.join(Discipline)}")
        return self

    @model_serializer(mode="wrap")
    def _as_stored(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        rare = ("kind", "alter", *_OWN)
        return {name: value for name, value in dump(self).items() if name not in rare or value not in (None, False, {})}

    @property
    def is_own(self) -> bool:
        """Whether `name` is a benchmark of the user's own or of a package, which knows itself what its fields mean."""
        return self.kind is None and self.name not in CATALOGUE

    @property
    def runs_code(self) -> bool:
        """Whether loading and scoring it runs code of the user's own."""
        return self.is_own and not ships(self.name, BENCHMARKS)

    @property
    def question_form(self) -> Form:
        """What the questions ask for; those of a benchmark of one's own are taken as numbered options."""
        return "choice" if self.is_own else self.kind or CATALOGUE[self.name].form

    @property
    def called(self) -> str:
        """The name in tables."""
        return short_name(self.name) if self.is_own else self.name

    @property
    def whole(self) -> "DatasetSpec":
        """Everything that this data set holds, in the same form, whatever is selected here."""
        field_names = ("kind", "name", "language", "path", "as_published", "explained", "alter", "scoring", *_OWN)
        return DatasetSpec(**{field: getattr(self, field) for field in field_names})

    def part(self, part: PartSpec) -> "DatasetSpec":
        """Return another part of the same questions."""
        settings = self.whole.model_dump() | self.model_dump(include={"images", "option_counts"})
        return DatasetSpec.model_validate(settings | part.model_dump())

    @property
    def label(self) -> str:
        """Name, language and what changes a question, for tables; examples tell no language."""
        return " ".join([self.called, *([] if self.kind == EXAMPLES else [self.language]), *self.changes])

    @property
    def changes(self) -> tuple[str, ...]:
        """What changes a question, in words for tables; empty if nothing does."""
        return (*(["explained"] if self.explained else []), *([self.alter.label] if self.alter else []))


def check_named(tree: Mapping[str, Any]) -> None:
    """Raise `SpecError` where a `dataset` part says much of the questions and not which they are."""
    if tree.get("name") is None and tree.get("kind") is None:
        raise SpecError(
            f"{find_source(tree)}dataset: it names no data set: set dataset.name, such as {SAMPLE.name} for the "
            "sample that ships, or dataset.kind and dataset.path for questions of your own"
        )
