"""Programs that have a model write a reply with the number of an option (the paper's sections 3.2.1 and 3.2.2)."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, model_validator

from medexam.model_calls import Reading
from medexam.specs.optimizer import Metric, OptimizerKind
from medexam.specs.programs.base import PositiveInt, WordsSpec
from medexam.specs.programs.needs import (
    AnswerForm,
    AnswerFormat,
    EngineNeeds,
    WordFiles,
)
from medexam.specs.programs.orders import Orders, orders_label

DIRECT_TOKENS = 64
"""Default budget of a direct answer: `{Answer: n}` takes 7 tokens, and some models greet first."""
REASONING_TOKENS = 512
"""Default budget of a reply that reasons."""
PICTURE_SIDE = 1024
"""Default longest side of a picture, in pixels."""


class ReplySpec(WordsSpec):
    """Base of the programs whose replies hold the number of an option; they can be optimized."""

    asks_model: ClassVar[bool] = True
    asks_in_words: ClassVar[bool] = True
    optimizers: ClassVar[tuple[OptimizerKind, ...]] = get_args(OptimizerKind)
    optimized_for: ClassVar[tuple[Metric, ...]] = get_args(Metric)
    answer_format: AnswerFormat = "free"
    """`free` asks for the format and parses the reply, as the paper did; `guided` leaves the model nothing but a
    legal option, so no question stays unanswered."""
    answer_form: AnswerForm = "braces"
    """`braces` asks for `{Answer: n}`, the paper's form; `angles` for `<Answer: n>`."""
    reading: Reading = "strict"
    """How replies are scored: `strict` by the format alone, as the paper did; `lenient` as a careful marker would where
    the format is missing. Both are always reported, and no answer depends on it."""
    prompt: str | Path = "paper"
    """A named set of words (`paper`) or a path to a YAML file with one's own."""
    samples: Annotated[int, Field(ge=1, le=1000)] = 1
    """Replies to each question, of which the commonest legal answer is taken (self-consistency); more than one needs a
    `model.temperature`."""
    orders: Orders = "given"
    """Ask once for each of several orders of the options and take the commonest answer: `cyclic` shows every rotation,
    `reversed` the exam's order and its reverse, `{random: 4}` four orders that are drawn for each question."""
    max_tokens: PositiveInt | None = None
    """Tokens a reply may have; None: the model's `max_tokens`, else 64 for a direct answer and 512 for reasoning."""
    answer_after_budget: bool = False
    """If a free reply is cut off in its thinking, close the thinking and choose among the options in one further
    call."""
    images: Literal["hidden", "shown", "only"] = "hidden"
    """`hidden` asks in words alone; `shown` sends the question's picture with them, to a model that sees; `only` is
    `shown` with `dataset.images: with`: it asks only the questions that have a picture."""
    image_side: PositiveInt = PICTURE_SIDE
    """Pixels of a shown picture's longest side; a larger picture is scaled down to it."""
    load: Path | None = None
    """A folder that `medexam optimize` made, or a `program.json`: instructions and demonstrations instead of the
    prompt's; None asks in the prompt's words."""

    @model_validator(mode="after")
    def _pictures_fit(self) -> Self:
        if self.image_side != PICTURE_SIDE and self.images == "hidden":
            raise ValueError("image_side belongs to images: shown, not to hidden: leave it out")
        if self.answer_after_budget and self.images != "hidden":
            raise ValueError("answer_after_budget continues a reply, which is impossible after a picture: leave it out")
        if self.answer_after_budget and self.answer_format == "guided":
            raise ValueError("answer_after_budget closes free replies, and guided ones end in a choice: leave it out")
        return self

    @property
    def engine_needs(self) -> EngineNeeds:
        """What its requests hold: dialogues, a choice where the answer is guided, and pictures where they are shown."""
        chooses = self.answer_format == "guided" or self.answer_after_budget
        return EngineNeeds(
            chat=True, guided=chooses, closes=self.answer_after_budget, pictures=self.pictures is not None
        )

    @property
    def pictures(self) -> int | None:
        """Pixels of the longest side of the pictures of questions; None where they are hidden."""
        return None if self.images == "hidden" else self.image_side

    @property
    def words(self) -> WordFiles:
        """The files of its words."""
        return WordFiles("instructions", self.prompt, (self.asked_as,), self.answer_form, language=self.prompt_language)

    @property
    def saved_as(self) -> dict[str, Any]:
        """What an optimized program's file says of it."""
        then = self.asked_as if self.asked_as != self.kind else None
        return {"kind": self.kind, "then": then, "form": self.answer_form}

    @property
    def reasons(self) -> bool:
        """Whether a reply reasons before it answers."""
        return self.asked_as == "chain_of_thought"

    @property
    def could_be_guided(self) -> bool:
        """Whether it asks freely what could be chosen among the options."""
        return self.answer_format == "free"

    @property
    def draws(self) -> bool:
        """Whether several replies to the same prompt vote."""
        return self.samples > 1

    @property
    def asks_repeatedly(self) -> bool:
        """Whether several replies vote, in one order of the options or in several."""
        return self.draws or self.orders != "given"

    def budget(self, of_model: int | None) -> int:
        """Return the tokens a reply may have, where the model's own spec says `of_model`."""
        return self.max_tokens or of_model or (REASONING_TOKENS if self.reasons else DIRECT_TOKENS)

    @property
    def label_words(self) -> list[str]:
        """What tells it from others of its kind."""
        words = [*self.marks(answer_format="{}", answer_form="{}"), *self.words_label]
        words += [] if self.pictures is None else ["".join(["images", *self.marks(image_side="{}")])]
        words += self.marks(load="optimized", answer_after_budget="closed", samples="samples{}")
        return [*words, *orders_label(self.orders)]


class ZeroShotSpec(ReplySpec):
    """Ask directly (the paper's figure 6)."""

    kind: Literal["zero_shot"] = "zero_shot"


class FewShotSpec(ReplySpec):
    """Show solved examples first (the paper's figure 7)."""

    kind: Literal["few_shot"] = "few_shot"
    examples: str | Path = "paper"
    """A named set of examples (`paper`) or a path to a YAML file with one's own."""

    @property
    def words(self) -> WordFiles:
        """The files of its words, that of its examples too."""
        return replace(super().words, examples=self.examples)


class ChainOfThoughtSpec(ReplySpec):
    """Reason briefly, then answer (the paper's figure 8)."""

    kind: Literal["chain_of_thought"] = "chain_of_thought"
