"""The kinds of programs that ship: what the `program` part of a spec may be, told apart by `kind`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, get_args

from pydantic import Field

from medexam.specs.programs.base import ProgramSpec
from medexam.specs.programs.controls import BlindSpec, LongestSpec, RandomSpec, RelevanceSpec
from medexam.specs.programs.likelihood import LikelihoodSpec
from medexam.specs.programs.readers import EntailmentSpec, SpanReaderSpec
from medexam.specs.programs.replies import ChainOfThoughtSpec, FewShotSpec, RetrieveThenAnswerSpec, ZeroShotSpec
from medexam.specs.programs.tasks import ByFormatSpec, ExtractExplanationSpec

ShippedProgram = Annotated[
    ZeroShotSpec
    | FewShotSpec
    | ChainOfThoughtSpec
    | RetrieveThenAnswerSpec
    | LikelihoodSpec
    | RandomSpec
    | BlindSpec
    | LongestSpec
    | RelevanceSpec
    | SpanReaderSpec
    | EntailmentSpec
    | ByFormatSpec
    | ExtractExplanationSpec,
    Field(discriminator="kind"),
]

KINDS: Mapping[str, type[ProgramSpec]] = MappingProxyType(
    {get_args(spec.model_fields["kind"].annotation)[0]: spec for spec in get_args(get_args(ShippedProgram)[0])}
)
"""Kind of program -> its spec."""
