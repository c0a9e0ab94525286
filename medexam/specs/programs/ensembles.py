"""One answer made of the answers of other runs: the kind `ensemble`, which asks no model itself."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from medexam.questions import Language
from medexam.specs.optimizer import PartSpec
from medexam.specs.programs.base import MemberSpec, ProgramSpec

Combine = Literal["vote", "mean_probability", "stacked"]


class EnsembleSpec(ProgramSpec):
    """Combine the answers of other programs, each of which is a run of its own."""

    by_content: ClassVar[set[str]] = {"members", "train"}
    kind: Literal["ensemble"] = "ensemble"
    members: tuple[MemberSpec, ...]
    """Programs, or a `program` with a `model` of its own each; if votes are equal, the first member's answer counts."""
    combine: Combine = "vote"
    """`vote` takes the commonest answer, `mean_probability` the option with the highest mean probability. `stacked`
    weighs the members' probabilities by a logistic regression that is fitted on `train`."""
    train: Annotated[PartSpec | None, Field(exclude_if=lambda train: train is None)] = None
    """`stacked`: the exams that the weights are fitted on, which must not be asked."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.members) < 2:
            raise ValueError("an ensemble needs two members or more")
        if (self.train is not None) != (self.combine == "stacked"):
            raise ValueError(
                "combine 'stacked' and train go together: name the exams to fit the weights on, such as train: "
                "{split: train}, or leave train out"
            )
        if any(member.program.made_of for member in self.members):
            raise ValueError("one member is an ensemble: list its members instead")
        return self

    @property
    def models(self) -> tuple[str, ...]:
        """The experiment's `models` that its members ask beside their own."""
        return tuple(dict.fromkeys(name for member in self.members for name in member.program.models))

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        return f"{self.kind}{len(self.members)}-{self.combine}"

    def normal(self, language: Language) -> Self:
        """Return the same ensemble of programs for questions in `language`."""
        members = tuple(
            member.model_copy(update={"program": member.program.normal(language)}) for member in self.members
        )
        return self.model_copy(update={"members": members})
