"""The instructions and solved examples of a step, as its spec or the files that it names have them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from medexam.errors import SpecError
from medexam.questions import Language
from medexam.specs.programs.steps import AskingStep, AskStep

_TEXT_FILES = (".txt", ".md")


def read_step_words(step: AskingStep, language: Language) -> dict[str, Any]:
    """Read `instructions`, a text, and `demos`, a list of mappings; what the step does not say is left out.

    Raises `SpecError` if a file cannot be read, or there are no instructions in `language`.
    """
    words: dict[str, Any] = {}
    instructions = step.instructions
    if isinstance(instructions, Mapping):
        if language not in instructions:
            raise SpecError(f"instructions: none in {language!r}: add some beside those in {', '.join(instructions)}")
        instructions = instructions[language]
    if instructions is not None:
        words["instructions"] = _read(instructions).strip() if is_text_file(instructions) else instructions
    if isinstance(step, AskStep) and step.demos:
        demos = yaml.safe_load(_read(step.demos)) if isinstance(step.demos, str) else list(step.demos)
        if not isinstance(demos, list) or not all(isinstance(demo, dict) for demo in demos):
            raise SpecError(f"demos: {step.demos} is not a list of mappings with the signature's fields")
        words["demos"] = demos
    return words


def is_text_file(instructions: str) -> bool:
    """Return whether instructions name a file that holds them."""
    return instructions.endswith(_TEXT_FILES) and len(instructions.split()) == 1


def _read(file: str) -> str:
    try:
        return Path(file).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"cannot read {file}: {error}") from None
