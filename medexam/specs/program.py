"""Which strategy: the `program` part of a spec, a union told apart by `kind`."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from medexam.specs.base import Spec

AnswerFormat = Literal["free", "guided"]
AnswerForm = Literal["braces", "angles"]
PositiveInt = Annotated[int, Field(ge=1)]


class _Asking(Spec):
    """What every program that asks a model shares."""

    answer_format: AnswerFormat = "free"
    """`free` asks for the format and parses the reply, as the paper did; `guided` leaves the model nothing but a
    legal option, so no question stays unanswered."""
    answer_form: AnswerForm = "braces"
    """`braces` asks for `{Answer: n}`, the paper's form; `angles` for `<Answer: n>`."""
    prompt: str | Path = "paper"
    """A named set of words (`paper`) or a path to a YAML file with one's own."""
    max_tokens: PositiveInt | None = None
    """Tokens a reply may have; None: the model's `max_tokens`, else 64 for a direct answer and 512 for reasoning."""

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        kind: str = getattr(self, "kind")  # noqa: B009 - declared by each member of the union
        words = [kind]
        if self.answer_format == "guided":
            words.append("guided")
        if self.answer_form != "braces":
            words.append(self.answer_form)
        if str(self.prompt) != "paper":
            words.append(Path(self.prompt).stem)
        return "-".join(words)


class ZeroShotSpec(_Asking):
    """Ask directly (the paper's figure 6)."""

    kind: Literal["zero_shot"]


class FewShotSpec(_Asking):
    """Show solved examples first (the paper's figure 7)."""

    kind: Literal["few_shot"]
    examples: str | Path = "paper"
    """A named set of examples (`paper`) or a path to a YAML file with one's own."""


class ChainOfThoughtSpec(_Asking):
    """Reason briefly, then answer (the paper's figure 8)."""

    kind: Literal["chain_of_thought"]


class RandomSpec(Spec):
    """Choose an option at random: the chance level made flesh."""

    kind: Literal["random"]
    seed: int = 17

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        return "random"


class BlindSpec(Spec):
    """Always choose the same option, without reading."""

    kind: Literal["blind"]
    option: Annotated[int, Field(ge=1)] = 1
    """The printed number of the option; a question that has no such option stays unanswered."""

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        return f"blind-{self.option}"


class LongestSpec(Spec):
    """Choose the first of the longest options (HEAD-QA v1's Length control)."""

    kind: Literal["longest"]

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        return "longest"


AskingSpec = ZeroShotSpec | FewShotSpec | ChainOfThoughtSpec
"""Programs that ask a model."""

ControlSpec = RandomSpec | BlindSpec | LongestSpec
"""Programs that ask no model."""

ProgramSpec = Annotated[
    ZeroShotSpec | FewShotSpec | ChainOfThoughtSpec | RandomSpec | BlindSpec | LongestSpec,
    Field(discriminator="kind"),
]
