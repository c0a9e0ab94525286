"""The steps of programs in YAML, over one set of named fields.

A DSPy signature says what a step reads and writes. Conditions are names of fields; anything more is Python through
`use`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, Union

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    field_validator,
    model_validator,
)

from medexam.questions import Language
from medexam.specs.base import Spec
from medexam.specs.names import part_name
from medexam.specs.optimizer import PartSpec
from medexam.specs.programs.asides import SIDE_WORDS, AsideSpec, check_words
from medexam.specs.programs.base import PositiveInt, ProgramSpec
from medexam.specs.programs.needs import AnswerForm, AnswerFormat, Query
from medexam.specs.programs.orders import Orders
from medexam.specs.programs.own import PROGRAMS
from medexam.specs.programs.replies import SideWordsSpec
from medexam.specs.programs.signature_text import QUESTION_FIELDS, SignatureText, read_signature
from medexam.specs.validation import PlacedError

if TYPE_CHECKING:
    AnyProgram = ProgramSpec
    AnyWords = ProgramSpec

FieldName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]
_LEFT_OUT = Field(default=None, exclude_if=lambda value: value is None)
BY = ("predict", "chain_of_thought", "react", "likelihood")
"""Modules of DSPy's and ours that an `ask` may be asked by; any other is a class of the user's own."""


COMBINE = ("vote", "mean_probability", "stacked")
"""Ways to make one answer of those of several branches; any other is a function of the user's own."""


class StepSpec(Spec):
    """Base of the steps; the first field of each names it."""

    model_config = ConfigDict(validate_by_alias=True, validate_by_name=True, serialize_by_alias=True)
    step: ClassVar[str]
    """The field that tells the step from the others."""

    @property
    def branches(self) -> "Mapping[str, Steps]":
        """The steps inside this one, by their place in it; empty if it has none."""
        inner = {"do": getattr(self, "do", None), "else": getattr(self, "otherwise", None)}
        return {name: steps for name, steps in inner.items() if steps is not None}


class AskingStep(StepSpec):
    """Base of the steps that ask; each field but the first changes how."""

    model: str | None = _LEFT_OUT
    """One of the experiment's `models`; None: its `model`."""
    samples: Annotated[int, Field(ge=2, le=1000)] | None = _LEFT_OUT
    """Replies to each question, of which the commonest legal answer is taken; None: one."""
    orders: Orders | None = _LEFT_OUT
    """Ask once for each of several orders of the options, as `orders` of `zero_shot` does; None: the exam's alone."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = _LEFT_OUT
    """That of this step; None: the model's."""
    max_tokens: PositiveInt | None = _LEFT_OUT
    """Tokens each reply may have; None: the program's own, or the model's."""
    answer_format: AnswerFormat | None = _LEFT_OUT
    """`free` or `guided`; None: the program's own."""
    rename: Annotated[FieldName | None, Field(alias="as")] = _LEFT_OUT
    """What the step's one output is called among the fields; None: as the signature says."""
    add: FieldName | None = _LEFT_OUT
    """A list that the step's one output is added to, which is empty at first; None: the output is a field itself."""
    instructions: str | dict[Language, str] | None = _LEFT_OUT
    """What the model is told: a text, a file (`./judge.txt` or `.md`), or one of both for each language."""

    @model_validator(mode="after")
    def _one_name(self) -> Self:
        if self.rename is not None and self.add is not None:
            raise ValueError("`as` renames a field, and `add` extends a list: leave one out")
        return self

    @property
    def outer_samples(self) -> int | None:
        """Samples that are asked around what the step asks."""
        return self.samples

    @property
    def outer_orders(self) -> Orders | None:
        """Orders that are asked around what the step asks."""
        return self.orders

    def changed(self, program: ProgramSpec, names: Iterable[str]) -> ProgramSpec:
        """Return a program with the modifiers `names` of this step; raises `ValueError` if one does not fit."""
        changes = {name: value for name in names if (value := getattr(self, name)) is not None}
        if unknown := [name for name in changes if name not in type(program).model_fields]:
            raise ValueError(f"program {program.kind} takes no {' and no '.join(unknown)}: leave it out")
        return self.renewed(program, changes)

    @staticmethod
    def renewed(program: ProgramSpec, changes: Mapping[str, Any]) -> ProgramSpec:
        """Return a program with other values in some fields, checked anew."""
        return type(program).model_validate({**program.model_dump(), **changes}) if changes else program


class AskStep(AskingStep):
    """Ask a DSPy signature."""

    step: ClassVar[str] = "ask"
    ask: str
    """Such as `question, options, passages -> answer: int`: what is read among the fields, and what is written."""
    by: str = Field(default="predict", exclude_if=lambda by: by == "predict")
    """`predict`, `chain_of_thought` (reason first), `react` (with the retriever as a tool), `likelihood` (take the
    likeliest value of each choice), or a module class that takes a signature."""
    demos: tuple[dict[str, Any], ...] | str = Field(default=(), exclude_if=lambda demos: not demos)
    """Solved examples, each a mapping of the signature's fields; or a YAML or JSON file of them."""
    words: "AnyWords | None" = _LEFT_OUT
    """Ask in the words of a kind that ships, such as `zero_shot` or `{kind: few_shot, examples: mine.yaml}`, or of what
    is asked beside the question, such as `helps`; None: in DSPy's words."""
    answer_form: AnswerForm | None = _LEFT_OUT
    """`braces` or `angles`, with `words`; None: that of the words."""

    @model_validator(mode="after")
    def _words_fit(self) -> Self:
        if self.words is None:
            if self.answer_form is not None:
                raise ValueError("answer_form belongs to words: leave it out")
            return self
        if self.by != "predict" or self.instructions is not None or self.demos:
            raise ValueError("words have their own instructions and examples: leave by, instructions and demos out")
        check_words(self.words, self.signature)
        _ = self.program
        return self

    @property
    def program(self) -> ProgramSpec:
        """What asks in `words`, with what the step changes of it; samples and most orders are asked around it."""
        assert self.words is not None  # noqa: S101 - the caller has looked
        inner = ("orders",) if self._averages_orders else ()
        program = self.changed(self.words, ("max_tokens", "answer_format", "answer_form", *inner))
        if isinstance(program, AsideSpec):
            return program.model_copy(update={"output_type": next(iter(self.signature.outputs.values()))})
        return program

    @property
    def _averages_orders(self) -> bool:
        """Whether the words are asked in several orders by themselves."""
        fields = {} if self.words is None else type(self.words).model_fields
        return "orders" in fields and "samples" not in fields

    @property
    def outer_orders(self) -> Orders | None:
        """Orders that are asked around what the step asks; None if it does so by itself."""
        return None if self._averages_orders else self.orders

    @property
    def texts(self) -> tuple[str, ...]:
        """The names of the fields that are read beside the question's own."""
        return tuple(name for name in self.signature.inputs if name not in QUESTION_FIELDS)

    @model_validator(mode="after")
    def _is_read(self) -> Self:
        try:
            signature = self.signature
        except ValueError as error:
            raise PlacedError("ask", str(error)) from None
        if len(signature.outputs) > 1 and (self.rename or self.add):
            raise ValueError(f"{'as' if self.rename else 'add'} needs exactly one output, and {self.ask!r} has several")
        return self

    @field_validator("by")
    @classmethod
    def _names_module(cls, by: str) -> str:
        return part_name(by, BY, PROGRAMS)

    @property
    def signature(self) -> SignatureText:
        """The fields of the signature."""
        return read_signature(self.ask)


class UseStep(AskingStep):
    """Let another program answer; it writes `answer`, and `rationale` if it reasons."""

    step: ClassVar[str] = "use"
    use: "AnyProgram"
    """Any program, or its kind: `zero_shot`, `{kind: likelihood, read: label}`, `./x.py:Class`, or steps."""
    answer_form: AnswerForm | None = _LEFT_OUT
    """`braces` or `angles`; None: the program's own."""

    @model_validator(mode="after")
    def _program_takes_them(self) -> Self:
        _ = self.program
        if self.use.made_of:
            raise ValueError("an ensemble combines stored runs: list its members in `all` with combine instead")
        return self

    @property
    def program(self) -> ProgramSpec:
        """The program with what the step changes of it."""
        names = ["max_tokens", "answer_format", "answer_form"]
        return self.changed(self.use, [*names, *self._inner])

    @property
    def _inner(self) -> set[str]:
        """Which of samples and orders the program has itself."""
        is_asked_once = isinstance(self.use, SideWordsSpec) or getattr(self.use, "cite", False)
        return set() if is_asked_once else {"samples", "orders"} & type(self.use).model_fields.keys()

    @property
    def outer_samples(self) -> int | None:
        """Samples that are asked around the program; None if there are none, or it has them itself."""
        return None if "samples" in self._inner else self.samples

    @property
    def outer_orders(self) -> Orders | None:
        """Orders that are asked around the program; None if there are none, or it has them itself."""
        return None if "orders" in self._inner else self.orders


class RetrieveStep(StepSpec):
    """Look up passages."""

    step: ClassVar[str] = "retrieve"
    retrieve: FieldName
    """The field that is looked up: a text, or a list of texts."""
    k: PositiveInt = 2
    """Passages for each text."""
    rename: Annotated[FieldName | None, Field(alias="as")] = _LEFT_OUT
    """What the passages are called; None: `passages`."""
    add: FieldName | None = _LEFT_OUT
    """A list that they are added to, each passage once."""
    query: Query = Field(default="stem", exclude_if=lambda query: query == "stem")
    """Of the one `retrieve: stem` of a program: what of the question is looked up; `per_option` looks up the stem with
    each option and takes the best passages over all."""
    query_language: Language | None = _LEFT_OUT
    """Of the same: look up the same question in this language, found by its key; None: the language that is asked."""


class EachStep(StepSpec):
    """Do steps for each entry of a list; what they write is gone after each, but for what they `add`."""

    step: ClassVar[str] = "each"
    each: FieldName
    """A list among the fields."""
    name: FieldName = "entry"
    """What an entry is called in the steps."""
    most: PositiveInt | None = _LEFT_OUT
    """Entries at most, the first ones; None for passages: all that were looked up."""
    keep: FieldName | None = _LEFT_OUT
    """Keep the entries for which the steps make this field true; None keeps all."""
    do: "Steps"


class RepeatStep(StepSpec):
    """Do steps again and again."""

    step: ClassVar[str] = "repeat"
    repeat: Annotated[int, Field(ge=1, le=100)]
    """How often at most."""
    until: FieldName | None = _LEFT_OUT
    """The field that ends it once it is true; None: never."""
    as_long_as: Annotated[FieldName | None, Field(alias="while")] = _LEFT_OUT
    """The field that ends it once it is false or empty; None: never."""
    do: "Steps"


class ConditionStep(StepSpec):
    """Base of the steps that do others if a field says so."""

    do: "Steps"
    otherwise: Annotated["Steps | None", Field(alias="else")] = _LEFT_OUT
    """Steps that are done if it does not; None does none."""

    @property
    def condition(self) -> str:
        """The field that decides."""
        return str(getattr(self, self.step))


class WhenStep(ConditionStep):
    """Do steps if a field is true."""

    step: ClassVar[str] = "when"
    when: FieldName


class UnlessStep(ConditionStep):
    """Do steps if a field is false or empty."""

    step: ClassVar[str] = "unless"
    unless: FieldName


def _at_least_two(branches: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(branches) < 2:
        raise ValueError("what stands side by side is two branches or more")
    return branches


class AllStep(StepSpec):
    """Do several steps side by side; each sees the fields as they were before."""

    step: ClassVar[str] = "all"
    all: Annotated[tuple["Branch", ...], AfterValidator(_at_least_two)]
    """Branches: a step each, or a list of steps."""
    combine: str | None = _LEFT_OUT
    """Makes one `answer` of those of the branches: `vote`, `mean_probability`, `stacked` (the only step then, each of
    whose branches is a run of its own), or a function `./x.py:f` of the question and the branches' predictions; None:
    each branch writes names of its own."""
    train: PartSpec | None = _LEFT_OUT
    """`stacked`: the exams that the weights are fitted on, which must not be asked."""

    @field_validator("combine")
    @classmethod
    def _names_rule(cls, combine: str | None) -> str | None:
        return combine and part_name(combine, COMBINE, PROGRAMS)

    @model_validator(mode="after")
    def _is_fitted(self) -> Self:
        if (self.train is not None) != (self.combine == "stacked"):
            advice = "name the exams, such as train: {split: train}, or combine: mean_probability"
            raise PlacedError("combine", f"'stacked' and train go together: {advice}")
        return self

    @property
    def branches(self) -> "Mapping[str, Steps]":
        """Its branches, by their positions."""
        return {f"all.{position}": branch for position, branch in enumerate(self.all)}


STEPS: Mapping[str, type[StepSpec]] = {
    spec.step: spec for spec in (AskStep, UseStep, RetrieveStep, EachStep, RepeatStep, WhenStep, UnlessStep, AllStep)
}
"""Name of a step -> its spec."""


def _step_name(step: object) -> str | None:
    """Return the tag of a step."""
    if isinstance(step, StepSpec):
        return f"({step.step})"
    return next((f"({name})" for name in STEPS if name in step), None) if isinstance(step, Mapping) else None


def _one_step(step: object) -> object:
    """Return a step with the short forms spelled out; raise `ValueError` if it is none, or two."""
    if isinstance(step, StepSpec):
        return step
    names = [name for name in STEPS if isinstance(step, Mapping) and name in step]
    if len(names) != 1:
        found = " and ".join(names) if names else repr(step)[:60]
        raise ValueError(f"a step is one of {', '.join(STEPS)}, found {found}")
    assert isinstance(step, Mapping)  # noqa: S101 - it has a name
    if isinstance(words := step.get("words"), str):
        words = {"group": words} if words in SIDE_WORDS else {"kind": words}
    if isinstance(words, Mapping):
        step = {**step, "words": {"kind": "aside", **words}}
    if isinstance(program := step.get("use"), str):
        return {**step, "use": {"kind": program}}
    if isinstance(program, Mapping) and "steps" in program and "kind" not in program:
        return {**step, "use": {"kind": "flow", **program}}
    return step


def _branch(branch: object) -> object:
    return [branch] if isinstance(branch, Mapping | StepSpec) else branch


if TYPE_CHECKING:
    Step = StepSpec
else:
    _tagged = [Annotated[spec, Tag(f"({name})")] for name, spec in STEPS.items()]
    Step = Annotated[Annotated[Union[(*_tagged,)], Discriminator(_step_name)], BeforeValidator(_one_step)]


def _at_least_one(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    if not steps:
        raise ValueError("a list of steps needs one step or more")
    return steps


Steps = Annotated[tuple[Step, ...], AfterValidator(_at_least_one)]
Branch = Annotated[Steps, BeforeValidator(_branch)]


def walk_steps(steps: Steps, place: str = "steps") -> Iterator[tuple[str, StepSpec]]:
    """Yield every step with its place in the spec, such as `steps.2.do.0`, those inside others behind them."""
    for position, step in enumerate(steps):
        step_place = f"{place}.{position}"
        yield step_place, step
        for inner, branch in step.branches.items():
            yield from walk_steps(branch, f"{step_place}.{inner}")
