"""Programs without a model: chance, the blind choice, the longest option, the IR solver, and imported answers.

The controls are those of Vilares and Gómez-Rodríguez (2019).
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from medexam.specs.dataset import Split
from medexam.specs.programs.base import ProgramSpec, RetrievingSpec
from medexam.specs.programs.needs import Asking


class RandomSpec(ProgramSpec):
    """Choose an option at random: the chance baseline."""

    kind: Literal["random"] = "random"
    seed: int = 17


class RandomInOrderSpec(ProgramSpec):
    """Choose at random by one stream of numbers over a split, in the file's order (the first paper's RANDOM).

    Vilares and Gómez-Rodríguez 2019: with the default seed it gives the options that the paper's control chose.
    """

    kind: Literal["random_in_order"] = "random_in_order"
    seed: int = 17
    split: Split = "all"
    """The questions that the stream runs over; a question outside the split stays unanswered."""


class BlindSpec(ProgramSpec):
    """Always choose the same option, without reading."""

    kind: Literal["blind"] = "blind"
    option: Annotated[int, Field(ge=1)] = 1
    """The printed number of the option; a question that has no such option stays unanswered."""


class LongestSpec(ProgramSpec):
    """Choose the first of the longest options (the control Length)."""

    kind: Literal["longest"] = "longest"


class AbstainSpec(ProgramSpec):
    """Leave every question blank; in a step, an answer that was given before is withdrawn."""

    kind: Literal["abstain"] = "abstain"


class RelevanceSpec(RetrievingSpec):
    """Take the option whose best passage is the most relevant, without a model (the IR solver)."""

    kind: Literal["relevance"] = "relevance"

    query: Literal["per_option"] = "per_option"


class ImportedSpec(ProgramSpec):
    """Answers that were read from a file; a run of it is complete, and cannot be asked again."""

    by_content: ClassVar[set[str]] = ProgramSpec.by_content | {"file"}
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
        return Asking(answers_anything=True)

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        return f"{self.harness}-{self.task}-{self.measure}"
