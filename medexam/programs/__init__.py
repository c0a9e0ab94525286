"""Strategies as DSPy modules: floor 3."""

from medexam.programs.asking import ChainOfThought, DirectAnswer
from medexam.programs.base import AskingProgram, Call, ExamProgram, Steps
from medexam.programs.building import ProgramContext, build_program
from medexam.programs.controls import BlindChoice, Control, LongestChoice, RandomChoice
from medexam.programs.extraction import ExtractExplanation
from medexam.programs.formats import AnswerByFormat
from medexam.programs.likelihood import OptionLikelihood, OptionScores
from medexam.programs.loading import demonstrations, loaded_words, save_program
from medexam.programs.nearest import DemonstrationFinder, WithNearest
from medexam.programs.outcome import build_failure, build_prediction, read_again
from medexam.programs.passages import OptionRelevance, PassageFinder, WithPassages
from medexam.programs.reading import (
    ContextReader,
    EntailedChoice,
    Entailments,
    QuestionReader,
    ReadContext,
    ReadSpan,
    SpanChoice,
    SpanExtraction,
)

__all__ = [
    "AnswerByFormat",
    "AskingProgram",
    "BlindChoice",
    "Call",
    "ChainOfThought",
    "ContextReader",
    "Control",
    "DemonstrationFinder",
    "DirectAnswer",
    "EntailedChoice",
    "Entailments",
    "ExamProgram",
    "ExtractExplanation",
    "LongestChoice",
    "OptionLikelihood",
    "OptionRelevance",
    "OptionScores",
    "PassageFinder",
    "ProgramContext",
    "QuestionReader",
    "RandomChoice",
    "ReadContext",
    "ReadSpan",
    "SpanChoice",
    "SpanExtraction",
    "Steps",
    "WithNearest",
    "WithPassages",
    "build_failure",
    "build_prediction",
    "build_program",
    "demonstrations",
    "loaded_words",
    "read_again",
    "save_program",
]
