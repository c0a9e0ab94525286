"""The words that ship for what a step asks: the number of an option, how likely options are, an answer in words, or
something beside the question.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self, Union, get_args

from pydantic import AfterValidator, Discriminator, Field, model_validator

from medexam.model_calls import ReadBy
from medexam.questions import Language
from medexam.specs.catalogue import Form
from medexam.specs.dataset import Format
from medexam.specs.programs.base import PositiveInt, ProgramSpec
from medexam.specs.programs.needs import AnswerForm, AnswerFormat, Asking, EngineNeeds, Metric, OptimizerKind, WordFiles

ScoreNorm = Literal["token_mean", "sum", "byte", "character", "pmi", "min_k"]
SIDE_WORDS = ("first_queries", "further_queries", "answer_query", "helps", "supports")
"""The groups of words that ship for what is asked beside the question."""
_PICTURE_SIDE = 1024
_CLOSED = ("true_false", "multiple_choice", "list")
_BY_FORMAT = {kind: 1024 if kind in _CLOSED else 2048 for kind in get_args(Format)}
TASKS: Mapping[str, tuple[Form, str, dict[str, int], dict[str, int]]] = {
    "by_format": ("formats", "formats", _BY_FORMAT, _BY_FORMAT),
    "short_answer": ("short_answer", "short_answer", {"answer": 64, "answer_from_text": 64}, {}),
    "extract_explanation": ("explanations", "extraction", {"quote": 512}, {"sentences": 512}),
    "quote": ("spans", "spans", {"quote": 512}, {"sentences": 512}),
}
"""Words for answers in words -> the form of questions that they answer, their file that ships, and the tokens of a
reply by group, free and guided."""


def _check_orders(orders: str) -> str:
    if not re.fullmatch(r"given|cyclic|reversed|random([2-9]|[1-9]\d{1,2})", orders):
        raise ValueError("orders are given, cyclic, reversed, or drawn, such as four: random4")
    return orders


Orders = Annotated[str, AfterValidator(_check_orders)]


class WordsSpec(ProgramSpec):
    """Base of what asks in the words of a prompt file."""

    prompt_language: Language | None = None
    """The language of the prompt's words, such as `en` for words in English around questions in any language; None:
    that of the questions."""


class ReplySpec(WordsSpec):
    """Ask for the number of an option: directly, behind solved examples, or after brief reasoning (figures 6 to 8)."""

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
    images: Literal["hidden", "shown"] = "hidden"
    """`hidden` asks in words alone; `shown` sends the question's picture with them, to a model that sees.
    `dataset.images: with` asks only the questions that have one."""
    image_side: PositiveInt = _PICTURE_SIDE
    """Pixels of a shown picture's longest side; a larger picture is scaled down to it."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.image_side != _PICTURE_SIDE and self.images == "hidden":
            raise ValueError("image_side belongs to images: shown, not to hidden: leave it out")
        if self.answer_after_budget and self.images != "hidden":
            raise ValueError("answer_after_budget continues a reply, which is impossible after a picture: leave it out")
        if self.answer_after_budget and self.answer_format == "guided":
            raise ValueError("answer_after_budget closes free replies, and guided ones end in a choice: leave it out")
        if self.examples != "paper" and self.kind != "few_shot":
            raise ValueError(f"examples belongs to few_shot, and the words are those of {self.kind}: leave it out")
        return self

    @property
    def asking(self) -> Asking:
        """What it asks: dialogues, a choice where the answer is guided, pictures where they are shown."""
        examples, has_pictures = self.examples if self.kind == "few_shot" else None, self.images != "hidden"
        chooses = self.answer_format == "guided" or self.answer_after_budget
        return Asking(
            engine_needs=EngineNeeds(chat=True, guided=chooses, closes=self.answer_after_budget, pictures=has_pictures),
            words=WordFiles(
                "instructions", self.prompt, (self.kind,), self.answer_form, examples, self.prompt_language
            ),
            pictures=self.image_side if has_pictures else None,
            optimizers=get_args(OptimizerKind),
            optimized_for=get_args(Metric),
            takes_labels=not self.reasons,
            saved_as={"kind": self.kind, "form": self.answer_form},
        )

    @property
    def reasons(self) -> bool:
        """Whether a reply reasons before it answers."""
        return self.kind == "chain_of_thought"

    def budget(self, of_model: int | None) -> int:
        """Return the tokens a reply may have; `{Answer: n}` takes 7, and some models greet first."""
        return self.max_tokens or of_model or (512 if self.reasons else 64)


class LikelihoodSpec(WordsSpec):
    """Have the model write nothing, and take the option that it finds likeliest (the paper's section 3.2.3)."""

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
    exam's order and its reverse, `random4` four orders that are drawn for each question."""
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
        )

    @property
    def shows_options(self) -> bool:
        """Whether the options stand in the context, beside what is read."""
        return self.read == "label" or self.context == "stem_and_options"


class TaskSpec(WordsSpec):
    """Ask for an answer in words: in those of each format, in a few, or by a quotation of the text."""

    kind: Literal["by_format", "short_answer", "extract_explanation", "quote"]
    prompt: str | Path | None = None
    """A named set of words or a path to a YAML file with one's own; None: those that ship for it."""
    answer_format: AnswerFormat = "free"
    """`free` asks and reads what comes; `guided` leaves the model nothing but well-formed answers."""
    max_tokens: PositiveInt | None = None
    """Tokens a reply may have; None: the model's `max_tokens`, else the program's own."""

    @model_validator(mode="after")
    def _can_be_guided(self) -> Self:
        if self.answer_format == "guided" and not TASKS[self.kind][3]:
            raise ValueError("answer_format guided cannot constrain short answers: leave it out")
        return self

    @property
    def asking(self) -> Asking:
        """What it asks: dialogues, and choices where the answer is guided."""
        form, prompt, *_ = TASKS[self.kind]
        return Asking(
            forms=(form,),
            engine_needs=EngineNeeds(chat=True, guided=self.answer_format == "guided"),
            words=WordFiles("groups", self.prompt or prompt, tuple(self.budget(None)), language=self.prompt_language),
        )

    def budget(self, of_model: int | None) -> dict[str, int]:
        """Map each group of words to the tokens a reply may have."""
        *_, free, guided = TASKS[self.kind]
        budgets = guided if self.answer_format == "guided" else free
        return {group: self.max_tokens or of_model or own for group, own in budgets.items()}


class AsideSpec(WordsSpec):
    """Ask beside the question, in a group of words."""

    kind: Literal["aside"] = "aside"
    group: str
    """The group of words."""
    at_first: str | None = None
    """The group of words where the text that is shown is empty; None: the same."""
    prompt: str | Path = "retrieval"
    """A named set of words (`retrieval`) or a path to a YAML file with one's own."""
    entry: str | None = None
    """The group of words in which an answer is added to a list; None adds it unchanged."""
    most: PositiveInt = 2
    """How many entries a list is asked to have."""
    max_tokens: PositiveInt | None = None
    """Tokens a reply may have; None: 16 for a verdict, else 96."""
    output_type: Annotated[str, Field(exclude=True)] = "str"
    """The type of what is written, as the step's signature has it."""

    @property
    def files(self) -> WordFiles:
        """Where its words are."""
        verdict = ("answer_yes", "answer_no") if self.output_type == "bool" else ()
        # A verdict on a question that brings a wrong answer along names that.
        wrong = "wrong_answer" if self.group in ("helps", "supports") else None
        parts = tuple(name for name in (self.group, self.at_first, self.entry, wrong, *verdict) if name is not None)
        return WordFiles("groups", self.prompt, parts, language=self.prompt_language)

    @property
    def asking(self) -> Asking:
        """What it asks: dialogues, with choices for a verdict."""
        needs = EngineNeeds(chat=True, guided=self.output_type == "bool")
        return Asking(forms=None, engine_needs=needs, words=self.files, asks_aside=True)

    def budget(self, of_model: int | None) -> int:  # noqa: ARG002 - a verdict is short whatever the model's
        """Return the tokens a reply may have."""
        return self.max_tokens or (16 if self.output_type == "bool" else 96)


class CiteSpec(AsideSpec):
    """The words that ask for the passage behind an answer."""

    group: str = "cite"


WORDS = (ReplySpec, LikelihoodSpec, TaskSpec, AsideSpec)
if TYPE_CHECKING:
    AnyWords = WordsSpec
else:
    AnyWords = Annotated[Union[WORDS], Discriminator("kind")]  # noqa: UP007
    """What a step asks in."""
