"""What the user asked for, as data: floor 1."""

from medexam.specs.dataset import DatasetSpec
from medexam.specs.experiment import CellSpec, ExperimentSpec
from medexam.specs.loading import SpecSource, library_names, load_document, parse_overrides
from medexam.specs.matrix import build_cells, merge
from medexam.specs.model import ModelSpec
from medexam.specs.optimizer import OptimizerSpec, PartSpec
from medexam.specs.programs.base import ProgramSpec
from medexam.specs.programs.behind_passages import (
    IterativeRetrievalSpec,
    RetrieveThenAnswerSpec,
    RetrieveVerifySpec,
    SideWordsSpec,
)
from medexam.specs.programs.controls import BlindSpec, LongestSpec, RandomInOrderSpec, RandomSpec, RelevanceSpec
from medexam.specs.programs.likelihood import LikelihoodSpec
from medexam.specs.programs.needs import (
    NO_NEEDS,
    EngineNeeds,
    ReaderSettings,
    RetrievalSettings,
    WordFiles,
)
from medexam.specs.programs.readers import EntailmentSpec, ReadingSpec, SpanReaderSpec
from medexam.specs.programs.replies import ChainOfThoughtSpec, FewShotSpec, ReplySpec, ZeroShotSpec
from medexam.specs.programs.tasks import ByFormatSpec, ExtractExplanationSpec, QuoteSpec, ShortAnswerSpec, TaskSpec
from medexam.specs.retriever import RetrieverSpec
from medexam.specs.strict_yaml import parse_yaml

__all__ = [
    "NO_NEEDS",
    "BlindSpec",
    "ByFormatSpec",
    "CellSpec",
    "ChainOfThoughtSpec",
    "DatasetSpec",
    "EngineNeeds",
    "EntailmentSpec",
    "ExperimentSpec",
    "ExtractExplanationSpec",
    "FewShotSpec",
    "IterativeRetrievalSpec",
    "LikelihoodSpec",
    "LongestSpec",
    "ModelSpec",
    "OptimizerSpec",
    "PartSpec",
    "ProgramSpec",
    "QuoteSpec",
    "RandomInOrderSpec",
    "RandomSpec",
    "ReaderSettings",
    "ReadingSpec",
    "RelevanceSpec",
    "ReplySpec",
    "RetrievalSettings",
    "RetrieveThenAnswerSpec",
    "RetrieveVerifySpec",
    "RetrieverSpec",
    "ShortAnswerSpec",
    "SideWordsSpec",
    "SpanReaderSpec",
    "SpecSource",
    "TaskSpec",
    "WordFiles",
    "ZeroShotSpec",
    "build_cells",
    "library_names",
    "load_document",
    "merge",
    "parse_overrides",
    "parse_yaml",
]
