"""The steps of programs in YAML that ask, each with what changes how, and the words that they ask in."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import yaml
from pydantic import (
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    field_validator,
    model_serializer,
    model_validator,
)

from medexam.errors import SpecError
from medexam.questions import Language
from medexam.specs.base import Spec
from medexam.specs.names import PROGRAMS, part_name
from medexam.specs.programs.asides import AsideSpec, check_words
from medexam.specs.programs.base import PositiveInt, ProgramSpec
from medexam.specs.programs.likelihood import LikelihoodSpec
from medexam.specs.programs.needs import AnswerForm, AnswerFormat, ReaderSettings, WordFiles
from medexam.specs.programs.orders import Orders
from medexam.specs.programs.replies import ReplySpec
from medexam.specs.programs.signature_text import QUESTION_FIELDS, SignatureText, read_signature
from medexam.specs.validation import PlacedError

if TYPE_CHECKING:
    AnyProgram = ProgramSpec
    AnyWords = ProgramSpec

PASSAGES = "passages"
"""The field that look-ups write."""
FieldName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]
_TEXT_FILES = (".txt", ".md")
BY = ("predict", "chain_of_thought", "react", "likelihood")
"""Modules of DSPy's and ours that an `ask` may be asked by; any other is a class of the user's own."""


class StepSpec(Spec):
    """Base of the steps; the first field of each names it."""

    model_config = ConfigDict(validate_by_alias=True, validate_by_name=True, serialize_by_alias=True)
    step: ClassVar[str]
    """The field that tells the step from the others."""

    @model_serializer(mode="wrap")
    def _leave_none_out(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write what a step says: most say little of what they may."""
        return {name: value for name, value in write(self).items() if value is not None}

    @property
    def branches(self) -> "Mapping[str, tuple[StepSpec, ...]]":
        """The steps inside this one, by their place in it; empty if it has none."""
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
    rename: Annotated[FieldName | None, Field(alias="as")] = None
    """What the step's one output is called among the fields; None: as the signature says."""
    add: FieldName | None = None
    """A list that the step's one output is added to, which is empty at first; None: the output is a field itself."""
    instructions: str | dict[Language, str] | None = None
    """What the model is told: a text, a file (`./judge.txt` or `.md`), or one of both for each language."""

    @model_validator(mode="after")
    def _one_name(self) -> Self:
        if self.rename is not None and self.add is not None:
            raise ValueError("`as` renames a field, and `add` extends a list: leave one out")
        return self

    @property
    def inner(self) -> Collection[str]:
        """Which of samples and orders what the step asks has itself."""
        return ()

    @property
    def outer_samples(self) -> int | None:
        """Samples that are asked around what the step asks; None if there are none, or it has them itself."""
        return None if "samples" in self.inner else self.samples

    @property
    def outer_orders(self) -> Orders | None:
        """Orders that are asked around what the step asks; None if there are none, or it has them itself."""
        return None if "orders" in self.inner else self.orders

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


class CiteSpec(Spec):
    """Have the reply name the passage that supports its answer, such as `{Answer: 3} [2]`."""

    prompt: str | Path = "retrieval"
    """A named set of words (`retrieval`) or a path to a YAML file with one's own."""
    prompt_language: Language | None = None
    """The language of these words; None: that of the questions."""
    reader: str | Path | None = None
    """A folder or a hub id of a model of natural language inference that scores each citation; None scores none."""
    revision: str | None = None
    """Revision of a hub reader; None takes the newest."""

    @property
    def words(self) -> WordFiles:
        """The file of its words."""
        return WordFiles("groups", self.prompt, ("cite",), language=self.prompt_language)

    @property
    def local_reader(self) -> ReaderSettings | None:
        """The local model that scores citations; None where none does."""
        return None if self.reader is None else ReaderSettings("entailment", self.reader, self.revision)


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
    words: "AnyWords | None" = None
    """Ask in the words of a kind that ships, such as `zero_shot` or `{kind: few_shot, examples: mine.yaml}`, or of what
    is asked beside the question, such as `helps`; None: in DSPy's words."""
    answer_form: AnswerForm | None = None
    """`braces` or `angles`, with `words`; None: that of the words."""
    cite: CiteSpec | None = None
    """Number the passages and have the reply name the one that supports its answer, with `words`; None names none."""

    @model_validator(mode="after")
    def _words_fit(self) -> Self:
        if self.words is None:
            for name in ("answer_form", "cite"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} belongs to words: leave it out")
            return self
        if self.cite is not None and (not isinstance(self.words, ReplySpec) or self.texts != (PASSAGES,)):
            raise ValueError("cite needs words that name an option, and passages: read `question, options, passages`")
        if self.cite is not None and (self.samples or self.orders):
            raise ValueError("cite takes no samples, orders or load: leave them out")
        if self.by != "predict" or self.instructions is not None or self.demos:
            raise ValueError("words have their own instructions and examples: leave by, instructions and demos out")
        check_words(self.words, self.signature)
        _ = self.program
        return self

    @property
    def program(self) -> ProgramSpec:
        """What asks in `words`, with what the step changes of it; samples and most orders are asked around it."""
        assert self.words is not None  # noqa: S101 - the caller has looked
        program = self.changed(self.words, ("max_tokens", "answer_format", "answer_form", *self.inner))
        if isinstance(program, AsideSpec):
            return program.model_copy(update={"output_type": next(iter(self.signature.outputs.values()))})
        return program

    @property
    def inner(self) -> Collection[str]:
        """Orders, where the words are asked in several by themselves."""
        return ("orders",) if isinstance(self.words, LikelihoodSpec) else ()

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
    answer_form: AnswerForm | None = None
    """`braces` or `angles`; None: the program's own."""

    @model_validator(mode="after")
    def _program_takes_them(self) -> Self:
        _ = self.program
        return self

    @property
    def program(self) -> ProgramSpec:
        """The program with what the step changes of it."""
        return self.changed(self.use, ("max_tokens", "answer_format", "answer_form", *self.inner))

    @property
    def inner(self) -> Collection[str]:
        """Which of samples and orders the program has itself."""
        return () if self.use.is_asked_once else {"samples", "orders"} & type(self.use).model_fields.keys()


def read_step_words(step: AskingStep, language: Language) -> dict[str, Any]:
    """Read `instructions`, a text, and `demos`, a list of mappings; what the step does not say is left out.

    Raises `SpecError` if a file cannot be read, or there are no instructions in `language`.
    """
    words: dict[str, Any] = {}
    instructions = step.instructions
    if isinstance(instructions, Mapping):
        if language not in instructions:
            raise SpecError(f"instructions: none in {language!r}: add some beside those in {', '.join(instructions)}")
        instructions = instructions[language]
    if instructions is not None:
        words["instructions"] = _read(instructions).strip() if is_text_file(instructions) else instructions
    if isinstance(step, AskStep) and step.demos:
        demos = yaml.safe_load(_read(step.demos)) if isinstance(step.demos, str) else list(step.demos)
        if not isinstance(demos, list) or not all(isinstance(demo, dict) for demo in demos):
            raise SpecError(f"demos: {step.demos} is not a list of mappings with the signature's fields")
        words["demos"] = demos
    return words


def is_text_file(instructions: str) -> bool:
    """Return whether instructions name a file that holds them."""
    return instructions.endswith(_TEXT_FILES) and len(instructions.split()) == 1


def _read(file: str) -> str:
    try:
        return Path(file).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"cannot read {file}: {error}") from None
