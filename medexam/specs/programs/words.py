"""The words that ship for what a step asks: the number of an option, how likely options are, an answer in words, or
something beside the question. `words.yaml` says what each of them asks and takes.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)

from medexam.model_calls import ReadBy
from medexam.questions import Language
from medexam.specs.base import PlacedError, Spec, advise, parse_yaml
from medexam.specs.programs.needs import AnswerForm, AnswerFormat, Asking, EngineNeeds, PositiveInt

ScoreNorm = Literal["token_mean", "sum", "byte", "character", "pmi", "min_k"]
TABLE = parse_yaml(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"), "words.yaml")
"""`words.yaml`."""
TAKES: Mapping[str, Sequence[str]] = TABLE["takes"]
"""Group of words -> the fields of `WordsSpec` that these have."""
WORDS: Mapping[str, Mapping[str, Any]] = TABLE["words"]
"""WordsSpec that ship -> their group, the form of questions that they answer, their file, and the tokens of a reply."""
LABELS: Mapping[str, str] = TABLE["labels"]
"""Field of a program -> how tables and folders show a value that is not its default, in this order."""
SIDE_WORDS = ("first_queries", "further_queries", "answer_query", "helps", "supports")
"""The groups of words that ship for what is asked beside the question."""


Orders = Annotated[str, StringConstraints(pattern=r"^(given|cyclic|reversed|random([2-9]|[1-9]\d{1,2}))$")]


class VariantSpec(Spec):
    """Base of what has some of its fields alone, by what it is."""

    @model_serializer(mode="wrap")
    def _dump_own(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in dump(self).items() if name in self.own}


class WordsSpec(VariantSpec):
    """The words in which a step asks, and how."""

    kind: str = Field("zero_shot", json_schema_extra={"enum": [*WORDS]})
    """Which words: those of a kind that ships, or `aside` for what is asked beside the question."""
    prompt: str | Path | None = None
    """A named set of words (`paper`) or a path to a YAML file with one's own; None: those that ship for it."""
    prompt_language: Language | None = None
    """The language of the words, whatever that of the questions; None: that of the questions."""
    answer_format: AnswerFormat = "free"
    """`free` asks for the format and parses the reply, as the paper did; `guided` allows only a legal answer."""
    answer_form: AnswerForm = "braces"
    """`braces` asks for `{Answer: n}`, the paper's form; `angles` for `<Answer: n>`."""
    examples: str | Path = "paper"
    """A named set of examples (`paper`) or a path to a YAML file with one's own, for the words of few_shot."""
    max_tokens: PositiveInt | None = None
    """Tokens a reply may have; None: the model's `max_tokens`, else the words' own, as 64, or 512 for reasoning."""
    answer_after_budget: bool = False
    """If a free reply is cut off in its thinking, choose among the options in one further call."""
    images: Literal["hidden", "shown"] = "hidden"
    """`shown` sends the question's picture with the words, to a model that sees; see `dataset.images`."""
    image_side: PositiveInt = 1024
    """Pixels of a shown picture's longest side; a larger picture is scaled down to it."""
    read: Literal["option_text", "label"] = "option_text"
    """`option_text` reads the words of each option; `label` reads each option's number, the options being shown."""
    read_by: ReadBy | Literal["auto"] = "auto"
    """How the server is asked; `auto` takes the cheapest of the ways that it offers."""
    norm: ScoreNorm = "token_mean"
    """What makes log-probabilities of longer and shorter options comparable: `token_mean` (the paper's), `sum`
    (nothing), per `byte` or `character`, `pmi` (the gain by the question), or `min_k` (the least likely fifth of the
    tokens)."""
    context: Literal["stem", "stem_and_options"] | None = None
    """What stands before what is read; None: the stem alone for option texts, stem and options for labels."""
    chat_template: bool = False
    """Whether the context becomes a user's turn and what is read the assistant's; else both are plain text."""
    orders: Orders = "given"
    """Show the options in several orders and average: `given`, `cyclic`, `reversed`, or drawn ones, as `random4`."""
    abstain_below: Annotated[float, Field(gt=0, le=1)] | None = None
    """Leave a question blank when the best option's share of the probability is less than this; None never does."""
    group: str = ""
    """The group of words in which something is asked beside the question."""
    at_first: str | None = None
    """The group of words where the text that is shown is empty; None: the same."""
    entry: str | None = None
    """The group of words in which an answer is added to a list; None adds it unchanged."""
    most: PositiveInt = 2
    """How many entries a list is asked to have."""
    output: str = "str"
    """The type of what is written, as the step's signature has it; no key of a spec."""

    @model_validator(mode="wrap")
    @classmethod
    def _read_words(cls, words: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(words, str):
            words = {"group": words} if words in SIDE_WORDS else {"kind": words}
        return read({"kind": "aside", **words} if isinstance(words, Mapping) else words)

    @classmethod
    def keys_of(cls, tree: Mapping[str, Any]) -> Collection[str]:
        """Return the keys that such words have."""
        if tree["kind"] not in WORDS:
            advice = advise(tree["kind"], [*WORDS, *SIDE_WORDS])
            raise PlacedError("kind", f"no words are called {tree['kind']!r}: {advice}")
        return ("kind", *TAKES[WORDS[tree["kind"]]["asks"]])

    @property
    def asks(self) -> str:
        """The group of words: `reply`, `likelihood`, `task` or `aside`."""
        return str(WORDS[self.kind]["asks"])

    @property
    def reasons(self) -> bool:
        """Whether a reply reasons before it answers."""
        return self.kind == "chain_of_thought"

    @property
    def shows_options(self) -> bool:
        """Whether the options stand in the context, beside what is read."""
        return self.read == "label" or self.context == "stem_and_options"

    @property
    def parts(self) -> tuple[str, ...]:
        """What is taken of its prompt file."""
        if self.asks == "task":
            return tuple(self.budget(None))
        parts: list[str | None] = [self.kind]
        if self.asks == "likelihood":
            parts = [self.read, "premise" if self.norm == "pmi" else None]
        elif self.asks == "aside":
            # A verdict on a question that brings a wrong answer along names that.
            wrong = "wrong_answer" if self.group in ("helps", "supports") else None
            verdict = ("answer_yes", "answer_no") if self.output == "bool" else ()
            parts = [self.group, self.at_first, self.entry, wrong, *verdict]
        return tuple(part for part in parts if part is not None)

    @property
    def asking(self) -> Asking:
        """What it asks: dialogues, but for texts that are read; choices where the answer is guided or a verdict."""
        form, has_pictures = WORDS[self.kind]["form"], self.images != "hidden"
        is_verdict = (self.asks, self.output) == ("aside", "bool")
        return Asking(
            forms=None if form is None else (form,),
            engine_needs=EngineNeeds(
                chat=self.asks != "likelihood" or self.chat_template,
                logprobs=self.asks == "likelihood",
                guided=self.answer_format == "guided" or self.answer_after_budget or is_verdict,
                closes=self.answer_after_budget,
                pictures=has_pictures,
            ),
            pictures=self.image_side if has_pictures else None,
            optimizable=self.asks == "reply",
            saved_as={"kind": self.kind, "form": self.answer_form} if self.asks == "reply" else {},
        )

    def budget(self, of_model: int | None) -> Any:
        """Return the tokens that a reply may have, for answers in words by group of these; None without a reply.

        `{Answer: n}` takes 7, and some models greet first. A verdict is short whatever the model's.
        """
        words = WORDS[self.kind]
        if self.asks == "aside":
            return self.max_tokens or words["verdict" if self.output == "bool" else "tokens"]
        tokens, most = words.get("tokens"), self.max_tokens or of_model
        if isinstance(tokens, dict):
            by_group = words["guided"] if self.answer_format == "guided" else tokens
            return {group: most or own for group, own in by_group.items()}
        return tokens and (most or tokens)
