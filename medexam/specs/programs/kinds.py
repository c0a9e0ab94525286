"""The kinds of programs that ship: what the `program` part of a spec may be, told apart by `kind`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args

from pydantic import AfterValidator, Discriminator, Tag

from medexam.plugins import is_own_name
from medexam.specs.base import Spec
from medexam.specs.programs.asides import AsideSpec
from medexam.specs.programs.base import ProgramSpec
from medexam.specs.programs.behind_passages import IterativeRetrievalSpec, RetrieveThenAnswerSpec, RetrieveVerifySpec
from medexam.specs.programs.controls import (
    AbstainSpec,
    BlindSpec,
    ImportedSpec,
    LongestSpec,
    RandomInOrderSpec,
    RandomSpec,
    RelevanceSpec,
)
from medexam.specs.programs.flows import FlowSpec
from medexam.specs.programs.likelihood import LikelihoodSpec
from medexam.specs.programs.own import PROGRAMS, OwnSpec, SignatureSpec
from medexam.specs.programs.readers import EntailmentSpec, SpanReaderSpec
from medexam.specs.programs.replies import ChainOfThoughtSpec, FewShotSpec, ZeroShotSpec
from medexam.specs.programs.shipped_flows import as_kind
from medexam.specs.programs.steps import STEPS
from medexam.specs.programs.tasks import ByFormatSpec, ExtractExplanationSpec, QuoteSpec, ShortAnswerSpec
from medexam.specs.validation import OWN

_Shipped = (
    ZeroShotSpec
    | FewShotSpec
    | ChainOfThoughtSpec
    | RetrieveThenAnswerSpec
    | IterativeRetrievalSpec
    | RetrieveVerifySpec
    | LikelihoodSpec
    | RandomSpec
    | RandomInOrderSpec
    | BlindSpec
    | LongestSpec
    | AbstainSpec
    | RelevanceSpec
    | SpanReaderSpec
    | EntailmentSpec
    | ByFormatSpec
    | ExtractExplanationSpec
    | QuoteSpec
    | ShortAnswerSpec
    | SignatureSpec
    | FlowSpec
    | ImportedSpec
)

KINDS: Mapping[str, type[ProgramSpec]] = MappingProxyType(
    {get_args(spec.model_fields["kind"].annotation)[0]: spec for spec in get_args(_Shipped)}
)
"""Kind of program -> its spec."""


def _tag(program: object) -> str | None:
    """Return the kind of a spec, or of the data for one; `OWN` where it names the user's own code."""
    kind = program.get("kind") if isinstance(program, Mapping) else getattr(program, "kind", None)
    return OWN if isinstance(kind, str) and kind not in KINDS and is_own_name(kind, PROGRAMS) else kind


if TYPE_CHECKING:
    AnyProgram = ProgramSpec
    AnyWords = ProgramSpec
else:
    _tagged: list[Any] = [Annotated[spec, Tag(kind)] for kind, spec in KINDS.items()]
    AnyProgram = Annotated[
        Union[(*_tagged, Annotated[OwnSpec, Tag(OWN)])], Discriminator(_tag), AfterValidator(as_kind)
    ]
    """The `program` part of a spec; the steps of a kind that ships count as that kind."""
    AnyWords = Annotated[Union[(*_tagged, Annotated[AsideSpec, Tag("aside")])], Discriminator(_tag)]
    """What a step asks in: the words of a kind, or of what is asked beside the question."""

# What a step uses is a program, and steps stand in steps.
_NAMES = {"AnyProgram": AnyProgram, "AnyWords": AnyWords}
_NESTED: tuple[type[Spec], ...] = (*STEPS.values(), FlowSpec)
for nested in _NESTED:
    nested.model_rebuild(_types_namespace=_NAMES)
