"""The words of programs that have a model write a reply with the number of an option (the paper's section 3.2.1)."""

from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args

from pydantic import model_validator

from medexam.specs.optimizer import Metric, OptimizerKind
from medexam.specs.programs.base import PositiveInt, WordsSpec
from medexam.specs.programs.needs import AnswerForm, AnswerFormat, Asking, EngineNeeds, WordFiles

DIRECT_TOKENS = 64
"""Default budget of a direct answer: `{Answer: n}` takes 7 tokens, and some models greet first."""
REASONING_TOKENS = 512
"""Default budget of a reply that reasons."""
PICTURE_SIDE = 1024
"""Default longest side of a picture, in pixels."""


class ReplySpec(WordsSpec):
    """Ask for the number of an option: directly, behind solved examples, or after brief reasoning (figures 6 to 8)."""

    asks_model: ClassVar[bool] = True
    kind: Literal["zero_shot", "few_shot", "chain_of_thought"] = "zero_shot"
    answer_format: AnswerFormat = "free"
    """`free` asks for the format and parses the reply, as the paper did; `guided` leaves the model nothing but a
    legal option, so no question stays unanswered."""
    answer_form: AnswerForm = "braces"
    """`braces` asks for `{Answer: n}`, the paper's form; `angles` for `<Answer: n>`."""
    prompt: str | Path = "paper"
    """A named set of words (`paper`) or a path to a YAML file with one's own."""
    examples: str | Path = "paper"
    """A named set of examples (`paper`) or a path to a YAML file with one's own, for the words of few_shot."""
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

    @model_validator(mode="after")
    def _pictures_fit(self) -> Self:
        if self.image_side != PICTURE_SIDE and self.images == "hidden":
            raise ValueError("image_side belongs to images: shown, not to hidden: leave it out")
        if self.answer_after_budget and self.images != "hidden":
            raise ValueError("answer_after_budget continues a reply, which is impossible after a picture: leave it out")
        if self.answer_after_budget and self.answer_format == "guided":
            raise ValueError("answer_after_budget closes free replies, and guided ones end in a choice: leave it out")
        if self.examples != "paper" and self.asked_as != "few_shot":
            raise ValueError(f"examples belongs to few_shot, and the words are those of {self.asked_as}: leave it out")
        return self

    @property
    def asking(self) -> Asking:
        """What it asks: dialogues, a choice where the answer is guided, pictures where they are shown."""
        examples = self.examples if self.asked_as == "few_shot" else None
        has_pictures = self.images != "hidden"
        chooses = self.answer_format == "guided" or self.answer_after_budget
        return Asking(
            engine_needs=EngineNeeds(chat=True, guided=chooses, closes=self.answer_after_budget, pictures=has_pictures),
            words=WordFiles(
                "instructions", self.prompt, (self.asked_as,), self.answer_form, examples, self.prompt_language
            ),
            pictures=self.image_side if has_pictures else None,
            could_be_guided=self.answer_format == "free",
            optimizers=get_args(OptimizerKind),
            optimized_for=get_args(Metric),
            takes_labels=not self.reasons,
            saved_as={"kind": self.kind, "form": self.answer_form},
        )

    @property
    def reasons(self) -> bool:
        """Whether a reply reasons before it answers."""
        return self.asked_as == "chain_of_thought"

    def budget(self, of_model: int | None) -> Any:
        """Return the tokens a reply may have, where the model's own spec says `of_model`."""
        return self.max_tokens or of_model or (REASONING_TOKENS if self.reasons else DIRECT_TOKENS)

    @property
    def label_words(self) -> list[str]:
        """What tells it from others of its kind."""
        words = [*self.marks(answer_format="{}", answer_form="{}"), *self.words_label]
        words += [] if self.images == "hidden" else ["".join(["images", *self.marks(image_side="{}")])]
        return [*words, *self.marks(answer_after_budget="closed")]
