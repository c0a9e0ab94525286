"""The steps of programs in YAML, over one set of named fields.

A DSPy signature says what a step reads and writes; the first field of a step's class names the step. Anything that
steps cannot say is Python through `use`, `by` or `combine`.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self, Union, get_args

import yaml
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    Tag,
    field_validator,
    model_serializer,
    model_validator,
)

from medexam.errors import SpecError
from medexam.questions import Language
from medexam.specs.base import Spec
from medexam.specs.names import PROGRAMS, part_name, short_name
from medexam.specs.programs.base import PositiveInt, ProgramSpec
from medexam.specs.programs.needs import AnswerForm, AnswerFormat, Query
from medexam.specs.programs.words import SIDE_WORDS, AnyWords, AsideSpec, Orders, ReplySpec

if TYPE_CHECKING:
    AnyProgram = ProgramSpec

QUESTION_FIELDS: Mapping[str, str] = {
    "question": "str",
    "stem": "str",
    "options": "str",
    "option_numbers": "list[int]",
    "context": "str",
    "language": "str",
}
"""The fields that every question has, with their types."""
PASSAGES = "passages"
"""The field that look-ups write."""
BY = ("predict", "chain_of_thought", "react", "likelihood")
"""Modules of DSPy's and ours that an `ask` may be asked by; any other is a class of the user's own."""
NEAREST = "minilm"
"""The encoder by which `nearest` demonstrations are chosen."""
Combine = Literal["vote", "mean_probability"]
COMBINE: tuple[str, ...] = get_args(Combine)
"""Ways to make one answer of those of several branches; any other is a function of the user's own."""
FieldName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]
_QUOTED = r"\"[^\"]*\"|'[^']*'"
_PART = re.compile(rf"(?:{_QUOTED}|\[(?:[^\[\]]|\[[^\[\]]*\])*\]|[^,\[\]])+")
"""What stands between the commas of a signature that are in no brackets or quotes."""


class SignatureText(NamedTuple):
    """Name of each field -> its type as it is written, `str` if none is."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


@lru_cache(maxsize=1024)
def read_signature(text: str) -> SignatureText:
    """Read a signature such as `question, options -> answer: int`; raises `ValueError` if it is none."""
    sides = []
    for side in text.partition("->")[::2]:
        parts = [part.partition(":")[::2] for part in _PART.findall(side) if part.strip()]
        sides.append({name.strip(): kind.strip() or "str" for name, kind in parts})
        if bad := next((name for name in sides[-1] if not name.isidentifier()), None):
            raise ValueError(f"{bad!r} is not a field of a signature: write names with commas between them")
    signature = SignatureText(*sides)
    if not signature.inputs or not signature.outputs:
        raise ValueError(f"{text!r} is not a signature, such as 'question, options -> answer: int'")
    if twice := signature.inputs.keys() & signature.outputs.keys():
        raise ValueError(f"{text!r} reads and writes {', '.join(sorted(twice))}: give the output a name of its own")
    return signature


def _at_least(count: int) -> AfterValidator:
    def check(steps: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(steps) < count:
            raise ValueError(f"a list of {'branches' if count > 1 else 'steps'} needs {count} or more")
        return steps

    return AfterValidator(check)


class Limit(Spec):
    """A condition on a number."""

    field: FieldName
    """The field that is compared."""
    below: float | None = None
    """The condition holds where the field is less."""
    above: float | None = None
    """The condition holds where the field is more."""

    @model_validator(mode="after")
    def _one_side(self) -> Self:
        if (self.below is None) == (self.above is None):
            raise ValueError("write below or above with a number")
        return self


Condition = Annotated[
    Annotated[FieldName, Tag("a field")] | Annotated[Limit, Tag("a limit")],
    Discriminator(lambda value: "a field" if isinstance(value, str) else "a limit"),
]


class StepSpec(Spec):
    """Base of the steps."""

    model_config = ConfigDict(validate_by_alias=True, validate_by_name=True, serialize_by_alias=True)
    step: ClassVar[str]
    """The field that tells the step from the others."""

    @model_serializer(mode="wrap")
    def _leave_none_out(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in write(self).items() if value is not None}

    @property
    def branches(self) -> "Mapping[str, Steps]":
        """The steps inside this one, by their place in it."""
        inner = {"do": getattr(self, "do", None), "else": getattr(self, "otherwise", None)}
        return {name: steps for name, steps in inner.items() if steps is not None}


class AskingStep(StepSpec):
    """Base of the steps that ask; each field but the first changes how."""

    model: str | None = None
    """One of the experiment's `models`; None: its `model`."""
    samples: Annotated[int, Field(ge=2, le=1000)] | None = None
    """Replies to each question, of which the commonest legal answer is taken; None: one."""
    orders: Orders | None = None
    """Ask once for each of several orders of the options, as `orders` of `zero_shot` does; None: the exam's alone."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """That of this step; None: the model's."""
    max_tokens: PositiveInt | None = None
    """Tokens each reply may have; None: the program's own, or the model's."""
    answer_format: AnswerFormat | None = None
    """`free` or `guided`; None: the program's own."""
    answer_form: AnswerForm | None = None
    """`braces` or `angles`, with `words` or `use`; None: that of these."""
    rename: Annotated[FieldName | None, Field(alias="as")] = None
    """What the step's one output is called among the fields; None: as the signature says."""
    add: FieldName | None = None
    """A list that the step's one output is added to, which is empty at first; None: the output is a field itself."""
    instructions: str | dict[Language, str] | None = None
    """What the model is told: a text, a file (`./judge.txt` or `.md`), or one of both for each language."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.rename is not None and self.add is not None:
            raise ValueError("`as` renames a field, and `add` extends a list: leave one out")
        if self.target is not None:
            _ = self.changed
        return self

    @property
    def target(self) -> ProgramSpec | None:
        """The program or the words that it asks; None of a signature that DSPy asks."""
        raise NotImplementedError

    @property
    def called(self) -> str:
        """What its predictors are called by: its field, or the kind of its program."""
        kind = "" if self.target is None else re.sub(r"\W", "_", short_name(self.target.kind))
        own = next(iter(self.signature.outputs)) if isinstance(self, AskStep) else kind
        return self.rename or self.add or own

    @property
    def averages(self) -> bool:
        """Whether what it asks is asked in several orders by itself, and averages these."""
        fields = getattr(type(self.target), "model_fields", {})
        return "orders" in fields and "samples" not in fields

    @property
    def changed(self) -> ProgramSpec:
        """What it asks, with what the step changes; raises `ValueError` where that does not fit."""
        target: Any = self.target
        names = ("max_tokens", "answer_format", "answer_form", *(["orders"] if self.averages else []))
        changes = {name: value for name in names if (value := getattr(self, name)) is not None}
        if unknown := [name for name in changes if name not in type(target).model_fields]:
            raise ValueError(f"program {target.kind} takes no {' and no '.join(unknown)}: leave it out")
        settings = {**target.model_dump(exclude_unset=True), "kind": target.kind, **changes}
        changed: ProgramSpec = type(target).model_validate(settings) if changes else target
        return changed

    @property
    def votes(self) -> "tuple[int | None, Orders | None]":
        """The samples and the orders that it is asked in, and that vote."""
        return self.samples, None if self.averages else self.orders

    def read_words(self, language: Language) -> dict[str, Any]:
        """Read `instructions`, a text, and `demos`, a list of mappings; what the step does not say is left out.

        Raises `SpecError` if a file cannot be read, or there are no instructions in `language`.
        """
        words: dict[str, Any] = {}
        text = self.instructions
        if isinstance(text, Mapping):
            if language not in text:
                raise SpecError(f"instructions: none in {language!r}: add some beside those in {', '.join(text)}")
            text = text[language]
        if text is not None:
            is_file = text.endswith((".txt", ".md")) and len(text.split()) == 1
            words["instructions"] = _read(text).strip() if is_file else text
        if demos := getattr(self, "demos", ()):
            demos = yaml.safe_load(_read(demos)) if isinstance(demos, str) else list(demos)
            if not isinstance(demos, list) or not all(isinstance(demo, dict) for demo in demos):
                raise SpecError("demos: not a list of mappings with the signature's fields")
            words["demos"] = demos
        return words


class AskStep(AskingStep):
    """Ask a DSPy signature."""

    step: ClassVar[str] = "ask"
    ask: str
    """Such as `question, options, passages -> answer: int`: what is read among the fields, and what is written."""
    by: str = "predict"
    """`predict`, `chain_of_thought` (reason first), `react` (with the retriever as a tool), `likelihood` (take the
    likeliest value of each choice), or a module class that takes a signature."""
    demos: tuple[dict[str, Any], ...] | str = ()
    """Solved examples, each a mapping of the signature's fields; or a YAML or JSON file of them."""
    nearest: PositiveInt | None = None
    """How many of `demos` a question is shown, those whose `question` is nearest to it; None: all, to each."""
    words: AnyWords | None = None
    """Ask in the words of a kind that ships, such as `zero_shot` or `{kind: few_shot, examples: mine.yaml}`, or of what
    is asked beside the question, such as `helps`; None: in DSPy's words."""
    cite: AsideSpec | None = None
    """Number the passages and have the reply name the one that supports its answer, such as `{Answer: 3} [2]`, with
    `words`: `{}`, or words and a reader that scores each citation; None names none."""

    @property
    def target(self) -> ProgramSpec | None:
        """The words."""
        return self.words

    @property
    def changed(self) -> ProgramSpec:
        """The words with what the step changes."""
        changed = super().changed
        outputs = self.signature.outputs
        return (
            changed.model_copy(update={"output_type": next(iter(outputs.values()))})
            if isinstance(changed, AsideSpec)
            else changed
        )

    @property
    def texts(self) -> tuple[str, ...]:
        """The names of the fields that are read beside the question's own."""
        return tuple(name for name in self.signature.inputs if name not in QUESTION_FIELDS)

    @property
    def signature(self) -> SignatureText:
        """The fields of the signature."""
        return read_signature(self.ask)

    @model_validator(mode="after")
    def _fields_fit(self) -> Self:
        if len(self.signature.outputs) > 1 and (self.rename or self.add):
            raise ValueError(f"{'as' if self.rename else 'add'} needs exactly one output, and {self.ask!r} has several")
        if self.nearest is not None and not self.demos:
            raise ValueError("nearest chooses among demos: add them, with a field `question` each")
        return self

    @model_validator(mode="after")
    def _words_fit(self) -> Self:
        if self.words is None:
            if extra := next((name for name in ("answer_form", "cite") if getattr(self, name) is not None), None):
                raise ValueError(f"{extra} belongs to words: leave it out")
            return self
        if self.by != "predict" or self.instructions is not None or self.demos:
            raise ValueError("words have their own instructions and examples: leave by, instructions and demos out")
        if self.cite is not None and (not isinstance(self.words, ReplySpec) or self.texts != (PASSAGES,)):
            raise ValueError("cite needs words that name an option, and passages: read `question, options, passages`")
        if self.cite is not None and (self.samples or self.orders):
            raise ValueError("cite takes no samples or orders: leave them out")
        outputs, texts = self.signature.outputs, [name for name in self.texts if name != "answer"]
        if isinstance(self.words, AsideSpec):
            kinds = ["bool", "float"][: len(outputs)] if self.words.reader is not None else [*outputs.values()][:1]
            if list(outputs.values()) != kinds or kinds[0] not in ("bool", "str", "list[str]"):
                raise ValueError(
                    "these words return one bool, str or list[str]; a reader returns a bool and its probability"
                )
            if len(texts) > (1 if "question" in self.signature.inputs else 2):
                raise ValueError("such words show a question and one text: name fewer fields")
        elif "answer" not in outputs or not outputs.keys() <= {"answer", "rationale"}:
            raise ValueError(
                f"words {self.words.kind} write only `answer`, and `rationale` if they reason: name no other field"
            )
        elif "question" not in self.signature.inputs or len(self.texts) > 1:
            raise ValueError(
                f"words {self.words.kind} show one text and then the question: name `question` and one field"
            )
        return self

    @field_validator("ask")
    @classmethod
    def _is_signature(cls, ask: str) -> str:
        _ = read_signature(ask)
        return ask

    @field_validator("cite", mode="before")
    @classmethod
    def _cites(cls, cite: Any) -> Any:
        return {"group": "cite", **cite} if isinstance(cite, Mapping) else cite

    @field_validator("by")
    @classmethod
    def _names_module(cls, by: str) -> str:
        return part_name(by, BY, PROGRAMS)


class UseStep(AskingStep):
    """Let another program answer; it writes `answer`, and `rationale` if it reasons."""

    step: ClassVar[str] = "use"
    use: "AnyProgram"
    """Any program, or its kind: `zero_shot`, `{kind: likelihood, read: label}`, `./x.py:Class`, or steps."""

    @property
    def target(self) -> ProgramSpec:
        """The program."""
        return self.use


class RetrieveStep(StepSpec):
    """Look up passages."""

    step: ClassVar[str] = "retrieve"
    retrieve: FieldName
    """The field that is looked up: a text, or a list of texts."""
    k: PositiveInt = 2
    """Passages for each text; the paper's 2."""
    rename: Annotated[FieldName | None, Field(alias="as")] = None
    """What the passages are called; None: `passages`."""
    add: FieldName | None = None
    """A list that they are added to, each passage once."""
    numbered: bool = False
    """Whether each passage begins with its number, such as `[2]`, by which a model can name it."""
    query: Query = "stem"
    """Of the one `retrieve: stem` of a program: what of the question is looked up; `per_option`: the stem with each
    option, and the best passages over all."""
    query_language: Language | None = None
    """Of such a step: look up the same question in this language, found by its key; None: the language asked."""


class EachStep(StepSpec):
    """Do steps for each entry of a list; what they write is gone after each, but for what they `add`."""

    step: ClassVar[str] = "each"
    each: FieldName
    """A list among the fields, or `options`: the lines of the question's options."""
    name: FieldName = "entry"
    """What an entry is called in the steps."""
    most: PositiveInt | None = None
    """Entries at most, the first ones; None for passages and options: all."""
    keep: Condition | None = None
    """Keep the entries for which the steps make this true; None keeps all."""
    do: "Steps"


class RepeatStep(StepSpec):
    """Do steps again and again."""

    step: ClassVar[str] = "repeat"
    repeat: Annotated[int, Field(ge=1, le=100)]
    """How often at most."""
    until: Condition | None = None
    """What ends it once it holds; None: never."""
    as_long_as: Annotated[Condition | None, Field(alias="while")] = None
    """What ends it once it does not hold; None: never."""
    do: "Steps"


class ConditionStep(StepSpec):
    """Base of the steps that do others if a condition holds: a field is true or not empty, or a number in a limit."""

    do: "Steps"
    otherwise: Annotated["Steps | None", Field(alias="else")] = None
    """Steps that are done if it does not; None does none."""


class WhenStep(ConditionStep):
    """Do steps if a condition holds."""

    step: ClassVar[str] = "when"
    when: Condition


class UnlessStep(ConditionStep):
    """Do steps if a condition does not hold."""

    step: ClassVar[str] = "unless"
    unless: Condition


class DropStep(StepSpec):
    """Leave an option out of the question for the steps that follow; the others keep their numbers."""

    step: ClassVar[str] = "drop"
    drop: FieldName
    """A field with the number of the option, an int or a list[int]; one option is always left."""


class AllStep(StepSpec):
    """Do several steps side by side; each sees the fields as they were before."""

    step: ClassVar[str] = "all"
    all: Annotated[tuple["Branch", ...], _at_least(2)]
    """Branches, two or more: a step each, or a list of steps."""
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
    spec.step: spec
    for spec in (AskStep, UseStep, RetrieveStep, EachStep, RepeatStep, WhenStep, UnlessStep, DropStep, AllStep)
}
"""Name of a step -> its spec."""


def _step_name(step: Any) -> str | None:
    name = step.step if isinstance(step, StepSpec) else next((name for name in STEPS if name in step), None)
    return None if name is None else f"({name})"


def _one_step(step: Any) -> Any:
    """Return a step with the short forms spelled out; raise `ValueError` if it is none, or two."""
    if isinstance(step, StepSpec):
        return step
    names = [name for name in STEPS if isinstance(step, Mapping) and name in step]
    if len(names) != 1:
        step_text = " and ".join(names) if names else repr(step)[:60]
        raise ValueError(f"a step is one of {', '.join(STEPS)}, found {step_text}")
    if isinstance(words := step.get("words"), str):
        words = {"group": words} if words in SIDE_WORDS else {"kind": words}
    if isinstance(words, Mapping):
        step = {**step, "words": {"kind": "aside", **words}}
    if "use" in step:
        step = {**step, "use": as_program(step["use"])}
    return step


def as_program(value: Any) -> Any:
    """Return a program with its fields; a string stands for its kind, and steps are one of their own."""
    if isinstance(value, Mapping) and "steps" in value and "kind" not in value:
        return {"kind": "flow", **value}
    return {"kind": value} if isinstance(value, str) else value


if TYPE_CHECKING:
    Step = StepSpec
else:
    _tagged = [Annotated[spec, Tag(f"({name})")] for name, spec in STEPS.items()]
    Step = Annotated[Annotated[Union[(*_tagged,)], Discriminator(_step_name)], BeforeValidator(_one_step)]


Steps = Annotated[tuple[Step, ...], _at_least(1)]
Branch = Annotated[
    Steps, BeforeValidator(lambda branch: [branch] if isinstance(branch, Mapping | StepSpec) else branch)
]


def walk_steps(steps: Steps, place: str = "steps") -> Iterator[tuple[str, StepSpec]]:
    """Yield every step with its place in the spec, such as `steps.2.do.0`, those inside others behind them."""
    for position, step in enumerate(steps):
        step_place = f"{place}.{position}"
        yield step_place, step
        for inner, branch in step.branches.items():
            yield from walk_steps(branch, f"{step_place}.{inner}")


def _read(file: str) -> str:
    try:
        return Path(file).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"cannot read {file}: {error}") from None
