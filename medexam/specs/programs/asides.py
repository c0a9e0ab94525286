"""What a step asks beside the question itself, in words that ship: queries, notes and verdicts."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from medexam.specs.programs.base import PositiveInt, ProgramSpec, WordsSpec
from medexam.specs.programs.needs import Asking, EngineNeeds, ReaderSettings, WordFiles
from medexam.specs.programs.signature_text import QUESTION_FIELDS, SignatureText

SIDE_WORDS = ("first_queries", "further_queries", "answer_query", "helps", "supports")
"""The groups of words that ship."""
_VERDICT_TOKENS, _TEXT_TOKENS = 16, 96


class AsideSpec(WordsSpec):
    """Ask beside the question: in a group of words, or a model of natural language inference that judges passages."""

    asks_model: ClassVar[bool] = True
    kind: Literal["aside"] = "aside"
    group: str | None = None
    """The group of words; None where a reader judges."""
    prompt: str | Path = "retrieval"
    """A named set of words (`retrieval`) or a path to a YAML file with one's own."""
    entry: str | None = None
    """The group of words in which an answer is added to a list; None adds it unchanged."""
    wrong: str | None = None
    """The group of words that call a given answer wrong; None leaves it out."""
    most: PositiveInt = 2
    """How many entries a list is asked to have."""
    reader: str | Path | None = None
    """A folder or a hub id of a model of natural language inference that judges; None asks the model itself."""
    revision: str | None = None
    """Revision of a hub reader; None takes the newest."""
    least: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """The probability of entailment from which the reader says yes."""
    max_tokens: PositiveInt | None = None
    """Tokens a reply may have; None: 16 for a verdict, else 96."""
    output_type: Annotated[str, Field(exclude=True)] = "str"
    """The type of what is written, as the step's signature has it."""

    @model_validator(mode="after")
    def _one_judge(self) -> Self:
        if (self.group is None) == (self.reader is None):
            raise ValueError(f"words take a group, such as {', '.join(SIDE_WORDS)}, or a reader: give one of the two")
        return self

    @property
    def asking(self) -> Asking:
        """What it asks: dialogues, with choices for a verdict; nothing where a reader judges."""
        if self.group is None:
            reader = None if self.reader is None else ReaderSettings("entailment", self.reader, self.revision)
            return Asking(local_reader=reader)
        verdict = ("answer_yes", "answer_no") if self.output_type == "bool" else ()
        groups = (self.group, *(name for name in (self.entry, self.wrong) if name is not None), *verdict)
        return Asking(
            engine_needs=EngineNeeds(chat=True, guided=bool(verdict)),
            words=WordFiles("groups", self.prompt, groups, language=self.prompt_language),
        )

    def budget(self, of_model: int | None) -> int | None:  # noqa: ARG002 - a verdict is short whatever the model's
        """Return the tokens a reply may have."""
        if self.reader is not None:
            return None
        return self.max_tokens or (_VERDICT_TOKENS if self.output_type == "bool" else _TEXT_TOKENS)


def check_words(words: ProgramSpec, signature: SignatureText) -> None:
    """Raise `ValueError` unless a step can ask `signature` in these words."""
    outputs, others = signature.outputs, [name for name in signature.inputs if name not in QUESTION_FIELDS]
    if isinstance(words, AsideSpec):
        kinds = ["bool", "float"][: len(outputs)] if words.reader is not None else [*outputs.values()][:1]
        if list(outputs.values()) != kinds or kinds[0] not in ("bool", "str", "list[str]"):
            raise ValueError(
                "these words return one bool, str or list[str]; a reader returns a bool and its probability"
            )
        if len([name for name in others if name != "answer"]) > (1 if "question" in signature.inputs else 2):
            raise ValueError("such words show a question and one text: name fewer fields")
        return
    if "answer" not in outputs or not outputs.keys() <= {"answer", "rationale"}:
        raise ValueError(f"words {words.kind} write only `answer`, and `rationale` if they reason: name no other field")
    if "question" not in signature.inputs or len(others) > 1:
        raise ValueError(f"words {words.kind} show one text and then the question: name `question` and one field")
