"""Programs that have a model write a reply with the number of an option (the paper's sections 3.2.1 and 3.2.2)."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, model_validator

from medexam.model_calls import Reading
from medexam.specs.catalogue import Form
from medexam.specs.optimizer import Metric, OptimizerKind
from medexam.specs.programs.base import PositiveInt, WordsSpec
from medexam.specs.programs.needs import (
    AnswerForm,
    AnswerFormat,
    EngineNeeds,
    ReaderSettings,
    RetrievalSettings,
    WordFiles,
)
from medexam.specs.programs.orders import Orders, orders_label
from medexam.specs.programs.retrieving import RetrievingSpec, SearchSpec
from medexam.specs.programs.tasks import ByFormatSpec, ShortAnswerSpec
from medexam.specs.retriever import RetrieverSpec

DIRECT_TOKENS = 64
"""Default budget of a direct answer: `{Answer: n}` takes 7 tokens, and some models greet first."""
REASONING_TOKENS = 512
"""Default budget of a reply that reasons."""
PICTURE_SIDE = 1024
"""Default longest side of a picture, in pixels."""
_IN_WORDS: Mapping[str, type[ByFormatSpec] | type[ShortAnswerSpec]] = MappingProxyType(
    {"by_format": ByFormatSpec, "short_answer": ShortAnswerSpec}
)
"""What `then` may be for questions that are answered in words."""
_OF_OPTIONS = ("reader", "answer_form", "reading", "answer_after_budget", "images")
"""Settings that need numbered options."""


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
    reading: Annotated[Reading, Field(exclude_if=lambda reading: reading == "strict")] = "strict"
    """How replies are scored: `strict` by the format alone, as the paper did; `lenient` as a careful marker would where
    the format is missing. Both are always reported, and no answer depends on it."""
    prompt: str | Path = "paper"
    """A named set of words (`paper`) or a path to a YAML file with one's own."""
    samples: Annotated[int, Field(ge=1, le=1000, exclude_if=lambda samples: samples == 1)] = 1
    """Replies to each question, of which the commonest legal answer is taken (self-consistency); more than one needs a
    `model.temperature`."""
    orders: Annotated[Orders, Field(exclude_if=lambda orders: orders == "given")] = "given"
    """Ask once for each of several orders of the options and take the commonest answer: `cyclic` shows every rotation,
    `reversed` the exam's order and its reverse, `{random: 4}` four orders that are drawn for each question."""
    max_tokens: PositiveInt | None = None
    """Tokens a reply may have; None: the model's `max_tokens`, else 64 for a direct answer and 512 for reasoning."""
    answer_after_budget: Annotated[bool, Field(exclude_if=lambda closes: not closes)] = False
    """If a free reply is cut off in its thinking, close the thinking and choose among the options in one further
    call."""
    images: Annotated[Literal["hidden", "shown", "only"], Field(exclude_if=lambda images: images == "hidden")] = (
        "hidden"
    )
    """`hidden` asks in words alone; `shown` sends the question's picture with them, to a model that sees; `only` is
    `shown` with `dataset.images: with`: it asks only the questions that have a picture."""
    image_side: Annotated[PositiveInt, Field(exclude_if=lambda side: side == PICTURE_SIDE)] = PICTURE_SIDE
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
    def readers(self) -> tuple[str, ...]:
        """What reads its replies, by the names in `READINGS`."""
        return ("answer", "thinking", "lenient")

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


class BehindPassagesSpec(ReplySpec):
    """Base of the programs that ask another program's question after what they found."""

    asks_in_words: ClassVar[bool] = False
    then: Literal["zero_shot", "few_shot", "chain_of_thought"] = "zero_shot"
    """How the question is asked after its passages, in that program's words."""
    examples: str | Path = "paper"
    """A named set of examples (`paper`) or a path to a YAML file with one's own, for `then: few_shot`."""

    retrieval_prompt: str | Path = "retrieval"
    """A named set of words (`retrieval`) or a path to a YAML file with one's own, for all that is asked beside the
    question."""

    @property
    def side_groups(self) -> tuple[str, ...]:
        """The groups of words that it asks with beside the question."""
        return ()

    @property
    def side_words(self) -> WordFiles | None:
        """The file of what it asks beside the question itself; None where it asks nothing else."""
        groups = self.side_groups
        return WordFiles("groups", self.retrieval_prompt, groups, language=self.prompt_language) if groups else None

    def once(self, setting: str) -> Self:
        """Raise `ValueError`, naming `setting`, if a question is asked several times or words are loaded."""
        if self.samples > 1 or self.orders != "given" or self.load is not None:
            raise ValueError(f"{setting} takes no samples, orders or load: leave them out")
        return self

    @model_validator(mode="after")
    def _examples_are_shown(self) -> Self:
        if self.then != "few_shot" and "examples" in self.model_fields_set and self.examples != "paper":
            raise ValueError(f"examples belongs to `then: few_shot`, and `then` is {self.then!r}: leave it out")
        return self

    @property
    def words(self) -> WordFiles:
        """The files of its words, with `then: few_shot` that of its examples too."""
        return replace(super().words, examples=self.examples if self.then == "few_shot" else None)

    @property
    def asked_as(self) -> str:
        """The kind of program that the question is asked as after its passages."""
        return self.then

    @property
    def label_words(self) -> list[str]:
        """What tells it from others of its kind."""
        return [*super().label_words, *self.marks(then="{}")]


class RetrieveThenAnswerSpec(BehindPassagesSpec, RetrievingSpec):
    """Show passages of a corpus before the question (the paper's section 3.2.2), then ask."""

    kind: Literal["retrieve_then_answer"] = "retrieve_then_answer"
    cite: Annotated[bool, Field(exclude_if=lambda cite: not cite)] = False
    """Number the passages and have the reply name the one that supports its answer, such as `{Answer: 3} [2]`; guided
    where the answer is."""
    reader: Annotated[str | Path | None, Field(exclude_if=lambda reader: reader is None)] = None
    """A folder or a hub id of a model of natural language inference that scores each citation; None scores none."""
    revision: Annotated[str | None, Field(exclude_if=lambda revision: revision is None)] = None
    """Revision of a hub reader; None takes the newest."""

    @model_validator(mode="after")
    def _citations_are_whole(self) -> Self:
        if self.reader is not None and not self.cite:
            raise ValueError("reader scores citations: set cite to true, or leave reader out")
        return self.once("cite") if self.cite else self

    @property
    def side_groups(self) -> tuple[str, ...]:
        """The words that ask for a citation."""
        return ("cite",) if self.cite else ()

    @property
    def local_reader(self) -> ReaderSettings | None:
        """The local model that scores citations."""
        return None if self.reader is None else ReaderSettings("entailment", self.reader, self.revision)

    @property
    def label_words(self) -> list[str]:
        """What tells it from others of its kind."""
        return [*super().label_words, self.retrieval_label, *self.marks(cite="cite")]


class SideWordsSpec(BehindPassagesSpec):
    """Base of the programs that ask the model something beside the question itself."""

    optimizers: ClassVar[tuple[OptimizerKind, ...]] = ()

    @model_validator(mode="after")
    def _asks_once(self) -> Self:
        return self.once(self.kind)


class IterativeRetrievalSpec(SideWordsSpec, SearchSpec):
    """Have the model write queries, read what they find and write more, then ask the question with what was found.

    Xiong et al. (2024), "Improving Retrieval-Augmented Generation in Medicine with Iterative Follow-up Questions"
    (i-MedRAG).
    """

    kind: Literal["iterative_retrieval"] = "iterative_retrieval"
    retriever: RetrieverSpec = RetrieverSpec()
    k: PositiveInt = 2
    """Passages a query."""
    rounds: Annotated[int, Field(ge=1, le=20)] = 3
    """How often queries are written; fewer where the model has no further query."""
    queries: Annotated[int, Field(ge=1, le=20)] = 2
    """Queries a round."""
    keep: Literal["answers", "passages"] = "answers"
    """What is shown before later queries and the question: `answers` has each query answered from its passages in a
    few sentences, as i-MedRAG does; `passages` keeps the passages themselves and asks less."""

    @property
    def retrieval(self) -> RetrievalSettings:
        """How its passages are looked up."""
        return RetrievalSettings(self.retriever, self.k, "written", None)

    @property
    def side_groups(self) -> tuple[str, ...]:
        """The groups of words that it asks with beside the question."""
        reading = ("answer_query", "note") if self.keep == "answers" else ()
        return ("first_queries", "further_queries", *reading)

    @property
    def label_words(self) -> list[str]:
        """What tells it from others of its kind."""
        numbers = self.marks(k="k{}", rounds="rounds{}", queries="queries{}", keep="{}")
        return [*super().label_words, self.retriever.label, *numbers]


class RetrieveVerifySpec(SideWordsSpec, RetrievingSpec):
    """Drop the passages in which a verifier finds no help, ask with the others, and check the answer against them."""

    then_by_form: ClassVar[Mapping[Form, str]] = MappingProxyType(
        {"formats": "by_format", "short_answer": "short_answer"}
    )
    kind: Literal["retrieve_verify"] = "retrieve_verify"
    then: Literal["zero_shot", "few_shot", "chain_of_thought", "by_format", "short_answer"] = "zero_shot"  # type: ignore[assignment]
    """How the question is asked after its passages, in that program's words; questions that are answered in words
    have `by_format` or `short_answer` by themselves."""
    retriever: RetrieverSpec = RetrieverSpec(kind="fusion")
    k: PositiveInt = 5
    """Passages a question, before any is dropped."""
    reader: str | Path | None = None
    """A folder or a hub id of a model of natural language inference that judges; None: the model itself is asked, yes
    or no, guided."""
    revision: str | None = None
    """Revision of a hub reader; None takes the newest."""
    least: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """The probability of entailment from which the reader keeps a passage, for any option, and supports an answer."""
    unsupported: Literal["keep", "abstain"] = "keep"
    """What becomes of an answer that the kept passages do not support: `abstain` leaves its question blank."""

    @model_validator(mode="after")
    def _fits_answers_in_words(self) -> Self:
        if self.then not in _IN_WORDS:
            return self
        if exams_own := [name for name in _OF_OPTIONS if name in self.model_fields_set and self._is_own(name)]:
            raise ValueError(
                f"{', '.join(exams_own)} belongs to numbered options, and `then: {self.then!r}` answers in words: "
                "leave it out"
            )
        if self.then == "short_answer" and self.answer_format == "guided":
            raise ValueError("answer_format guided cannot constrain short answers: leave it out")
        return self

    def _is_own(self, name: str) -> bool:
        return bool(getattr(self, name) != type(self).model_fields[name].default)

    @property
    def in_words(self) -> ByFormatSpec | ShortAnswerSpec | None:
        """The program that answers in words after the passages; None where an option is chosen."""
        if self.then not in _IN_WORDS:
            return None
        settings = {name: getattr(self, name) for name in ("answer_format", "max_tokens", "prompt_language")}
        prompt = {"prompt": self.prompt} if self._is_own("prompt") else {}
        return _IN_WORDS[self.then](**settings, **prompt)

    @property
    def answers_tasks(self) -> bool:
        """Whether it answers in words, not by the number of an option."""
        return self.in_words is not None

    @property
    def words(self) -> WordFiles:
        """The files of its words."""
        return super().words if self.in_words is None else self.in_words.words

    @property
    def asked_groups(self) -> tuple[str, ...] | None:
        """The groups of questions that it has words for; None where it has the same words for all."""
        return None if self.in_words is None else self.in_words.asked_groups

    @property
    def readers(self) -> tuple[str, ...]:
        """What reads its replies, by the names in `READINGS`."""
        return super().readers if self.in_words is None else self.in_words.readers

    @property
    def could_be_guided(self) -> bool:
        """Whether it asks freely what could be chosen."""
        return super().could_be_guided if self.in_words is None else self.in_words.could_be_guided

    def budget(self, of_model: int | None) -> Any:
        """Return the tokens a reply may have, by group of words where it answers in words."""
        return super().budget(of_model) if self.in_words is None else self.in_words.budget(of_model)

    @property
    def local_reader(self) -> ReaderSettings | None:
        """The local model that judges; None where the model itself does."""
        return None if self.reader is None else ReaderSettings("entailment", self.reader, self.revision)

    @property
    def engine_needs(self) -> EngineNeeds:
        """What its requests hold: dialogues, and a choice for each verdict of the model."""
        return EngineNeeds(chat=True, guided=self.answer_format == "guided" or self.reader is None)

    @property
    def side_groups(self) -> tuple[str, ...]:
        """The groups of words that it asks with beside the question; none where a reader judges."""
        if self.reader is not None:
            return ()
        groups = ("helps", "supports", "answer_yes", "answer_no")
        return groups if self.in_words is None else (*groups, "wrong_answer")

    @property
    def label_words(self) -> list[str]:
        """What tells it from others of its kind."""
        judges = [] if self.reader is None else [Path(self.reader).name]
        judges += self.marks(least="from_{:g}", unsupported="{}")
        return [*super().label_words, self.retrieval_label, *judges]
