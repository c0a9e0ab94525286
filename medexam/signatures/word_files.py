"""Files of words: those in `words/` of this package and of installed ones by name, and the user's own by path."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from medexam.errors import SpecError
from medexam.inputs import read_regular
from medexam.questions import Language
from medexam.specs import parse_yaml
from medexam.specs.catalogue import find_added
from medexam.specs.programs.needs import WordFiles

T = TypeVar("T")
WORDS = resources.files("medexam.signatures") / "words"


def read_words_file(source: str | Path, key: str, suffix: str = "") -> tuple[str, str]:
    """Read the text of a shipped set of words or of the user's own file, and how it is called in messages.

    `key` is that of the program's spec that names it. Raises `SpecError` if there is neither.
    """
    shipped = WORDS / f"{source}{suffix}.yaml"
    try:
        if str(source) == Path(source).name and (file := shipped if shipped.is_file() else _added().get(shipped.name)):
            return file.read_text(encoding="utf-8"), f"{key} {str(source)!r}"
        return read_regular(Path(source)).decode(), str(source)
    except FileNotFoundError:
        raise SpecError(
            f"program.{key}: no file {str(source)!r}, and no set of that name; the shipped ones are {_shipped(suffix)}"
        ) from None
    except (OSError, ValueError) as error:
        raise SpecError(f"program.{key}: cannot read {source}: {error}") from None


def _added() -> Mapping[str, Path]:
    return {path.name: path for path in find_added("words").values()}


def _shipped(suffix: str) -> str:
    files = [*(entry.name for entry in WORDS.iterdir()), *_added()]
    names = (name.removesuffix(".yaml") for name in files if name.endswith(f"{suffix}.yaml"))
    return ", ".join(sorted(name.removesuffix(suffix) for name in names if bool(suffix) == name.endswith("_examples")))


def read_language_words(form: type[T], files: WordFiles, language: Language) -> tuple[T, str]:
    """Read the words of a prompt file for questions in `language`, and what the file is called.

    They are in the language that `files` names, else in that of the questions. Raises `SpecError` if there are none.
    """
    text, source_name = read_words_file(files.prompt, "prompt")
    language = files.language or language
    by_language: dict[Language, T] = validate_words(dict[Language, form], text, source_name)  # type: ignore[valid-type]
    if language not in by_language:
        raise SpecError(no_words(source_name, "prompt", language, by_language))
    return by_language[language], source_name


def no_words(source_name: str, key: str, language: Language, languages: Iterable[str]) -> str:
    """Write the message for a file without words in a language; `key` of the program's spec names it."""
    return (
        f"{source_name} has no words in {language!r}: set program.prompt_language to one that it has "
        f"({', '.join(sorted(languages))}), or name a file of your own in program.{key}"
    )


def validate_words(form: type[T], text: str, source_name: str) -> T:
    """Read the YAML `text` in a form; raises `SpecError` naming `source_name` and the place that is wrong."""
    words: T = _validate(cast("Any", form), text, source_name)
    return words


@lru_cache(maxsize=64)
def _validate(form: Any, text: str, source_name: str) -> Any:
    # Each program of each cell reads the same few files.
    try:
        return TypeAdapter(form).validate_python(parse_yaml(text, source_name))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise SpecError(f"{source_name}: {place or 'file'}: {first['msg']}") from None
