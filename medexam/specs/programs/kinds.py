"""The kinds of programs that ship: what the `program` part of a spec may be, told apart by `kind`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Union, get_args

from pydantic import Discriminator, Tag

from medexam.plugins import is_own_name
from medexam.specs.programs.base import ProgramSpec
from medexam.specs.programs.controls import BlindSpec, LongestSpec, RandomInOrderSpec, RandomSpec, RelevanceSpec
from medexam.specs.programs.ensembles import EnsembleSpec, MemberSpec
from medexam.specs.programs.flows import FlowSpec
from medexam.specs.programs.imported import ImportedSpec
from medexam.specs.programs.likelihood import LikelihoodSpec
from medexam.specs.programs.own import PROGRAMS, OwnSpec, SignatureSpec
from medexam.specs.programs.readers import EntailmentSpec, SpanReaderSpec
from medexam.specs.programs.repeated import IterativeRetrievalSpec, RetrieveVerifySpec
from medexam.specs.programs.replies import ChainOfThoughtSpec, FewShotSpec, RetrieveThenAnswerSpec, ZeroShotSpec
from medexam.specs.programs.steps import STEPS, UseStep
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
    | RelevanceSpec
    | SpanReaderSpec
    | EntailmentSpec
    | ByFormatSpec
    | ExtractExplanationSpec
    | QuoteSpec
    | ShortAnswerSpec
    | SignatureSpec
    | EnsembleSpec
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
else:
    AnyProgram = Annotated[
        Union[(*(Annotated[spec, Tag(kind)] for kind, spec in KINDS.items()), Annotated[OwnSpec, Tag(OWN)])],
        Discriminator(_tag),
    ]
    """The `program` part of a spec."""

# A member is a program, and an ensemble is one as well.
MemberSpec.model_rebuild(_types_namespace={"AnyProgram": AnyProgram})
EnsembleSpec.model_rebuild()
# So is what a step uses.
UseStep.model_rebuild(_types_namespace={"AnyProgram": AnyProgram})
for step in STEPS.values():
    step.model_rebuild()
FlowSpec.model_rebuild()
