"""From a program's spec to the live program: one builder for each kind."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeVar, cast

import dspy

from medexam.errors import SpecError
from medexam.plugins import load_object, ships
from medexam.programs.asking import AnsweringProgram
from medexam.programs.base import AskingProgram
from medexam.programs.citing import CitingPassages
from medexam.programs.controls import Abstention, Control, blind_choice, longest_choice, random_choice, random_in_order
from medexam.programs.likelihood import OptionLikelihood
from medexam.programs.loading import Nearest, load_program
from medexam.programs.own import OwnProgram, make_module
from medexam.programs.retrieving import PassageFinder, PassageSearch, SupportReader, TextReader, most_relevant
from medexam.programs.steps.asides import AskedAside, BehindField, ReadAside
from medexam.programs.steps.asked_signature import AskedSignature, instruct, make_asking_module
from medexam.programs.steps.course import repeated
from medexam.programs.steps.flow import StepProgram
from medexam.programs.tasks import AnswerByFormat, ExtractExplanation, ShortAnswer
from medexam.programs.wrapping import WithPassages
from medexam.questions import Language, Question
from medexam.signatures.adapter import ExamAdapter
from medexam.signatures.word_files import Words, load_words
from medexam.specs import ProgramSpec
from medexam.specs.dataset import Split
from medexam.specs.names import PROGRAMS
from medexam.specs.programs.asides import AsideSpec
from medexam.specs.programs.asking_steps import AskStep, CiteSpec, UseStep
from medexam.specs.programs.controls import ImportedSpec
from medexam.specs.programs.flows import StepPart, StepsSpec
from medexam.specs.programs.likelihood import LikelihoodSpec
from medexam.specs.programs.own import ModuleSpec, OwnSpec
from medexam.specs.programs.replies import ReplySpec
from medexam.specs.programs.steps import RetrieveStep, walk_steps
from medexam.specs.programs.tasks import TaskSpec

T = TypeVar("T")


@dataclass(frozen=True)
class ProgramContext:
    """What a program may need beside its spec and its language; each takes its own of it."""

    max_tokens: int | None = None
    """The model's own budget for a reply, used where the spec has none; None takes the program's default."""
    finder: PassageFinder | None = None
    """Finds the passages of a question; only programs that retrieve need one."""
    search: PassageSearch | None = None
    """Looks up any text: what the model writes, and what modules of the user's own find with `dspy.Retrieve`."""
    nearest: Nearest | None = None
    """Makes what chooses a question's demonstrations; only loaded programs may need it."""
    reader: TextReader | None = None
    """Has texts read by a local model; only programs that have some read need one."""
    supports: SupportReader | None = None
    """Has a question's passages judged by a local model; only programs that verify by one need it."""
    budgets: Mapping[str, int | None] = field(default_factory=dict)
    """Name of each further model that steps may ask -> its own budget for a reply."""
    in_order: Callable[[Split], Iterable[Question]] | None = None
    """The questions of a split in the file's order; only programs that depend on the order need it."""
    fields: Collection[str] = ()
    """Names of what a module may read beside a question's fields, in a step."""


Builder = Callable[[Any, Language, ProgramContext], dspy.Module]
"""Of a spec of one kind, the language of the questions and a context, the program."""
_NOTHING = ProgramContext()


def build_program(spec: ProgramSpec, language: Language, context: ProgramContext = _NOTHING) -> dspy.Module:
    """Build a DSPy module that answers questions in `language` as `spec` says.

    Raises `SpecError` when a prompt file has no words for the program, or what it loads is not such a program, and
    `ValueError` where `context` lacks what the program needs.
    """
    if isinstance(spec, StepsSpec):
        program = _build_steps(spec, language, context)
    else:
        build: Builder = load_object(spec.builder, PROGRAMS) if spec.builder else _CODE.get(spec.kind, _build_own)
        program = build(spec, language, context)
    if isinstance(program, AskingProgram):
        program.reading = spec.read_as
    return program


def _refuse_imported(spec: ImportedSpec, *_: object) -> dspy.Module:
    raise SpecError(
        f"program.kind imported: its answers come from {spec.file}, so there is no model to ask; `medexam report` "
        "shows the run"
    )


def _build_sole(spec: StepsSpec, part: StepPart, language: Language, context: ProgramContext) -> dspy.Module:
    """Build what answers by itself, behind passages where it is asked behind a look-up."""
    step = part.step
    assert isinstance(step, AskStep)  # noqa: S101 - no other step is sole
    finder = None if spec.look_up is None else _needed(context.finder, "a finder of passages")
    if step.words is None:
        asking = cast("ModuleSpec", part.program)
        module = make_asking_module(step, language, looks_up=False)
        program: AskingProgram = OwnProgram(module, asking, context.max_tokens, finder, context.search, context.fields)
    else:
        program = _build_words(part.program, language, context)
        if step.cite is not None:
            program = _build_citing(program, step.cite, finder, language, context)
        elif finder is not None:
            program = WithPassages(program, finder)
    if spec.loads is not None:
        program = load_program(program, spec, language, context.nearest)
    return repeated(step, program)


def _build_words(spec: ProgramSpec, language: Language, context: ProgramContext) -> AskingProgram:
    """Build what asks for an answer in words that ship, whatever stands before the question."""
    words = load_words(_needed(spec.asking.words, "words"), language)
    if isinstance(spec, LikelihoodSpec):
        return OptionLikelihood(spec, words)
    if isinstance(spec, TaskSpec):
        return _IN_WORDS[spec.kind](spec, words, context.max_tokens)
    reply = cast("ReplySpec", spec)
    adapter = ExamAdapter(reply.answer_format, reply.answer_form, words.turn)
    budget = cast("int", reply.budget(context.max_tokens))
    return AnsweringProgram(words, adapter, budget, reasons=reply.reasons, closes=reply.answer_after_budget)


def _build_citing(
    program: AskingProgram, cite: CiteSpec, finder: PassageFinder | None, language: Language, context: ProgramContext
) -> CitingPassages:
    note = load_words(cite.words, language).parts["cite"]
    reader = None if cite.reader is None else _needed(context.supports, "a reader of passages")
    return CitingPassages(cast("AnsweringProgram", program), finder, note, reader)


_IN_WORDS: Mapping[str, Callable[[TaskSpec, Words, int | None], AskingProgram]] = MappingProxyType(
    {
        "by_format": AnswerByFormat,
        "short_answer": ShortAnswer,
        "extract_explanation": ExtractExplanation,
        "quote": ExtractExplanation,
    }
)


def _build_own(spec: OwnSpec, language: Language, context: ProgramContext) -> dspy.Module:
    module = make_module(spec)
    # Only what ships is built on our base class on purpose; a user's module may hold or be one by the way.
    return module if ships(spec.kind, PROGRAMS) else _build_module(module, spec, language, context)


def _build_module(module: dspy.Module, spec: ModuleSpec, language: Language, context: ProgramContext) -> dspy.Module:
    finder = None if spec.asking.retrieval is None else context.finder
    program = OwnProgram(module, spec, context.max_tokens, finder, context.search, context.fields)
    return program if spec.load is None else load_program(program, spec, language)


def _build_steps(spec: StepsSpec, language: Language, context: ProgramContext) -> dspy.Module:
    if (sole := spec.sole) is not None:
        return _build_sole(spec, sole, language, replace(context, fields=spec.fields_at[sole.place]))
    retrieves = any(isinstance(step, RetrieveStep) and step is not spec.look_up for _, step in walk_steps(spec.steps))
    search = _needed(context.search, "a search of passages") if retrieves else context.search
    programs = {}
    for place, part in spec.parts.items():
        try:
            programs[place] = _build_part(part, language, replace(context, fields=spec.fields_at[place]))
        except SpecError as error:
            raise SpecError(f"program.{place}: {error}") from None
    finder = None if spec.look_up is None else _needed(context.finder, "a finder of passages")
    rules = {name: load_object(name, PROGRAMS) for name in spec.combining_code}
    program = StepProgram(spec, programs, search, rules, finder)
    return program if spec.loads is None else load_program(program, spec, language)


def _build_part(part: StepPart, language: Language, context: ProgramContext) -> dspy.Module:
    """Build what a step asks."""
    step, spec = part.step, part.program
    if step.model is not None:
        context = replace(context, max_tokens=context.budgets.get(step.model))
    if not isinstance(step, AskStep):
        program = build_program(spec, language, context)
        if isinstance(step, UseStep) and step.instructions is not None:
            instruct(program, step, language)
        return program
    if step.words is None:
        module, spec = make_asking_module(step, language, looks_up=context.search is not None), cast("ModuleSpec", spec)
        return AskedSignature(module, spec, context.max_tokens, None, context.search, context.fields)
    if isinstance(spec, AsideSpec):
        if (words := spec.asking.words) is None:
            return ReadAside(spec, step.signature, _needed(context.supports, "a reader of passages"))
        return AskedAside(spec, step.signature, load_words(words, language))
    asking = _build_words(spec, language, context)
    if step.cite is not None:
        return _build_citing(asking, step.cite, None, language, context)
    return BehindField(asking, step.texts[0]) if step.texts else asking


_CODE: Mapping[str, Builder] = MappingProxyType(
    {
        "relevance": lambda _spec, _, context: Control(most_relevant(_needed(context.finder, "a finder of passages"))),
        "random": lambda spec, *_: Control(random_choice(spec.seed)),
        "random_in_order": lambda spec, _, context: Control(
            random_in_order(spec.seed, _needed(context.in_order, "the questions in their order")(spec.split))
        ),
        "blind": lambda spec, *_: Control(blind_choice(spec.option)),
        "longest": lambda *_: Control(longest_choice),
        "abstain": lambda *_: Abstention(),
        "imported": _refuse_imported,
    }
)
"""Kind that is code -> what builds it; every other is steps, or a module of the user's own."""


def _needed(part: T | None, description: str) -> T:
    if part is None:
        raise ValueError(f"this program needs {description}: give build_program a ProgramContext with one")
    return part
