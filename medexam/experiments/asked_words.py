"""All words that a program asks with, as data: the same data, the same prompts, wherever the files lie."""

from typing import Any

from medexam.experiments.nearest import nearest_identity
from medexam.programs import loaded_words
from medexam.questions import Language
from medexam.signatures import load_words
from medexam.specs import AskingSpec, ProgramSpec


def asked_words(program: ProgramSpec, language: Language) -> dict[str, Any]:
    """The content of the files that `program` takes its words in `language` from; empty for one that asks no model.

    A loaded program stands in the place of the prompt's words. Raises `SpecError` where a file cannot be read, and
    `EngineError` where the encoder that chooses demonstrations is missing.
    """
    if not isinstance(program, AskingSpec):
        return {}
    place = getattr(program, "load", None)
    if place is None:
        return load_words(program, language).to_json()
    loaded = loaded_words(place)
    if loaded["nearest"] is not None:
        loaded["nearest"] = nearest_identity(**loaded["nearest"])
    return {"loaded": loaded}
