"""The words of the program that reads options instead of a reply (the paper's section 3.2.3)."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from medexam.model_calls import ReadBy
from medexam.questions import Language
from medexam.specs.programs.base import WordsSpec
from medexam.specs.programs.needs import Asking, EngineNeeds, WordFiles
from medexam.specs.programs.orders import Orders, orders_label

ScoreNorm = Literal["token_mean", "sum", "byte", "character", "pmi", "min_k"]


class LikelihoodSpec(WordsSpec):
    """Have the model write nothing, and take the option that it finds likeliest."""

    asks_model: ClassVar[bool] = True
    kind: Literal["likelihood"] = "likelihood"
    read: Literal["option_text", "label"] = "option_text"
    """`option_text` reads the words of each option; `label` reads each option's number, the options being shown."""
    read_by: ReadBy | Literal["auto"] = "auto"
    """How the server is asked; `auto` takes the cheapest of the ways that it offers."""
    norm: ScoreNorm = "token_mean"
    """What makes the log-probabilities of longer and shorter options comparable: `token_mean` (the paper's geometric
    mean of the token probabilities), `sum` (nothing), per `byte` or `character` of the option's text, `pmi`, the gain
    over the option's probability without the question, or `min_k`, the mean over its least likely fifth of tokens."""
    context: Literal["stem", "stem_and_options"] | None = None
    """What stands before what is read; None: the stem alone for option texts, stem and options for labels."""
    chat_template: bool = False
    """Whether the context becomes a user's turn and what is read the assistant's; else both are plain text."""
    orders: Orders = "given"
    """Show the options in several orders and average the probabilities: `cyclic` is every rotation, `reversed` the
    exam's order and its reverse, `{random: 4}` four orders that are drawn for each question."""
    abstain_below: Annotated[float, Field(gt=0, le=1)] | None = None
    """Leave a question blank when the best option's share of the probability is less than this; None never does."""
    prompt: str | Path = "paper"
    """A named set of words (`paper`, `lm_eval`) or a path to a YAML file with one's own."""

    @model_validator(mode="after")
    def _options_are_shown(self) -> Self:
        if self.read == "label" and self.context == "stem":
            raise ValueError("read 'label' needs the options shown: set context to 'stem_and_options', or leave it out")
        if self.orders != "given" and not self.shows_options:
            raise ValueError(
                "several orders need the options shown: set context to 'stem_and_options', or read 'label'"
            )
        return self

    @property
    def asking(self) -> Asking:
        """What it asks: texts to read after plain text or a dialogue; with `pmi` also without the question."""
        parts = (self.read, *(["premise"] if self.norm == "pmi" else []))
        return Asking(
            engine_needs=EngineNeeds(logprobs=True, chat=self.chat_template),
            words=WordFiles("likelihood", self.prompt, parts, language=self.prompt_language),
            option_text_norm=self.norm if self.read == "option_text" else None,
        )

    def normal(self, language: Language) -> Self:
        """Return the same words for questions in `language`, with values instead of what stands for them."""
        context = self.context or ("stem_and_options" if self.read == "label" else "stem")
        return super().normal(language).model_copy(update={"context": context})

    @property
    def shows_options(self) -> bool:
        """Whether the options stand in the context, beside what is read."""
        return self.read == "label" or self.context == "stem_and_options"

    @property
    def label_words(self) -> list[str]:
        """What tells it from others of its kind."""
        words = [self.read, *self.marks(norm="{}")]
        words += ["options_shown"] if self.read == "option_text" and self.shows_options else []
        words += [*self.marks(chat_template="chat"), *orders_label(self.orders)]
        return [*words, *self.marks(abstain_below="abstain_{:g}", read_by="{}"), *self.words_label]
