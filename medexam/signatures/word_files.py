"""The words that programs ask with: files in `words/` of this package and of installed ones by name, and the user's own
by path. All are part of a run's identity.

A prompt file maps a language to the instructions of each kind of program, and says whose turn they are; or to a system
turn and a template for each group of questions that are answered in words. `$form` stands for the answer format, and
`$json` for the word JSON, which only `{Answer: n}` is called. An example file maps a language to solved questions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from string import Template
from typing import Annotated, Any, Literal, TypeVar

import dspy
from pydantic import Field, StringConstraints, TypeAdapter, ValidationError, model_validator

from medexam.errors import SpecError
from medexam.frozen_model import FrozenModel
from medexam.questions import Exam, Language, Option, Question, Task
from medexam.signatures.answer_format import render_answer
from medexam.specs import parse_yaml
from medexam.specs.base import describe_faults
from medexam.specs.catalogue import find_added
from medexam.specs.programs.words import WORDS, WordsSpec
from medexam.text import option_letters

T = TypeVar("T")
Turn = Literal["system", "user"]
"""Whose turn instructions are: the system's, or the user's, in a turn of its own behind an empty system turn."""
_WORDS = resources.files("medexam.signatures") / "words"
_FIELDS = {
    "groups": ("question", "options", "lettered_options", "answer", "reasoning", "context", "count"),
    "likelihood": ("question",),
}
"""Layout -> what may follow a $ in its templates."""
_KINDS = ("zero_shot", "few_shot", "chain_of_thought")


@dataclass(frozen=True)
class Words:
    """The words of one program in one language."""

    parts: Mapping[str, str]
    """What a prompt file holds under each of the parts that the program takes of it: instructions with the answer
    format filled in, what stands around a question whose options are read, or the user's turn of a group with `$`
    before the name of each field."""
    system: str = ""
    """The system turn of groups; empty if there is none."""
    turn: Turn = "system"
    """Whose turn instructions are."""
    examples: tuple[dspy.Example, ...] = ()
    """Solved questions to show before the one that is asked."""


class _Instructions(FrozenModel):
    """A text alone is the system's turn."""

    turn: Turn = "system"
    instructions: str

    @model_validator(mode="before")
    @classmethod
    def _bare_text(cls, value: object) -> object:
        return {"instructions": value} if isinstance(value, str) else value


class _Prompts(FrozenModel):
    number: str = "[number]"
    zero_shot: _Instructions | None = None
    few_shot: _Instructions | None = None
    chain_of_thought: _Instructions | None = None
    likelihood: dict[Literal["option_text", "label", "premise"], str] = Field(default_factory=dict)
    system: str = ""
    groups: dict[str, Annotated[str, StringConstraints(strip_whitespace=True)]] = Field(default_factory=dict)


class _Example(FrozenModel):
    stem: str
    discipline: str = ""
    """What the question is about, in one's own words; no prompt shows it."""
    options: list[str] = Field(min_length=2)
    answer: int
    rationale: str | None = None


def load_words(spec: WordsSpec, language: Language) -> Words:
    """Load the words that a program asks with in `language`; what else the file holds is left out.

    Raises `SpecError` when the file is missing or malformed, names an unknown field, or has no words for this program
    or language.
    """
    language = spec.prompt_language or language
    prompts, source = _read(_Prompts, spec.prompt or WORDS[spec.kind]["prompt"], language)
    layout = "likelihood" if spec.asks == "likelihood" else "groups"
    templates: Any = getattr(prompts, layout)
    fields = () if spec.asks == "reply" else _FIELDS[layout]
    for part, template in templates.items() if fields else ():
        _fill(template, f"{source}: {language}.{layout}.{part}", **dict.fromkeys(fields))
    if not fields:
        templates = {kind: asked.instructions for kind in _KINDS if (asked := getattr(prompts, kind))}
    if missing := [part for part in spec.parts if not templates.get(part)]:
        raise SpecError(f"{source} has no prompt for {', '.join(missing)} in {language!r}")
    parts = {part: str(templates[part]) for part in spec.parts}
    if fields:
        if layout == "likelihood" and "$question" not in parts[spec.read]:
            raise SpecError(f"{source}: likelihood: the prompt {spec.read} lacks $question")
        return Words(parts, prompts.system.strip())
    kind, form = spec.kind, spec.answer_form
    values = {"form": render_answer(prompts.number, form), "example": render_answer(1, form), "json": "JSON"}
    template = parts[kind] if form == "braces" else parts[kind].replace(" $json", "")
    examples = _load_examples(spec.examples, language) if spec.kind == "few_shot" else ()
    words = {kind: _fill(template, f"{source}: {kind}", **values).strip()}
    return Words(words, turn=getattr(prompts, kind).turn, examples=examples)


def describe_words(spec: WordsSpec, language: Language) -> dict[str, Any]:
    """Load the words of a program as data, for a run's identity; raises `SpecError` as `load_words` does."""
    words = load_words(spec, language)
    examples = [
        {"question": one.question.printed, "answer": one.answer, "rationale": one.get("rationale")}
        for one in words.examples
    ]
    return {"texts": words.parts, "system": words.system, "turn": words.turn, "examples": examples}


def fill_task(template: str, task: Task, *, context: str | None = None, count: int = 0) -> str:
    """Write the user's turn for a task; `context` replaces the task's own, `count` says how many parts it has.

    Options stand a line each, as they are or behind the letter A, B and so on: beyond Z the characters that follow it
    in ASCII, as the shared task's released code has it. The steps of a reasoning are shown as that code shows them, as
    a Python list.
    """
    letters = option_letters(task.options)
    return Template(template).substitute(
        question=task.question,
        options="\n".join(task.options),
        lettered_options="\n".join(f"{letter}: {option}" for letter, option in zip(letters, task.options, strict=True)),
        answer=task.given_answer,
        reasoning=str(list(task.given_reasoning)),
        context=task.context if context is None else context,
        count=count,
    )


def _load_examples(source: str | Path, language: Language) -> tuple[dspy.Example, ...]:
    """Load solved examples in `language` from a named set or a file; raises `SpecError` where that fails."""
    words, source_name = _read(list[_Example], source, language, "examples")
    examples = []
    for number, example in enumerate(words, start=1):
        if not 1 <= example.answer <= len(example.options):
            raise SpecError(
                f"{source_name}: example {number} in {language!r}: answer {example.answer} is not an option"
            )
        question = Question(
            key=f"examples/{number}",
            exam=Exam(name="examples", year=0, discipline=example.discipline),
            number=number,
            language=language,
            stem=example.stem,
            options=tuple(Option(number=n, text=text) for n, text in enumerate(example.options, start=1)),
        )
        rationale = {} if example.rationale is None else {"rationale": example.rationale}
        examples.append(dspy.Example(question=question, answer=example.answer, **rationale).with_inputs("question"))
    return tuple(examples)


def _read(form: type[T], source: str | Path, language: Language, key: str = "prompt") -> tuple[T, str]:
    """Read the words of a file in `language`, and what the file is called; `key` of the program's spec names the file.

    Raises `SpecError` if there are none.
    """
    suffix = "_examples.yaml" if key == "examples" else ".yaml"
    files = {entry.name: entry for entry in (*find_added("words").values(), *_WORDS.iterdir())}
    file = files.get(f"{source}{suffix}") if str(source) == Path(source).name else None
    source_name = str(source) if file is None else f"{key} {str(source)!r}"
    try:
        text = Path(source).read_bytes().decode() if file is None else file.read_text(encoding="utf-8")
    except FileNotFoundError:
        sets = sorted(
            name.removesuffix(suffix)
            for name in files
            if name.endswith(suffix) and (key == "examples" or "_examples" not in name)
        )
        raise SpecError(
            f"program.{key}: no file {str(source)!r}, and no set of that name; the shipped ones are {', '.join(sets)}"
        ) from None
    except (OSError, ValueError) as error:
        raise SpecError(f"program.{key}: cannot read {source}: {error}") from None
    by_language: dict[Language, T] = validate_words(dict[Language, form], text, source_name)  # type: ignore[valid-type]
    if not by_language.get(language):
        raise SpecError(
            f"{source_name} has no words in {language!r}: set program.prompt_language to one that it has "
            f"({', '.join(sorted(by_language))}), or name a file of your own in program.{key}"
        )
    return by_language[language], source_name


def _fill(template: str, place: str, **values: object) -> str:
    """Fill a template of words; raises `SpecError`, naming its place, if it has a field that `values` lacks."""
    try:
        return Template(template).substitute(values)
    except (KeyError, ValueError) as error:
        raise SpecError(f"{place}: only ${', $'.join(values)} may follow a $: {error}") from None


@lru_cache(maxsize=64)
def validate_words(form: Any, text: str, source_name: str) -> Any:
    """Read the YAML `text` in a form; raises `SpecError` naming `source_name` and the place that is wrong."""
    # Each program of each cell reads the same few files.
    try:
        return TypeAdapter(form).validate_python(tree := parse_yaml(text, source_name, lines=True))
    except ValidationError as error:
        raise SpecError(f"{'' if tree else f'{source_name}: '}{describe_faults(error, tree=tree)}") from None
