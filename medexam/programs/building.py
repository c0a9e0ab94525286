"""From a program's spec to the live program."""

from typing import assert_never

import dspy

from medexam.programs.asking import ChainOfThought, DirectAnswer
from medexam.programs.base import ExamProgram
from medexam.programs.controls import BlindChoice, LongestChoice, RandomChoice
from medexam.programs.extraction import ExtractExplanation
from medexam.programs.formats import AnswerByFormat
from medexam.programs.likelihood import OptionLikelihood
from medexam.programs.loading import Nearest, load_program
from medexam.programs.passages import OptionRelevance, PassageFinder, WithPassages
from medexam.programs.reading import ContextReader, EntailedChoice, QuestionReader, SpanChoice, SpanExtraction
from medexam.questions import Language
from medexam.signatures import ExamAdapter, load_likelihood_words, load_prompt, load_task_words
from medexam.specs import (
    BlindSpec,
    ByFormatSpec,
    ChainOfThoughtSpec,
    EntailmentSpec,
    ExtractExplanationSpec,
    FewShotSpec,
    LikelihoodSpec,
    LongestSpec,
    ProgramSpec,
    RandomSpec,
    ReadingSpec,
    RelevanceSpec,
    RetrieveThenAnswerSpec,
    SpanReaderSpec,
    ZeroShotSpec,
)


def build_program(
    spec: ProgramSpec,
    language: Language,
    *,
    max_tokens: int | None = None,
    finder: PassageFinder | None = None,
    nearest: Nearest | None = None,
    reader: QuestionReader | None = None,
    context_reader: ContextReader | None = None,
) -> dspy.Module:
    """A DSPy module that answers questions in `language` as `spec` says.

    `max_tokens` is the model's own budget for a reply, used where the program's spec has none; None takes the
    program's default. `finder` tells the passages of a question; only programs that retrieve need one. `nearest`
    makes, of a loaded program's demonstrations, their number and an encoder, what tells those of a question. `reader`
    tells what a local model read in a question's passages; only programs that have one read need it. `context_reader`
    tells what it read in the text that a task brings along, in the place of passages. Raises `SpecError` when a prompt
    file has no words for the program, or what it loads is not such a program.
    """
    match spec:
        case ZeroShotSpec() | FewShotSpec() | ChainOfThoughtSpec() | RetrieveThenAnswerSpec():
            prompt = load_prompt(spec, language)
            adapter = ExamAdapter(spec.answer_format, spec.answer_form)
            asking = ChainOfThought if spec.reasons else DirectAnswer
            program: ExamProgram = asking(prompt, adapter, spec.budget(max_tokens))
            if isinstance(spec, RetrieveThenAnswerSpec):
                program = WithPassages(program, _known(finder))
            return program if spec.load is None else load_program(program, spec, language, nearest)
        case LikelihoodSpec():
            likelihood = OptionLikelihood(spec, load_likelihood_words(spec, language))
            return WithPassages(likelihood, _known(finder)) if spec.retrieves else likelihood
        case ByFormatSpec():
            return AnswerByFormat(spec, load_task_words(spec, language), max_tokens)
        case ExtractExplanationSpec():
            return ExtractExplanation(spec, load_task_words(spec, language), max_tokens)
        case RelevanceSpec():
            return OptionRelevance(_known(finder))
        case SpanReaderSpec() | EntailmentSpec():
            return SpanExtraction(context_reader) if context_reader is not None else _reading_program(spec, reader)
        case RandomSpec():
            return RandomChoice(spec.seed)
        case BlindSpec():
            return BlindChoice(spec.option)
        case LongestSpec():
            return LongestChoice()
        case _:
            assert_never(spec)


def _known(finder: PassageFinder | None) -> PassageFinder:
    if finder is None:
        raise ValueError("a program that retrieves needs a finder of passages")
    return finder


def _reading_program(spec: ReadingSpec, reader: QuestionReader | None) -> dspy.Module:
    if reader is None:
        raise ValueError("a program that has passages read needs a reader of questions")
    return SpanChoice(reader) if isinstance(spec, SpanReaderSpec) else EntailedChoice(reader)
