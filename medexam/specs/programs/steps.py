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
    StringConstraints,
    Tag,
    model_validator,
)

from medexam.errors import SpecError
from medexam.questions import Language
from medexam.specs.base import PROGRAMS, Spec, part_of, short_name
from medexam.specs.programs.base import PositiveInt, ProgramSpec
from medexam.specs.programs.needs import AnswerFormat, Query
from medexam.specs.programs.words import SIDE_WORDS, AnyWords, AsideSpec, CiteSpec, Orders, ReplySpec

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
By = Literal["predict", "chain_of_thought", "react"]
BY: tuple[str, ...] = get_args(By)
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


def _check_count(steps: tuple[Any, ...], least: int = 1) -> tuple[Any, ...]:
    # A minimum of pydantic's is also said of steps that are left out because they are wrong.
    if len(steps) < least:
        raise ValueError(f"a list of {'branches' if least > 1 else 'steps'} needs {least} or more")
    return steps


_ANY, _SEVERAL = AfterValidator(_check_count), AfterValidator(lambda branches: _check_count(branches, 2))


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

    @property
    def branches(self) -> "Mapping[str, Steps]":
        """The steps inside this one, by their place in it."""
        inner = {"do": getattr(self, "do", None), "else": getattr(self, "otherwise", None)}
        return {name: steps for name, steps in inner.items() if steps is not None}


class AskingStep(StepSpec):
    """Base of the steps that ask; each field but the first changes how."""

    model: str | None = None
    """One of the experiment's `models`; None: its `model`."""
    samples: Annotated[int, Field(ge=1, le=1000)] = 1
    """Replies to each question, of which the commonest legal answer is taken (self-consistency); more than one needs a
    `model.temperature`."""
    orders: Orders = "given"
    """Ask once for each of several orders of the options and take the commonest answer: `cyclic` shows every rotation,
    `reversed` the exam's order and its reverse, `random4` four orders that are drawn for each question."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """That of this step; None: the model's."""
    rename: Annotated[FieldName | None, Field(alias="as")] = None
    """What the step's one output is called among the fields; None: as the signature says."""
    add: FieldName | None = None
    """A list that the step's one output is added to, which is empty at first; None: the output is a field itself."""

    @model_validator(mode="after")
    def _one_name(self) -> Self:
        if self.rename is not None and self.add is not None:
            raise ValueError("`as` renames a field, and `add` extends a list: leave one out")
        return self

    @property
    def outputs(self) -> Mapping[str, str]:
        """Name of each field that it writes -> its type."""
        raise NotImplementedError

    @property
    def called(self) -> str:
        """What its predictors are called by."""
        return self.rename or self.add or next(iter(self.outputs))

    @property
    def votes(self) -> bool:
        """Whether several replies make its answer."""
        return self.samples > 1 or self.orders != "given"


class AskStep(AskingStep):
    """Ask a DSPy signature."""

    step: ClassVar[str] = "ask"
    ask: Annotated[str, AfterValidator(lambda text: read_signature(text) and text)]
    """Such as `question, options, passages -> answer: int`: what is read among the fields, and what is written."""
    by: Annotated[str, part_of(PROGRAMS, By)] = "predict"
    """`predict`, `chain_of_thought` (reason first), `react` (with the retriever as a tool), or a class of modules that
    takes a signature."""
    max_tokens: PositiveInt | None = None
    """Tokens each reply may have; None: the program's own, or the model's."""
    answer_format: AnswerFormat | None = None
    """`free` or `guided`; None: the program's own."""
    instructions: str | dict[Language, str] | None = None
    """What the model is told: a text, a file (`./judge.txt` or `.md`), or one of both for each language."""
    demos: tuple[dict[str, Any], ...] | str = ()
    """Solved examples, each a mapping of the signature's fields; or a YAML or JSON file of them."""
    nearest: PositiveInt | None = None
    """How many of `demos` a question is shown, those whose `question` is nearest to it; None: all, to each."""
    words: AnyWords | None = None
    """Ask in the words of a kind that ships, such as `zero_shot` or `{kind: few_shot, examples: mine.yaml}`, or of what
    is asked beside the question, such as `helps`; None: in DSPy's words."""
    cite: CiteSpec | None = None
    """Number the passages and have the reply name the one that supports its answer, such as `{Answer: 3} [2]`, with
    `words`: `{}`, or words; None names none."""

    @property
    def outputs(self) -> Mapping[str, str]:
        """What the signature says."""
        return self.signature.outputs

    @property
    def texts(self) -> tuple[str, ...]:
        """The names of the fields that are read beside the question's own."""
        return tuple(name for name in self.signature.inputs if name not in QUESTION_FIELDS)

    @property
    def signature(self) -> SignatureText:
        """The fields of the signature."""
        return read_signature(self.ask)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        inputs, outputs = read_signature(self.ask)
        words, texts = self.words, [name for name in self.texts if name != "answer"]
        is_aside = isinstance(words, AsideSpec)
        answers = words is not None and not is_aside
        refusals = {
            "as and add need exactly one output": len(outputs) > 1 and bool(self.rename or self.add),
            "nearest chooses among demos: add them, with a field `question` each": bool(
                self.nearest and not self.demos
            ),
            "words have their own instructions and examples: leave by, instructions and demos out": words is not None
            and (self.by != "predict" or self.instructions is not None or self.demos != ()),
            "cite needs words that name an option, and passages: read `question, options, passages`": self.cite
            is not None
            and not (isinstance(words, ReplySpec) and self.texts == (PASSAGES,)),
            "cite takes no samples or orders: leave them out": self.cite is not None and self.votes,
            "these words show a question and one text, and return one bool, str or list[str]": is_aside
            and (
                [*outputs.values()] not in (["bool"], ["str"], ["list[str]"]) or len(texts) > 2 - ("question" in inputs)
            ),
            "these words read `question` and one text, and write only `answer`, and `rationale` if they reason": (
                answers
                and not ("answer" in outputs and outputs.keys() <= {"answer", "rationale"} and "question" in inputs)
            )
            or (answers and len(self.texts) > 1),
        }
        if refusal := next((words for words, applies in refusals.items() if applies), None):
            raise ValueError(refusal)
        return self

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
        if self.demos:
            demos = yaml.safe_load(_read(self.demos)) if isinstance(self.demos, str) else [*self.demos]
            if not isinstance(demos, list) or not all(isinstance(demo, dict) for demo in demos):
                raise SpecError("demos: not a list of mappings with the signature's fields")
            words["demos"] = demos
        return words


class UseStep(AskingStep):
    """Let another program answer; it writes `answer`, and `rationale` if it reasons."""

    step: ClassVar[str] = "use"
    use: "AnyProgram"
    """Any program, or its kind: `zero_shot`, `{kind: likelihood, read: label}`, `./x.py:Class`, or steps."""
    outputs: ClassVar[Mapping[str, str]] = {"answer": "int", "rationale": "str"}

    @property
    def called(self) -> str:
        """What its predictors are called by: the kind of its program."""
        return self.rename or self.add or re.sub(r"\W", "_", short_name(self.use.kind))


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
    all: Annotated[tuple["Branch", ...], _SEVERAL]
    """Branches, two or more: a step each, or a list of steps."""
    combine: Annotated[str, part_of(PROGRAMS, Combine)] | None = None
    """Makes one `answer` of those of the branches: `vote`, `mean_probability`, or a function `./x.py:f` of the question
    and the branches' predictions; None: each branch writes names of its own."""

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


Steps = Annotated[tuple[Step, ...], _ANY]
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
