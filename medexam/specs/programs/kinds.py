"""The kinds of programs: what the `program` part of a spec may be, told apart by `kind`.

A strategy is a file: one of `specs/kinds`, one that a spec names (`./mine.yaml`), or one whose path an installed
package names in the entry point group `medexam.kinds`. A kind that is code is a `ProgramSpec` that an entry point of
the group `medexam.programs` names; its `builder` makes the program.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args

from pydantic import ConfigDict, Discriminator, PlainValidator, Tag, ValidationInfo, WithJsonSchema

from medexam.errors import SpecError
from medexam.plugins import added_names, is_own_name, load_object
from medexam.specs.base import Spec
from medexam.specs.dataset import STORED
from medexam.specs.names import KIND_FILES, PROGRAMS
from medexam.specs.programs.asides import AsideSpec
from medexam.specs.programs.base import ProgramSpec
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
from medexam.specs.programs.kind_files import FILES, KindSpec, is_kind_file, read_kind
from medexam.specs.programs.likelihood import LikelihoodSpec
from medexam.specs.programs.own import OwnSpec
from medexam.specs.programs.replies import ReplySpec
from medexam.specs.programs.steps import STEPS
from medexam.specs.programs.tasks import TaskSpec
from medexam.specs.validation import ADDED, OWN, Added, PlacedError, unknown_kind

_Code = FlowSpec | RandomSpec | RandomInOrderSpec | BlindSpec | LongestSpec | AbstainSpec | RelevanceSpec | ImportedSpec
_WORDS = (ReplySpec, LikelihoodSpec, TaskSpec, AsideSpec)


def _kinds_of(spec: type[ProgramSpec]) -> tuple[str, ...]:
    kinds: tuple[str, ...] = get_args(spec.model_fields["kind"].annotation)
    return kinds


KINDS: Mapping[str, type[ProgramSpec]] = MappingProxyType(
    {
        **{path.stem: read_kind(path) for path in FILES},
        **{_kinds_of(spec)[0]: spec for spec in get_args(_Code)},
    }
)
"""Kind of program of this package -> its spec."""


def _load_added(kind: str) -> type[ProgramSpec] | None:
    """Load the spec of a kind that an installed package adds, or that a file is; None if that is none.

    Raises `SpecError`.
    """
    if is_kind_file(kind):
        return read_kind(Path(kind).expanduser().absolute())
    if kind in added_names(KIND_FILES):
        return read_kind(load_object(kind, KIND_FILES), kind)
    part = load_object(kind, PROGRAMS) if kind in added_names(PROGRAMS) else None
    return part if isinstance(part, type) and issubclass(part, ProgramSpec) else None


class _AllKinds(Mapping[str, type[ProgramSpec]]):
    """The kinds of this package, then those of installed ones, each loaded when it is first looked up.

    To look up one that cannot be imported raises `SpecError` with the reason; a list leaves it out.
    """

    def __getitem__(self, kind: str) -> type[ProgramSpec]:
        spec = KINDS.get(kind) or _load_added(kind)
        if spec is None:
            raise KeyError(kind)
        return spec

    def __iter__(self) -> Iterator[str]:
        yield from KINDS
        for kind in (*added_names(PROGRAMS), *added_names(KIND_FILES)):
            with suppress(SpecError):
                if kind not in KINDS and _load_added(kind) is not None:
                    yield kind

    def __len__(self) -> int:
        return sum(1 for _ in self)


ALL_KINDS: Mapping[str, type[ProgramSpec]] = _AllKinds()
"""Kind of program, of this package and of installed ones -> its spec."""


def _tag(program: object) -> str | None:
    """Return the kind of a spec, or of the data for one; `ADDED` or `OWN` where it is none of this package."""
    kind = program.get("kind") if isinstance(program, Mapping) else getattr(program, "kind", None)
    if not isinstance(kind, str) or kind in KINDS:
        return kind
    return OWN if is_own_name(kind, PROGRAMS) and not is_kind_file(kind) and kind not in ALL_KINDS else ADDED


class GoneSpec(ProgramSpec):
    """A program of a stored run whose package is not installed."""

    model_config = ConfigDict(extra="allow")
    kind: str


def _validate_added(program: Any, info: ValidationInfo) -> ProgramSpec:
    if isinstance(program, ProgramSpec):
        return program
    fallback: type[ProgramSpec] | None = GoneSpec if info.context == STORED else None
    spec = ALL_KINDS.get(program["kind"], fallback)
    if spec is None:
        raise PlacedError("kind", unknown_kind(program["kind"], [*ALL_KINDS, OWN]))
    (kind,) = _kinds_of(spec) if issubclass(spec, KindSpec) else (program["kind"],)
    return spec.model_validate({**program, "kind": kind})


if TYPE_CHECKING:
    AnyProgram = ProgramSpec
    AnyWords = ProgramSpec
else:
    _package_kind = Annotated[
        Any,
        PlainValidator(_validate_added),
        WithJsonSchema(
            {
                "type": "object",
                "description": "A kind that an installed package adds.",
                "properties": {"kind": {"type": "string", "not": {"enum": sorted(KINDS)}, "pattern": r"^[^:.]+$"}},
                "required": ["kind"],
            }
        ),
        Added(lambda: [spec for kind, spec in ALL_KINDS.items() if kind not in KINDS]),
        Tag(ADDED),
    ]
    _tagged: list[Any] = [*(Annotated[spec, Tag(kind)] for kind, spec in KINDS.items()), _package_kind]
    AnyProgram = Annotated[Union[(*_tagged, Annotated[OwnSpec, Tag(OWN)])], Discriminator(_tag)]
    """The `program` part of a spec."""
    AnyWords = Annotated[Union[(*_WORDS,)], Discriminator("kind")]
    """What a step asks in: the words of a kind that ships, or of what is asked beside the question."""

# What a step uses is a program, and steps stand in steps.
_NAMES = {"AnyProgram": AnyProgram, "AnyWords": AnyWords}
_NESTED: tuple[type[Spec], ...] = (*STEPS.values(), FlowSpec)
for nested in _NESTED:
    nested.model_rebuild(_types_namespace=_NAMES)
