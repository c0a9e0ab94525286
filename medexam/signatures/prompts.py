"""Prompts and solved examples, read from the YAML files in `words/` or from the user's own.

A prompt file maps a language to the instructions of each kind of program, and says whose turn they are. `$form` stands
for the answer format, and `$json` for the word JSON, which only `{Answer: n}` is called. An example file maps a
language to solved questions. Both are part of a run's identity.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from medexam.errors import SpecError
from medexam.frozen_model import FrozenModel
from medexam.questions import Exam, Language, Option, Question
from medexam.signatures.answer_format import render_answer
from medexam.signatures.task_words import load_task_words
from medexam.signatures.word_files import fill_words, read_language_words
from medexam.specs.programs.needs import WordFiles

Turn = Literal["system", "user"]
"""Whose turn instructions are: the system's, or the user's, in a turn of its own behind an empty system turn."""


@dataclass(frozen=True)
class SolvedQuestion:
    """An example to show before the question that is asked."""

    question: Question
    answer: int
    """The printed number of the right option."""
    rationale: str | None = None
    """The reasoning shown before the answer; None shows the answer alone."""


@dataclass(frozen=True)
class Prompt:
    """The words of one program in one language."""

    instructions: str
    """What the model is told before the question, with the answer format filled in."""
    turn: Turn = "system"
    """Whose turn that is."""
    examples: tuple[SolvedQuestion, ...] = ()


@dataclass(frozen=True)
class LikelihoodWords:
    """What stands before the options that a likelihood program reads, in one language."""

    context: str
    """With `$question` where the stem, or the stem and its options, stand."""
    premise: str | None
    """What stands in its place where an option's probability without the question is read; None where it is not."""


class _Likelihood(FrozenModel):
    option_text: str
    label: str
    premise: str = Field(min_length=1)


class _Instructions(FrozenModel):
    """A text alone is the system's turn."""

    turn: Turn = "system"
    instructions: str

    @model_validator(mode="before")
    @classmethod
    def _bare_text(cls, value: object) -> object:
        return {"instructions": value} if isinstance(value, str) else value


class _Words(FrozenModel):
    number: str = "[number]"
    zero_shot: _Instructions | None = None
    few_shot: _Instructions | None = None
    chain_of_thought: _Instructions | None = None
    likelihood: _Likelihood | None = None


class _Example(FrozenModel):
    stem: str
    discipline: str = ""
    """What the question is about, in one's own words; no prompt shows it."""
    options: list[str] = Field(min_length=2)
    answer: int
    rationale: str | None = None


def load_words(files: WordFiles, language: Language) -> dict[str, Any]:
    """Load the words of any layout in `language` as data, for a run's identity; raises `SpecError` where that fails."""
    if files.layout == "groups":
        task_words = load_task_words(files, language)
        return {"system": task_words.system, **task_words.groups}
    if files.layout == "likelihood":
        return asdict(load_likelihood_words(files, language))
    prompt = load_prompt(files, language)
    examples = [
        {"stem": e.question.stem, "options": [o.text for o in e.question.options], "answer": e.answer}
        | ({"rationale": e.rationale} if e.rationale else {})
        for e in prompt.examples
    ]
    turn = {} if prompt.turn == "system" else {"turn": prompt.turn}
    return {"instructions": prompt.instructions, **turn, "examples": examples}


def load_prompt(files: WordFiles, language: Language) -> Prompt:
    """Load the words that a program asks for a reply with in `language`.

    Raises `SpecError` when the file is missing or malformed, or has no words for this program or language.
    """
    language = files.language or language
    words, source_name = read_language_words(_Words, files.prompt, language)
    (kind,) = files.parts
    program_words: _Instructions | None = getattr(words, kind)
    if program_words is None:
        raise SpecError(f"{source_name} has no prompt for {kind} in {language!r}")
    form = files.answer_form
    instructions = fill_words(
        program_words.instructions if form == "braces" else program_words.instructions.replace(" $json", ""),
        f"{source_name}: {kind}",
        form=render_answer(words.number, form),
        example=render_answer(1, form),
        json="JSON",
    )
    examples = () if files.examples is None else _load_examples(files.examples, language)
    return Prompt(instructions.strip(), program_words.turn, examples)


def load_likelihood_words(files: WordFiles, language: Language) -> LikelihoodWords:
    """Load the words before the options that are read in `language`; raises `SpecError` as `load_prompt` does."""
    language = files.language or language
    words, source_name = read_language_words(_Words, files.prompt, language)
    if words.likelihood is None:
        raise SpecError(f"{source_name} has no prompt for likelihood in {language!r}")
    part, *other_parts = files.parts
    context = getattr(words.likelihood, part)
    if fill_words(context, f"{source_name}: likelihood", question="?") == context:
        raise SpecError(f"{source_name}: likelihood: the prompt {part} lacks $question")
    return LikelihoodWords(context, words.likelihood.premise if "premise" in other_parts else None)


def _load_examples(source: str | Path, language: Language) -> tuple[SolvedQuestion, ...]:
    """Load solved examples in `language` from a named set or a file; raises `SpecError` where that fails."""
    words, source_name = read_language_words(list[_Example], source, language, "examples")
    examples = []
    for number, example in enumerate(words, start=1):
        if not 1 <= example.answer <= len(example.options):
            raise SpecError(
                f"{source_name}: example {number} in {language!r}: answer {example.answer} is not an option"
            )
        options = tuple(Option(number=n, text=text) for n, text in enumerate(example.options, start=1))
        question = Question(
            key=f"examples/{number}",
            exam=Exam(name="examples", year=0, discipline=example.discipline),
            number=number,
            language=language,
            stem=example.stem,
            options=options,
        )
        examples.append(SolvedQuestion(question, example.answer, example.rationale))
    return tuple(examples)
