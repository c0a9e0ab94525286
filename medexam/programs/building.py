"""From a program's spec to the live program."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeVar

import dspy

from medexam.errors import SpecError
from medexam.plugins import load_object, ships
from medexam.programs.asking import AnsweringProgram, CitingPassages
from medexam.programs.base import AskingProgram
from medexam.programs.controls import Control, blind_choice, longest_choice, random_choice, random_in_order
from medexam.programs.likelihood import OptionLikelihood
from medexam.programs.loading import Nearest, load_program
from medexam.programs.own import OwnProgram, make_module
from medexam.programs.retrieving import PassageFinder, most_relevant
from medexam.programs.steps import parts
from medexam.programs.steps.flow import StepProgram, repeated
from medexam.programs.tasks import AnswerByFormat, ExtractExplanation, ShortAnswer
from medexam.programs.wrapping import BehindText
from medexam.questions import Language, Question
from medexam.signatures.word_files import load_words
from medexam.specs import ProgramSpec
from medexam.specs.base import PROGRAMS
from medexam.specs.dataset import Split
from medexam.specs.programs.flows import FlowSpec, StepPart
from medexam.specs.programs.own import OwnSpec
from medexam.specs.programs.steps import AskStep, RetrieveStep, walk_steps
from medexam.specs.programs.words import AsideSpec, LikelihoodSpec, TaskSpec

T = TypeVar("T")


@dataclass(frozen=True)
class ProgramContext:
    """What a program may need beside its spec and its language; each takes its own of it."""

    max_tokens: int | None = None
    """The model's own budget for a reply, used where the spec has none; None takes the program's default."""
    finder: PassageFinder | None = None
    """Finds the passages of a question."""
    search: Any = None
    """Looks up any text: what the model writes, and what modules of the user's own find with `dspy.Retrieve`."""
    nearest: Nearest | None = None
    """Makes what chooses a question's demonstrations."""
    reader: Any = None
    """Has texts read by a local model."""
    budgets: Mapping[str, int | None] = field(default_factory=dict)
    """Name of each further model that steps may ask -> its own budget for a reply."""
    in_order: Callable[[Split], Iterable[Question]] | None = None
    """The questions of a split in the file's order."""
    fields: Collection[str] = ()
    """Names of what a module may read beside a question's fields, in a step."""


_NOTHING = ProgramContext()


def build_program(spec: ProgramSpec, language: Language, context: ProgramContext = _NOTHING) -> dspy.Module:
    """Build a DSPy module that answers questions in `language` as `spec` says.

    Raises `SpecError` when a prompt file has no words for the program, or what it loads is not such a program, and
    `ValueError` where `context` lacks what the program needs.
    """
    if spec.flow is not None:
        program = _build_flow(spec.flow, language, context)
    elif spec.kind in _CONTROLS:
        program = Control(_CONTROLS[spec.kind](spec, context))
    else:
        build: Any = load_object(spec.builder, PROGRAMS) if spec.builder else _build_own
        program = build(spec, language, context)
    if isinstance(program, AskingProgram):
        program.reading = spec.read_as
    return program


def _build_flow(flow: FlowSpec, language: Language, context: ProgramContext) -> dspy.Module:
    finder = None if flow.look_up is None else _needed(context.finder, "a finder of passages")
    sole, programs = flow.sole, dict[str, dspy.Module]()
    if any(isinstance(step, RetrieveStep) and step is not flow.look_up for _, step in walk_steps(flow.steps)):
        _needed(context.search, "a search of passages")
    for place, part in flow.parts.items():
        within = replace(context, fields=flow.fields_at[place])
        try:
            programs[place] = _build_part(part, language, within, finder if sole else None, looks_up=sole is None)
        except SpecError as error:
            raise error if sole else SpecError(f"program.{place}: {error}") from None
    rules = {name: load_object(name, PROGRAMS) for name in flow.combining_code}
    program: Any = programs[sole.place] if sole else StepProgram(flow, programs, context.search, rules, finder)
    if flow.load is not None:
        program = load_program(program, flow, language, context.nearest)
    return repeated(sole.step, program) if sole else program


def _build_part(
    part: StepPart, language: Language, context: ProgramContext, finder: PassageFinder | None, *, looks_up: bool
) -> dspy.Module:
    """Build what a step asks; `finder` finds its passages where it stands alone behind a look-up."""
    step, spec = part.step, part.program
    if step.model is not None:
        context = replace(context, max_tokens=context.budgets.get(step.model))
    if not isinstance(step, AskStep):
        return build_program(spec, language, context)
    if step.words is None:
        module = parts.make_module(step, language, looks_up=looks_up and context.search is not None)
        asked: Any = spec
        predictor = parts.AskedSignature(module, asked, context.max_tokens, finder, context.search, context.fields)
        if step.nearest is not None:
            predictor.choose_nearest(_needed(context.nearest, "a selector of demonstrations"), step.nearest)
        return predictor
    words = load_words(_needed(spec.asking.words, "words"), language)
    if isinstance(spec, AsideSpec):
        return parts.AskedAside(spec, step.signature, words)
    program = _build_words(spec, words, context.max_tokens)
    if step.cite is not None:
        note = load_words(step.cite.files, language).parts["cite"]
        return CitingPassages(program, finder, note)
    return BehindText(program, finder, *step.texts[:1]) if finder or step.texts else program


def _build_words(spec: Any, words: Any, max_tokens: int | None) -> Any:
    """Build what asks for an answer in words that ship, whatever stands before the question."""
    if isinstance(spec, LikelihoodSpec):
        return OptionLikelihood(spec, words)
    if isinstance(spec, TaskSpec):
        task_program = {"by_format": AnswerByFormat, "short_answer": ShortAnswer}.get(spec.kind, ExtractExplanation)
        return task_program(spec, words, max_tokens)
    return AnsweringProgram(spec, words, spec.budget(max_tokens))


def _build_own(spec: OwnSpec, language: Language, context: ProgramContext) -> dspy.Module:
    module = make_module(spec)
    if ships(spec.kind, PROGRAMS):
        # Only what ships is built on our base class on purpose; a user's module may hold or be one by the way.
        return module
    finder = None if spec.asking.retrieval is None else context.finder
    program = OwnProgram(module, spec, context.max_tokens, finder, context.search, context.fields)
    return program if spec.load is None else load_program(program, spec, language)


def _refuse_imported(spec: Any, _: object) -> Any:
    raise SpecError(
        f"program.kind imported: its answers come from {spec.file}, so there is no model to ask; `medexam report` "
        "shows the run"
    )


_CONTROLS: Mapping[str, Callable[[Any, ProgramContext], Any]] = MappingProxyType(
    {
        "relevance": lambda _, context: most_relevant(_needed(context.finder, "a finder of passages")),
        "random": lambda spec, _: random_choice(spec.seed),
        "random_in_order": lambda spec, context: random_in_order(
            spec.seed, _needed(context.in_order, "the questions in their order")(spec.split)
        ),
        "blind": lambda spec, _: blind_choice(spec.option),
        "longest": lambda *_: longest_choice,
        "abstain": lambda *_: lambda _: None,
        "imported": _refuse_imported,
    }
)
"""Kind of control -> what makes its choice."""


def _needed(part: T | None, description: str) -> T:
    if part is None:
        raise ValueError(f"this program needs {description}: give build_program a ProgramContext with one")
    return part
