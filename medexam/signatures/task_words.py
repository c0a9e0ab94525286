"""The words that questions are asked in which are answered in words: one template for each group of them.

A file maps a language to a system turn and to the groups; `words/` holds the shipped ones. Both are part of a run's
identity.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from string import Template

from medexam.errors import SpecError
from medexam.frozen_model import FrozenModel
from medexam.questions import Language, Task
from medexam.signatures.word_files import fill_words, read_language_words
from medexam.specs.programs.needs import WordFiles
from medexam.text import option_letters

_FIELDS = ("question", "options", "lettered_options", "answer", "reasoning", "context", "count")
"""What may follow a $ in a template."""


@dataclass(frozen=True)
class TaskWords:
    """The words of one program in one language."""

    system: str
    """The system turn; empty if there is none."""
    groups: Mapping[str, str]
    """Group of tasks that the program asks with -> the user's turn, with `$` before the name of each field."""


class _Words(FrozenModel):
    system: str = ""
    groups: dict[str, str]


def load_task_words(files: WordFiles, language: Language) -> TaskWords:
    """Load the words of a program's groups in `language`; the other groups of the file are left out.

    Raises `SpecError` when the file is missing or malformed, has none in this language or for one of the program's
    groups, or names an unknown field.
    """
    words, source_name = read_language_words(_Words, files.prompt, files.language or language)
    for group, template in words.groups.items():
        fill_words(template, f"{source_name}: {language}.groups.{group}", **dict.fromkeys(_FIELDS))
    if missing := [group for group in files.parts if group not in words.groups]:
        raise SpecError(f"program.prompt {files.prompt}: has no prompt for {', '.join(missing)}")
    return TaskWords(words.system.strip(), {group: words.groups[group].strip() for group in files.parts})


def fill(template: str, task: Task, *, context: str | None = None, count: int = 0) -> str:
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
