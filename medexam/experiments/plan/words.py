"""All words that a program asks with, as data: the same data, the same prompts, wherever the files lie."""

from typing import Any

from medexam.errors import SpecError
from medexam.experiments.plan.nearest_demonstrations import nearest_identity
from medexam.plugins import hash_source
from medexam.programs.loading import loaded_words
from medexam.questions import Language
from medexam.signatures.word_files import describe_words as describe_files
from medexam.specs import ProgramSpec
from medexam.specs.names import PROGRAMS
from medexam.specs.programs.flows import FlowSpec, StepPart
from medexam.specs.programs.own import ADAPTERS
from medexam.specs.programs.steps import NEAREST, AskStep


def asked_words(program: ProgramSpec, language: Language) -> dict[str, Any]:
    """Read the content of the files that `program` takes its words in `language` from; empty for one without words.

    A loaded program replaces the prompt's words, and the encoder that chooses demonstrations is known by its
    content. Raises `SpecError` where a file cannot be read, and `EngineError` where the encoder is missing.
    """
    words = describe_words(program, language)
    if nearest_settings := words.get("loaded", {}).get("nearest"):
        words["loaded"]["nearest"] = nearest_identity(**nearest_settings)
    for part in program.flow.parts.values() if program.flow is not None else ():
        if isinstance(part.step, AskStep) and part.step.nearest is not None:
            words["asked_with"][part.name]["nearest"] = nearest_identity(part.step.nearest, NEAREST)
    return words


def describe_words(program: ProgramSpec, language: Language) -> dict[str, Any]:
    """Read what `asked_words` gives, with such an encoder by its name, so that its weights are not looked at."""
    words: dict[str, Any] = {}
    if program.kind in program.asking.codes:
        words["source"] = hash_source(program.kind, PROGRAMS)
    if program.asking.adapter_code is not None:
        words["adapter"] = hash_source(program.asking.adapter_code, ADAPTERS)
    if program.loads is not None:
        words["loaded"] = loaded_words(program.loads, of_module=program.asking.module_adapter is not None)
        if program.asking.words is not None and (turn := describe_files(program.asking.words, language).get("turn")):
            words["turn"] = turn
    elif program.asking.words is not None and program.flow is None:
        words |= describe_files(program.asking.words, language)
    if program.flow is not None:
        words |= _describe_steps(program.flow, language)
    return words


def _describe_steps(program: FlowSpec, language: Language) -> dict[str, Any]:
    """Describe the steps, what each part asks with, and the content of the files that they name."""
    own_modules = {part.name: part.own_module for part in program.parts.values() if part.own_module is not None}
    parts = program.parts.values() if program.loads is None else ()
    sources = {name: hash_source(module, PROGRAMS) for name, module in own_modules.items()}
    return {
        "parts": {part.name: describe_words(part.program, language) for part in parts},
        "asked_with": {part.name: _describe_step(part, language) for part in program.parts.values()},
        "sources": sources | {f"combine {name}": hash_source(name, PROGRAMS) for name in program.combining_code},
    }


def _describe_step(part: StepPart, language: Language) -> dict[str, Any]:
    cite = getattr(part.step, "cite", None)
    try:
        words = part.step.read_words(language)
        return words if cite is None else {**words, "cite": describe_files(cite.files, language)}
    except SpecError as error:
        raise SpecError(f"program.{part.place}: {error}") from None
