"""Which strategy: the `program` part of a spec, a union told apart by `kind`."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, Self, get_args

from pydantic import Field, model_validator

from medexam.continuations import ReadBy
from medexam.questions import Language
from medexam.specs.base import Spec
from medexam.specs.dataset import Format
from medexam.specs.retriever import RetrieverSpec

AnswerFormat = Literal["free", "guided"]
AnswerForm = Literal["braces", "angles"]
ScoreNorm = Literal["token_mean", "sum", "byte", "character", "pmi"]
PositiveInt = Annotated[int, Field(ge=1)]

DIRECT_TOKENS = 64
"""Default budget of a direct answer: `{Answer: n}` takes 7 tokens, and some models greet first."""
REASONING_TOKENS = 512
"""Default budget of a reply that reasons."""
CLOSED_TOKENS = 1024
"""Default budget of true/false, multiple choice and lists; the ClinIQLink shared task's."""
OPEN_TOKENS = 2048
"""Default budget of answers in prose; the ClinIQLink shared task's."""
QUOTE_TOKENS = 512
"""Default budget of a quotation: the longest answers of the published data."""
_CLOSED = frozenset({"true_false", "multiple_choice", "list"})

READINGS: Mapping[str, int] = MappingProxyType(
    {"answer": 1, "thinking": 1, "choice": 1, "format": 1, "span": 1, "sentences": 1}
)
"""Reader of replies -> its version; a run keeps those that it was read by. Raise one where its code reads otherwise:
stored replies are read again then, and nothing is asked. `answer`: signatures.answer_format and the rationale before
it; `thinking`: signatures.thinking; `choice`: the option that scores choose, in programs.likelihood; `format`:
programs.formats; `span`: signatures.span_alignment; `sentences`: the numbers in programs.extraction."""


class _Program(Spec):
    """What every program shares."""

    version: ClassVar[int] = 1
    """Version of what this kind asks, shows, looks up and chooses by code, beside the words of its files; part of a
    run's identity. Raise it where that code changes."""

    @property
    def readers(self) -> tuple[str, ...]:
        """What reads its replies, by the names in `READINGS`; empty where an answer is no reply's."""
        return ()

    @property
    def readings(self) -> dict[str, int]:
        """Each of the readers with its version."""
        return {name: READINGS[name] for name in self.readers}

    def normal(self, language: Language) -> Self:  # noqa: ARG002
        """The same program for questions in `language`, with values in the place of what stands for them."""
        return self


class _Replying(_Program):
    """What every program that has a model write a reply shares."""

    answer_format: AnswerFormat = "free"
    """`free` asks for the format and parses the reply, as the paper did; `guided` leaves the model nothing but a
    legal option, so no question stays unanswered."""
    answer_form: AnswerForm = "braces"
    """`braces` asks for `{Answer: n}`, the paper's form; `angles` for `<Answer: n>`."""
    prompt: str | Path = "paper"
    """A named set of words (`paper`) or a path to a YAML file with one's own."""
    max_tokens: PositiveInt | None = None
    """Tokens a reply may have; None: the model's `max_tokens`, else 64 for a direct answer and 512 for reasoning."""
    load: Path | None = None
    """A folder that `medexam optimize` made, or a `program.json`: instructions and demonstrations in the place of the
    prompt's; None asks in the prompt's words."""

    @property
    def readers(self) -> tuple[str, ...]:
        """What reads its replies, by the names in `READINGS`."""
        return ("answer", "thinking")

    @property
    def reasons(self) -> bool:
        """Whether a reply reasons before it answers."""
        return "chain_of_thought" in (getattr(self, "kind", None), getattr(self, "then", None))

    def budget(self, of_model: int | None) -> int:
        """Tokens a reply may have, where the model's own spec says `of_model`."""
        return self.max_tokens or of_model or (REASONING_TOKENS if self.reasons else DIRECT_TOKENS)

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
        if self.load is not None:
            words.append("optimized")
        return "-".join(words)


class _Retrieving(_Program):
    """What every program that looks up passages shares."""

    retriever: RetrieverSpec = RetrieverSpec()
    k: PositiveInt = 2
    """Passages a question; the paper's 2."""
    query: Literal["stem", "stem_and_options", "per_option"] = "stem"
    """What is looked up; `per_option` looks up the stem with each option and takes the best passages over all."""
    query_language: Language | None = None
    """Look up the same question in this language, found by its key; None: the language that is asked."""

    def normal(self, language: Language) -> Self:
        """The same program for questions in `language`, with values in the place of what stands for them."""
        return self.model_copy(update={"query_language": self.query_language or language})

    @property
    def retrieval_label(self) -> str:
        """Short name of how passages are found."""
        words = [self.retriever.label]
        if self.query != "stem":
            words.append(self.query)
        if self.k != 2:
            words.append(f"k{self.k}")
        if self.query_language is not None:
            words.append(f"by_{self.query_language}")
        return "-".join(words)


class ZeroShotSpec(_Replying):
    """Ask directly (the paper's figure 6)."""

    kind: Literal["zero_shot"]


class FewShotSpec(_Replying):
    """Show solved examples first (the paper's figure 7)."""

    kind: Literal["few_shot"]
    examples: str | Path = "paper"
    """A named set of examples (`paper`) or a path to a YAML file with one's own."""


class ChainOfThoughtSpec(_Replying):
    """Reason briefly, then answer (the paper's figure 8)."""

    kind: Literal["chain_of_thought"]


class RetrieveThenAnswerSpec(_Replying, _Retrieving):
    """Show passages of a corpus before the question (the paper's section 3.2.2), then ask."""

    kind: Literal["retrieve_then_answer"]
    then: Literal["zero_shot", "chain_of_thought"] = "zero_shot"
    """How the question is asked behind its passages, in that program's words."""

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        then = [] if self.then == "zero_shot" else [self.then]
        return "-".join([super().label, *then, self.retrieval_label])


class LikelihoodSpec(_Retrieving):
    """Have the model write nothing, and take the option that it finds likeliest (the paper's section 3.2.3)."""

    kind: Literal["likelihood"]
    read: Literal["option_text", "label"] = "option_text"
    """`option_text` reads the words of each option; `label` reads each option's number, the options being shown."""
    read_by: ReadBy | Literal["auto"] = "auto"
    """How the server is asked; `auto` takes the cheapest of the ways that it offers."""
    norm: ScoreNorm = "token_mean"
    """What makes the log-probabilities of longer and shorter options comparable: `token_mean` (the paper's geometric
    mean of the token probabilities), `sum` (nothing), per `byte` or `character` of the option's text, or `pmi`, the
    gain over the option's probability without the question."""
    context: Literal["stem", "stem_and_options", "retrieved"] | None = None
    """What stands before what is read; None: the stem alone for option texts, stem and options for labels. `retrieved`
    puts passages before that."""
    chat_template: bool = False
    """Whether the context becomes a user's turn and what is read the assistant's; else both are plain text."""
    orders: Literal["given", "cyclic"] = "given"
    """`cyclic` shows the options in every rotation of their order and averages the probabilities."""
    abstain_below: Annotated[float, Field(gt=0, le=1)] | None = None
    """Leave a question blank when the best option's share of the probability is less than this; None never does."""
    prompt: str | Path = "paper"
    """A named set of words (`paper`, `lm_eval`) or a path to a YAML file with one's own."""

    @model_validator(mode="after")
    def _options_are_shown(self) -> Self:
        if self.read == "label" and self.context == "stem":
            raise ValueError("read 'label' needs the options shown: set context to 'stem_and_options', or leave it out")
        if self.orders == "cyclic" and not self.shows_options:
            raise ValueError(
                "orders 'cyclic' needs the options shown: set context to 'stem_and_options', or read 'label'"
            )
        return self

    def normal(self, language: Language) -> Self:
        """The same program for questions in `language`, with values in the place of what stands for them."""
        context = self.context or ("stem_and_options" if self.read == "label" else "stem")
        return super().normal(language).model_copy(update={"context": context})

    @property
    def readers(self) -> tuple[str, ...]:
        """What chooses by the scores, by its name in `READINGS`."""
        return ("choice",)

    @property
    def shows_options(self) -> bool:
        """Whether the options stand in the context."""
        return self.read == "label" or self.context == "stem_and_options"

    @property
    def retrieves(self) -> bool:
        """Whether passages stand in the context."""
        return self.context == "retrieved"

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        words = ["likelihood", self.read]
        if self.norm != "token_mean":
            words.append(self.norm)
        if self.read == "option_text" and self.shows_options:
            words.append("options_shown")
        if self.retrieves:
            words.append(self.retrieval_label)
        if self.chat_template:
            words.append("chat")
        if self.orders != "given":
            words.append(self.orders)
        if self.abstain_below is not None:
            words.append(f"abstain_{self.abstain_below:g}")
        if self.read_by != "auto":
            words.append(self.read_by)
        if str(self.prompt) != "paper":
            words.append(Path(self.prompt).stem)
        return "-".join(words)


class RelevanceSpec(_Retrieving):
    """Take the option whose best passage is the most relevant, without a model (HEAD-QA v1's IR solver)."""

    kind: Literal["relevance"]

    def normal(self, language: Language) -> Self:
        """The same program for questions in `language`; each option is looked up, whatever `query` says."""
        return super().normal(language).model_copy(update={"query": "per_option"})

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        return f"relevance-{self.retrieval_label}"


class _Reading(_Retrieving):
    """What the programs share that have a local model read passages."""

    reader: str | Path
    """A folder or a hub id of a transformers model with its weights as safetensors."""
    revision: str | None = None
    """Revision of a hub reader; None takes the newest."""

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        kind: str = getattr(self, "kind")  # noqa: B009 - declared by each member of the union
        return f"{kind}-{Path(self.reader).name}-{self.retrieval_label}"


class SpanReaderSpec(_Reading):
    """Take the option that shares most with the span that a question answering model finds in passages.

    The form of HEAD-QA v1's DrQA and BiDAF for multiple choice. Of a task that brings its text along, the span itself.
    """

    kind: Literal["span_reader"]
    k: PositiveInt = 5
    """Passages a question; DrQA's 5."""
    answer_tokens: PositiveInt = 30
    """Tokens of the longest span."""
    context: Literal["retrieved", "given"] = "retrieved"
    """`given` reads the text that a task brings along, as casimedicos_spans does, and looks nothing up."""

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        label = super().label if self.context == "retrieved" else f"{self.kind}-{Path(self.reader).name}"
        return label if self.answer_tokens == 30 else f"{label}-tokens{self.answer_tokens}"


class EntailmentSpec(_Reading):
    """Take the option that, behind the question, a sentence of the passages entails most.

    The form of HEAD-QA v1's DGEM and Decompatt.
    """

    kind: Literal["entailment"]
    query: Literal["stem", "stem_and_options", "per_option"] = "per_option"
    """What is looked up; `per_option` looks up the stem with each option, and each option is judged by its own
    passages; else all are judged by the same."""


class RandomSpec(_Program):
    """Choose an option at random: the chance level made flesh."""

    kind: Literal["random"]
    seed: int = 17

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        return "random"


class BlindSpec(_Program):
    """Always choose the same option, without reading."""

    kind: Literal["blind"]
    option: Annotated[int, Field(ge=1)] = 1
    """The printed number of the option; a question that has no such option stays unanswered."""

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        return f"blind-{self.option}"


class LongestSpec(_Program):
    """Choose the first of the longest options (HEAD-QA v1's Length control)."""

    kind: Literal["longest"]

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        return "longest"


class _TaskReplying(_Program):
    """What the programs share that answer in words."""

    answer_format: AnswerFormat = "free"
    """`free` asks and reads what comes; `guided` leaves the model nothing but well-formed answers."""
    max_tokens: PositiveInt | None = None
    """Tokens a reply may have; None: the model's `max_tokens`, else the program's own."""

    @property
    def own_budgets(self) -> Mapping[str, int]:
        """Group of words that the program asks with -> tokens a reply may have by default."""
        raise NotImplementedError

    def budget(self, of_model: int | None) -> dict[str, int]:
        """Group of words -> tokens a reply may have, where the model's own spec says `of_model`."""
        return {group: self.max_tokens or of_model or own for group, own in self.own_budgets.items()}

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        kind: str = getattr(self, "kind")  # noqa: B009 - declared by each member of the union
        prompt: str | Path = getattr(self, "prompt")  # noqa: B009 - so is this
        default = str(type(self).model_fields["prompt"].default)
        words = [kind]
        if self.answer_format == "guided":
            words.append("guided")
        if str(prompt) != default:
            words.append(Path(prompt).stem)
        return "-".join(words)


class ByFormatSpec(_TaskReplying):
    """Ask each question in the words of its format, as ClinIQLink does."""

    kind: Literal["by_format"]
    prompt: str | Path = "cliniqlink"
    """A named set of words (`cliniqlink`) or a path to a YAML file with one's own."""

    @property
    def readers(self) -> tuple[str, ...]:
        """What reads its replies, by the names in `READINGS`."""
        return ("format", "thinking")

    @property
    def own_budgets(self) -> Mapping[str, int]:
        """Format -> tokens a reply may have by default."""
        return {kind: CLOSED_TOKENS if kind in _CLOSED else OPEN_TOKENS for kind in get_args(Format)}


class ExtractExplanationSpec(_TaskReplying):
    """Have the model quote the part of a text that answers a question; the answer is a literal part of it, or none."""

    kind: Literal["extract_explanation"]
    prompt: str | Path = "extraction"
    """A named set of words (`extraction`) or a path to a YAML file with one's own."""

    @property
    def readers(self) -> tuple[str, ...]:
        """What reads its replies, by the names in `READINGS`."""
        return ("sentences",) if self.answer_format == "guided" else ("span", "thinking")

    @property
    def own_budgets(self) -> Mapping[str, int]:
        """The one group of words that is asked with, `quote` or `sentences`, and its default."""
        return {"sentences" if self.answer_format == "guided" else "quote": QUOTE_TOKENS}


TaskSpec = ByFormatSpec | ExtractExplanationSpec
"""Programs that answer in words."""

ReplySpec = ZeroShotSpec | FewShotSpec | ChainOfThoughtSpec | RetrieveThenAnswerSpec
"""Programs that have a model write a reply."""

AskingSpec = ReplySpec | LikelihoodSpec | TaskSpec
"""Programs that ask a model."""

ReadingSpec = SpanReaderSpec | EntailmentSpec
"""Programs that have a local model read passages, and ask no engine."""

ControlSpec = RandomSpec | BlindSpec | LongestSpec | RelevanceSpec
"""Programs that ask no model."""

ProgramSpec = Annotated[
    ZeroShotSpec
    | FewShotSpec
    | ChainOfThoughtSpec
    | RetrieveThenAnswerSpec
    | LikelihoodSpec
    | RandomSpec
    | BlindSpec
    | LongestSpec
    | RelevanceSpec
    | SpanReaderSpec
    | EntailmentSpec
    | ByFormatSpec
    | ExtractExplanationSpec,
    Field(discriminator="kind"),
]

KINDS: frozenset[str] = frozenset(
    kind for spec in get_args(get_args(ProgramSpec)[0]) for kind in get_args(spec.model_fields["kind"].annotation)
)
"""The kinds of programs."""
