"""From a program's spec to the live program."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import dspy

from medexam.errors import SpecError
from medexam.plugins import load_object, ships
from medexam.programs.asking import AnsweringProgram, CitingPassages
from medexam.programs.base import AskingProgram
from medexam.programs.likelihood import OptionLikelihood
from medexam.programs.loading import Nearest, load_program
from medexam.programs.own import OwnProgram, make_module
from medexam.programs.retrieving import PassageFinder
from medexam.programs.steps import parts
from medexam.programs.steps.flow import StepProgram, repeated
from medexam.programs.tasks import AnswerInWords, ExtractExplanation
from medexam.programs.wrapping import BehindText
from medexam.questions import Language, Question
from medexam.signatures.word_files import load_words
from medexam.specs import ProgramSpec
from medexam.specs.base import PROGRAMS
from medexam.specs.dataset import Split
from medexam.specs.programs.programs import FlowSpec, OwnSpec, StepPart
from medexam.specs.programs.steps import Step, walk_steps
from medexam.specs.programs.words import WordsSpec


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
    """The `Weights` of the local model that reads texts, or what reads with them."""
    budgets: Mapping[str, int | None] = field(default_factory=dict)
    """Name of each further model that steps may ask -> its own budget for a reply."""
    in_order: Callable[[Split], Iterable[Question]] | None = None
    """The questions of a split in the file's order."""
    fields: Collection[str] = ()
    """Names of what a module may read beside a question's fields, in a step."""

    def needed(self, name: str, description: str) -> Any:
        """Return the part of a name; raise `ValueError` if there is none."""
        if (part := getattr(self, name)) is None:
            raise ValueError(f"this program needs {description}: give build_program a ProgramContext with one")
        return part


_NOTHING = ProgramContext()


def build_program(spec: ProgramSpec, language: Language, context: ProgramContext = _NOTHING) -> dspy.Module:
    """Build a DSPy module that answers questions in `language` as `spec` says.

    Raises `SpecError` when a prompt file has no words for the program, or what it loads is not such a program, and
    `ValueError` where `context` lacks what the program needs.
    """
    if spec.flow is not None:
        program = _build_flow(spec.flow, language, context)
    else:
        build: Any = load_object(spec.template["calls"], PROGRAMS) if spec.template else _build_own
        program = build(spec, language, context)
    if isinstance(program, AskingProgram):
        program.reading = spec.read_as
    return program


def _build_flow(flow: FlowSpec, language: Language, context: ProgramContext) -> dspy.Module:
    finder = None if flow.look_up is None else context.needed("finder", "a finder of passages")
    sole, programs = flow.sole, dict[str, dspy.Module]()
    if any(step.retrieve and step is not flow.look_up for _, step in walk_steps(flow.steps)):
        context.needed("search", "a search of passages")
    for place, part in flow.parts.items():
        within = replace(context, fields=part.fields)
        try:
            programs[place] = _build_part(part, language, within, finder if sole else None)
        except SpecError as error:
            raise error if sole else SpecError(f"program.{place}: {error}") from None
    rules = {name: load_object(name, PROGRAMS) for name in flow.combining_code}
    program: Any = programs[sole.place] if sole else StepProgram(flow, programs, context.search, rules, finder)
    if flow.load is not None:
        program = load_program(program, flow, language, context.nearest)
    return repeated(sole.step, program) if sole else program


def _build_part(
    part: StepPart, language: Language, context: ProgramContext, finder: PassageFinder | None
) -> dspy.Module:
    """Build what a step asks; `finder` finds its passages where it stands alone behind a look-up."""
    step, asked = part.step, part.asked
    if step.model is not None:
        context = replace(context, max_tokens=context.budgets.get(step.model))
    if isinstance(asked, WordsSpec):
        return _build_words(step, asked, language, context.max_tokens, finder)
    if step.use is not None:
        return build_program(step.use, language, context)
    module = parts.make_module(step, language, looks_up=context.search is not None)
    spec: Any = asked
    predictor = parts.AskedSignature(module, spec, context.max_tokens, finder, context.search, context.fields)
    if step.nearest is not None:
        predictor.choose_nearest(context.needed("nearest", "a selector of demonstrations"), step.nearest)
    return predictor


def _build_words(
    step: Step, asked: WordsSpec, language: Language, max_tokens: int | None, finder: PassageFinder | None
) -> dspy.Module:
    words = load_words(asked, language)
    program: Any
    if asked.asks == "aside":
        return parts.AskedAside(asked, step.signature, words)
    if asked.asks == "likelihood":
        program = OptionLikelihood(asked, words)
    elif asked.asks == "reply":
        program = AnsweringProgram(asked, words, asked.budget(max_tokens))
    else:
        task = AnswerInWords if asked.kind in ("by_format", "short_answer") else ExtractExplanation
        program = task(asked, words, asked.budget(max_tokens))
    if step.cite is not None:
        return CitingPassages(program, finder, load_words(step.cite, language).parts["cite"])
    return BehindText(program, finder, *step.texts[:1]) if finder or step.texts else program


def _build_own(spec: OwnSpec, language: Language, context: ProgramContext) -> dspy.Module:
    module = make_module(spec)
    if ships(spec.kind, PROGRAMS):
        # Only what ships is built on our base class on purpose; a user's module may hold or be one by the way.
        return module
    finder = None if spec.asking.retrieval is None else context.finder
    program = OwnProgram(module, spec, context.max_tokens, finder, context.search, context.fields)
    return program if spec.load is None else load_program(program, spec, language)
