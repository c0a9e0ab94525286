"""Strategies as DSPy modules: floor 3."""

from medexam.predictions.evidence.option_scores import OptionScores
from medexam.programs.asking import ChainOfThought, DirectAnswer
from medexam.programs.base import AskingProgram, Call, ExamProgram, Steps
from medexam.programs.building import ProgramContext, build_program
from medexam.programs.controls import BlindChoice, Control, LongestChoice, RandomChoice
from medexam.programs.extraction import ExtractExplanation
from medexam.programs.formats import AnswerByFormat
from medexam.programs.likelihood import OptionLikelihood
from medexam.programs.loading import demonstrations, loaded_words, save_program
from medexam.programs.module_faults import own_place
from medexam.programs.nearest import DemonstrationFinder, WithNearest, find_nearest
from medexam.programs.outcome import build_failure, build_prediction, read_again, read_both
from medexam.programs.own import OwnProgram
from medexam.programs.probabilities import OptionProbabilities
from medexam.programs.program_output import ProgramOutput
from medexam.programs.recording import AsyncRecordingEngine, Draws, RecordingEngine
from medexam.programs.replay import replay
from medexam.programs.retrieval.passages import OptionRelevance, PassageFinder, WithPassages
from medexam.programs.retrieval.reading import (
    ContextReader,
    EntailedChoice,
    Entailments,
    QuestionReader,
    ReadContext,
    ReadSpan,
    SpanChoice,
    SpanExtraction,
    Supports,
)

__all__ = [
    "AnswerByFormat",
    "AskingProgram",
    "AsyncRecordingEngine",
    "BlindChoice",
    "Call",
    "ChainOfThought",
    "ContextReader",
    "Control",
    "DemonstrationFinder",
    "DirectAnswer",
    "Draws",
    "EntailedChoice",
    "Entailments",
    "ExamProgram",
    "ExtractExplanation",
    "LongestChoice",
    "OptionLikelihood",
    "OptionProbabilities",
    "OptionRelevance",
    "OptionScores",
    "OwnProgram",
    "PassageFinder",
    "ProgramContext",
    "ProgramOutput",
    "QuestionReader",
    "RandomChoice",
    "ReadContext",
    "ReadSpan",
    "RecordingEngine",
    "SpanChoice",
    "SpanExtraction",
    "Steps",
    "Supports",
    "WithNearest",
    "WithPassages",
    "build_failure",
    "build_prediction",
    "build_program",
    "demonstrations",
    "find_nearest",
    "loaded_words",
    "own_place",
    "read_again",
    "read_both",
    "replay",
    "save_program",
]
