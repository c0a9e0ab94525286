"""Files of words: those shipped in `words/` by name, and the user's own by path."""

from importlib import resources
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from medexam.errors import SpecError
from medexam.specs import parse_yaml

M = TypeVar("M", bound=BaseModel)
WORDS = resources.files("medexam.signatures") / "words"


def read_words_file(source: str | Path, what: str, suffix: str = "") -> tuple[str, str]:
    """The text of a shipped set of words or of the user's own file, and how it is called in messages.

    `what` is the key of the program's spec that names it. Raises `SpecError` if there is neither.
    """
    shipped = WORDS / f"{source}{suffix}.yaml"
    if str(source) == Path(source).name and shipped.is_file():
        return shipped.read_text(encoding="utf-8"), f"{what} {str(source)!r}"
    try:
        return Path(source).read_text(encoding="utf-8"), str(source)
    except FileNotFoundError:
        raise SpecError(
            f"program.{what}: no file {str(source)!r}, and no set of that name; the shipped ones are {_shipped(suffix)}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"program.{what}: cannot read {source}: {error}") from None


def _shipped(suffix: str) -> str:
    names = (entry.name.removesuffix(".yaml") for entry in WORDS.iterdir() if entry.name.endswith(f"{suffix}.yaml"))
    return ", ".join(sorted(name.removesuffix(suffix) for name in names if bool(suffix) == name.endswith("_examples")))


def validate_words(model: type[M], text: str, where: str) -> M:
    """The YAML `text` as a `model`; raises `SpecError` naming `where` and the place that is wrong."""
    try:
        return model.model_validate(parse_yaml(text, where))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise SpecError(f"{where}: {place or 'file'}: {first['msg']}") from None
