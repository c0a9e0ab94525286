"""Files of words: those shipped in `words/` by name, and the user's own by path."""

from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from medexam.errors import SpecError
from medexam.inputs import read_regular
from medexam.questions import Language
from medexam.specs import WordFiles, parse_yaml

T = TypeVar("T")
WORDS = resources.files("medexam.signatures") / "words"


def read_words_file(source: str | Path, what: str, suffix: str = "") -> tuple[str, str]:
    """The text of a shipped set of words or of the user's own file, and how it is called in messages.

    `what` is the key of the program's spec that names it. Raises `SpecError` if there is neither.
    """
    shipped = WORDS / f"{source}{suffix}.yaml"
    try:
        if str(source) == Path(source).name and shipped.is_file():
            return shipped.read_text(encoding="utf-8"), f"{what} {str(source)!r}"
        return read_regular(Path(source)).decode(), str(source)
    except FileNotFoundError:
        raise SpecError(
            f"program.{what}: no file {str(source)!r}, and no set of that name; the shipped ones are {_shipped(suffix)}"
        ) from None
    except (OSError, ValueError) as error:
        raise SpecError(f"program.{what}: cannot read {source}: {error}") from None


def _shipped(suffix: str) -> str:
    names = (entry.name.removesuffix(".yaml") for entry in WORDS.iterdir() if entry.name.endswith(f"{suffix}.yaml"))
    return ", ".join(sorted(name.removesuffix(suffix) for name in names if bool(suffix) == name.endswith("_examples")))


def read_language_words(form: type[T], files: WordFiles, language: Language) -> tuple[T, str]:
    """The words of a prompt file for questions in `language`, and what the file is called.

    They are in the language that `files` names, else in that of the questions. Raises `SpecError` if there are none.
    """
    text, where = read_words_file(files.prompt, "prompt")
    language = files.language or language
    by_language: dict[Language, T] = validate_words(dict[Language, form], text, where)  # type: ignore[valid-type]
    if language not in by_language:
        raise SpecError(no_words(where, "prompt", language, by_language))
    return by_language[language], where


def no_words(where: str, what: str, language: Language, known: Iterable[str]) -> str:
    """The message for a file without words in a language; `what` is the key of the program's spec that names it."""
    return (
        f"{where} has no words in {language!r}: set program.prompt_language to one that it has "
        f"({', '.join(sorted(known))}), or name a file of your own in program.{what}"
    )


def validate_words(form: type[T], text: str, where: str) -> T:
    """The YAML `text` in a form; raises `SpecError` naming `where` and the place that is wrong."""
    words: T = _validate(cast("Any", form), text, where)
    return words


@lru_cache(maxsize=64)
def _validate(form: Any, text: str, where: str) -> Any:
    # Each program of each cell reads the same few files.
    try:
        return TypeAdapter(form).validate_python(parse_yaml(text, where))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise SpecError(f"{where}: {place or 'file'}: {first['msg']}") from None
