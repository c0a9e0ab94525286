"""Files of words: those in `words/` of this package and of installed ones by name, and the user's own by path."""

from functools import lru_cache
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from medexam.errors import SpecError
from medexam.inputs import read_regular
from medexam.questions import Language
from medexam.specs import parse_yaml
from medexam.specs.catalogue import find_added

T = TypeVar("T")
WORDS = resources.files("medexam.signatures") / "words"


def read_words_file(source: str | Path, key: str, suffix: str = "") -> tuple[str, str]:
    """Read the text of a shipped set of words or of the user's own file, and how it is called in messages.

    `key` is that of the program's spec that names it. Raises `SpecError` if there is neither.
    """
    shipped = WORDS / f"{source}{suffix}.yaml"
    is_name = str(source) == Path(source).name
    added_files = {} if is_name and shipped.is_file() else {path.name: path for path in find_added("words").values()}
    try:
        if is_name and (file := shipped if shipped.is_file() else added_files.get(shipped.name)):
            return file.read_text(encoding="utf-8"), f"{key} {str(source)!r}"
        return read_regular(Path(source)).decode(), str(source)
    except FileNotFoundError:
        files = [
            entry.name for entry in (*WORDS.iterdir(), *added_files.values()) if entry.name.endswith(f"{suffix}.yaml")
        ]
        sets = sorted(name.removesuffix(f"{suffix}.yaml") for name in files if bool(suffix) == ("_examples" in name))
        raise SpecError(
            f"program.{key}: no file {str(source)!r}, and no set of that name; the shipped ones are {', '.join(sets)}"
        ) from None
    except (OSError, ValueError) as error:
        raise SpecError(f"program.{key}: cannot read {source}: {error}") from None


def read_language_words(form: type[T], source: str | Path, language: Language, key: str = "prompt") -> tuple[T, str]:
    """Read the words of a file in `language`, and what the file is called; `key` of the program's spec names the file.

    Raises `SpecError` if there are none.
    """
    text, source_name = read_words_file(source, key, "_examples" if key == "examples" else "")
    by_language: dict[Language, T] = validate_words(dict[Language, form], text, source_name)  # type: ignore[valid-type]
    if not by_language.get(language):
        raise SpecError(
            f"{source_name} has no words in {language!r}: set program.prompt_language to one that it has "
            f"({', '.join(sorted(by_language))}), or name a file of your own in program.{key}"
        )
    return by_language[language], source_name


def fill_words(template: str, place: str, **values: object) -> str:
    """Fill a template of words; raises `SpecError`, naming its place, if it has a field that `values` lacks."""
    try:
        return Template(template).substitute(values)
    except (KeyError, ValueError) as error:
        raise SpecError(f"{place}: only ${', $'.join(values)} may follow a $: {error}") from None


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
