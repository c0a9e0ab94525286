"""The steps of programs in YAML, over one set of named fields.

A DSPy signature says what a step reads and writes. Conditions are names of fields; anything more is Python through
`use`.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union, get_args

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, field_validator

from medexam.questions import Language
from medexam.specs.names import PROGRAMS, part_name
from medexam.specs.programs.asides import SIDE_WORDS
from medexam.specs.programs.asking_steps import AskStep, FieldName, StepSpec, UseStep
from medexam.specs.programs.base import PositiveInt
from medexam.specs.programs.needs import Query

Combine = Literal["vote", "mean_probability"]
COMBINE: tuple[str, ...] = get_args(Combine)
"""Ways to make one answer of those of several branches; any other is a function of the user's own."""


class RetrieveStep(StepSpec):
    """Look up passages."""

    step: ClassVar[str] = "retrieve"
    retrieve: FieldName
    """The field that is looked up: a text, or a list of texts."""
    k: PositiveInt = 2
    """Passages for each text."""
    rename: Annotated[FieldName | None, Field(alias="as")] = None
    """What the passages are called; None: `passages`."""
    add: FieldName | None = None
    """A list that they are added to, each passage once."""
    query: Query = "stem"
    """Of the one `retrieve: stem` of a program: what of the question is looked up; `per_option` looks up the stem with
    each option and takes the best passages over all."""
    query_language: Language | None = None
    """Of the same: look up the same question in this language, found by its key; None: the language that is asked."""


class EachStep(StepSpec):
    """Do steps for each entry of a list; what they write is gone after each, but for what they `add`."""

    step: ClassVar[str] = "each"
    each: FieldName
    """A list among the fields."""
    name: FieldName = "entry"
    """What an entry is called in the steps."""
    most: PositiveInt | None = None
    """Entries at most, the first ones; None for passages: all that were looked up."""
    keep: FieldName | None = None
    """Keep the entries for which the steps make this field true; None keeps all."""
    do: "Steps"


class RepeatStep(StepSpec):
    """Do steps again and again."""

    step: ClassVar[str] = "repeat"
    repeat: Annotated[int, Field(ge=1, le=100)]
    """How often at most."""
    until: FieldName | None = None
    """The field that ends it once it is true; None: never."""
    as_long_as: Annotated[FieldName | None, Field(alias="while")] = None
    """The field that ends it once it is false or empty; None: never."""
    do: "Steps"


class ConditionStep(StepSpec):
    """Base of the steps that do others if a field says so."""

    do: "Steps"
    otherwise: Annotated["Steps | None", Field(alias="else")] = None
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
    combine: str | None = None
    """Makes one `answer` of those of the branches: `vote`, `mean_probability`, or a function `./x.py:f` of the question
    and the branches' predictions; None: each branch writes names of its own."""

    @field_validator("combine")
    @classmethod
    def _names_rule(cls, combine: str | None) -> str | None:
        return combine and part_name(combine, COMBINE, PROGRAMS)

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
        step_text = " and ".join(names) if names else repr(step)[:60]
        raise ValueError(f"a step is one of {', '.join(STEPS)}, found {step_text}")
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
