"""Strategies as DSPy modules: floor 3."""

from medexam.programs.base import AskingProgram, Call, ExamProgram
from medexam.programs.building import ProgramContext, build_program
from medexam.programs.loading import demonstrations, loaded_words, save_program
from medexam.programs.module_faults import own_place
from medexam.programs.nearest import WithNearest, find_nearest
from medexam.programs.outcome import build_failure, build_prediction, read_again, read_both
from medexam.programs.own import OwnProgram
from medexam.programs.probabilities import OptionProbabilities
from medexam.programs.program_output import ProgramOutput
from medexam.programs.recording import AsyncRecordingEngine, Draws, RecordingEngine
from medexam.programs.replay import replay
from medexam.programs.retrieval.reading import Entailments, ReadContext, ReadSpan, Supports

__all__ = [
    "AskingProgram",
    "AsyncRecordingEngine",
    "Call",
    "Draws",
    "Entailments",
    "ExamProgram",
    "OptionProbabilities",
    "OwnProgram",
    "ProgramContext",
    "ProgramOutput",
    "ReadContext",
    "ReadSpan",
    "RecordingEngine",
    "Supports",
    "WithNearest",
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
