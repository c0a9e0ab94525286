"""What the user asked for, as data: floor 1."""

from medexam.specs.dataset import DatasetSpec
from medexam.specs.experiment import CellSpec, ExperimentSpec
from medexam.specs.loading import library_names, load_document, parse_overrides, parse_yaml
from medexam.specs.matrix import build_cells
from medexam.specs.model import ModelSpec
from medexam.specs.optimizer import OptimizerSpec, PartSpec
from medexam.specs.program import (
    AskingSpec,
    BlindSpec,
    ByFormatSpec,
    ChainOfThoughtSpec,
    ControlSpec,
    EntailmentSpec,
    ExtractExplanationSpec,
    FewShotSpec,
    LikelihoodSpec,
    LongestSpec,
    ProgramSpec,
    RandomSpec,
    ReadingSpec,
    RelevanceSpec,
    ReplySpec,
    RetrieveThenAnswerSpec,
    SpanReaderSpec,
    TaskSpec,
    ZeroShotSpec,
)
from medexam.specs.retriever import RetrieverSpec

__all__ = [
    "AskingSpec",
    "BlindSpec",
    "ByFormatSpec",
    "CellSpec",
    "ChainOfThoughtSpec",
    "ControlSpec",
    "DatasetSpec",
    "EntailmentSpec",
    "ExperimentSpec",
    "ExtractExplanationSpec",
    "FewShotSpec",
    "LikelihoodSpec",
    "LongestSpec",
    "ModelSpec",
    "OptimizerSpec",
    "PartSpec",
    "ProgramSpec",
    "RandomSpec",
    "ReadingSpec",
    "RelevanceSpec",
    "ReplySpec",
    "RetrieveThenAnswerSpec",
    "RetrieverSpec",
    "SpanReaderSpec",
    "TaskSpec",
    "ZeroShotSpec",
    "build_cells",
    "library_names",
    "load_document",
    "parse_overrides",
    "parse_yaml",
]
