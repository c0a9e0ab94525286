"""Programs without a model: chance, the blind choice, the longest option, the IR solver, and imported answers.

The controls are those of Vilares and Gómez-Rodríguez (2019).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from pydantic import Field, create_model

from medexam.specs.dataset import Split
from medexam.specs.programs.base import PositiveInt, ProgramSpec, RetrievingSpec
from medexam.specs.programs.needs import Asking


class RelevanceSpec(RetrievingSpec):
    """Take the option whose best passage is the most relevant, without a model (the IR solver)."""

    kind: Literal["relevance"] = "relevance"
    query: Literal["per_option"] = "per_option"


class ImportedSpec(ProgramSpec):
    """Answers that were read from a file; a run of it is complete, and cannot be asked again."""

    kind: Literal["imported"] = "imported"
    harness: str
    """What wrote the file, in a word of the importer that read it, such as `lm_eval`."""
    task: str
    """The harness's own name of what it asked, such as `medqa_4options`."""
    measure: str
    """Which of the harness's measures chose the answers, such as `acc_norm`; with the filter or the epoch, if any."""
    answered_by: str | None = None
    """The model as the harness named it; None if the file does not say."""
    sha256: str
    """Of the file, in hexadecimal."""
    file: str
    """The name of the file."""

    @property
    def asking(self) -> Asking:
        """What it answers: anything."""
        return Asking(forms=None)

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        return f"{self.harness}-{self.task}-{self.measure}"


_SEED = (int, 17)
_OPTION = (PositiveInt, Field(1, description="The printed number; a question without it stays unanswered."))
_SPLIT = (Split, Field("all", description="What the stream runs over; a question outside stays unanswered."))
_CONTROLS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "random": ("Choose an option at random: the chance baseline.", {"seed": _SEED}),
    "random_in_order": (
        "Choose at random by one stream of numbers over a split, in the file's order (the first paper's RANDOM).",
        {"seed": _SEED, "split": _SPLIT},
    ),
    "blind": ("Always choose the same option, without reading.", {"option": _OPTION}),
    "longest": ("Choose the first of the longest options (the control Length).", {}),
    "abstain": ("Leave every question blank; in a step, an answer that was given before is withdrawn.", {}),
}
"""Control -> what it is, and its fields."""


def _make(kind: str, words: str, fields: Mapping[str, Any]) -> type[ProgramSpec]:
    make: Any = create_model  # type checkers know no class that is made of a table
    title = "".join(map(str.capitalize, kind.split("_")))
    spec: type[ProgramSpec] = make(
        f"{title}Spec", __base__=ProgramSpec, __module__=__name__, __doc__=words, kind=(Literal[kind], kind), **fields
    )
    return spec


CONTROLS: Mapping[str, type[ProgramSpec]] = MappingProxyType(
    {**{kind: _make(kind, *parts) for kind, parts in _CONTROLS.items()}, "relevance": RelevanceSpec}
)
"""Kind of control -> its spec."""
