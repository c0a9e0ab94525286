"""One clear line for a spec that is wrong: where, what, and the nearest key that exists."""

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from medexam.errors import SpecError
from medexam.text import hide_lookalikes

INSTEAD = "name the variable that holds the key in model.api_key_env"
_SYNONYMS = {"cot": "chain_of_thought", "rag": "retrieve_then_answer", "logprob": "likelihood", "shot": "examples"}
"""What people write, without a final s -> the name that a spec has for it."""
_MOST_CHOICES = 20
"""Names that an error lists; of more it gives the nearest."""
_WANTED = {
    "string_pattern_mismatch": "input should be at most 64 letters, digits, dots, hyphens and underscores",
    "model_type": "input should be a name, or keys with their values",
    "list_type": "input should be a list, such as [a, b]",
    "int_parsing": "input should be a whole number",
    "string_type": "input should be a text",
}
"""What pydantic wants, by the type of its error, in the words of a spec; of all others it says it itself."""
_MEMBER = re.compile(r"^(str|int|float|bool|path|none)$|\[")
"""How pydantic names the members of a union, which are no part of a place in a spec."""
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Added:
    """Marks a part of a spec that installed packages add to."""

    models: Callable[[], Iterable[type[BaseModel]]]
    """Gives what they add."""


class PlacedError(ValueError):
    """What is wrong inside the part of a spec that a validator was called with, and where in it."""

    def __init__(self, place: str, message: str) -> None:
        super().__init__(message)
        self.place = place


class UnknownKeyError(ValueError):
    """A key that a part of a spec does not have, and those that it has."""

    def __init__(self, key: str, names: Collection[str]) -> None:
        super().__init__(f"unknown key {key}")
        self.key, self.names = key, names


def validate(model: type[M], tree: Mapping[str, Any]) -> M:
    """Validate `tree` as a `model`. Raise `SpecError` naming what is wrong in one line, and for a key or a password in
    it, since specs are stored with their runs.
    """
    if secret := next((path for path, value in walk(tree) if looks_secret(value)), None):
        raise SpecError(f"{secret} looks like a secret, and specs are stored: {INSTEAD}")
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        raise SpecError("; ".join(dict.fromkeys(_faults(model, error)))) from None


def looks_secret(value: object) -> bool:
    """Return whether the value is a text with what looks like a key, or with an address that holds a user or a key."""
    return isinstance(value, str) and hide_lookalikes(value) != value


def walk(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value in nested mappings and lists, behind its dotted path."""
    if path:
        yield path, value
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    for name, child in inner:
        yield from walk(child, f"{path}.{name}" if path else str(name))


def takes_one(model: type[BaseModel], path: str) -> bool:
    """Return whether the field at a dotted path holds one value, and no list, mapping or anything at all."""

    def is_one(annotation: Any) -> bool:
        several = annotation is Any or get_origin(annotation) in (tuple, list, dict, set, frozenset)
        return not several and all(map(is_one, get_args(annotation)))

    models, fields = [model], list[FieldInfo]()
    for key in path.split("."):
        fields = [candidate.model_fields[key] for candidate in models if key in candidate.model_fields]
        models = [inner for field in fields for inner in _models(field)]
    return bool(fields) and all(is_one(field.annotation) for field in fields)


def find_places(model: type[BaseModel], key: str) -> list[str]:
    """Find where else in a spec there is a key of this name: `model.temperature` for `temperature`."""
    parts = {name: field for name, field in model.model_fields.items() if name in ("dataset", "model", "program")}
    return [
        f"{name}.{key}" for name, field in parts.items() if any(key in inner.model_fields for inner in _models(field))
    ]


def unknown_kind(kind: str, names: Collection[str]) -> str:
    """Say that no kind is called so, and which are near."""
    return f"no kind is called {kind!r}: {_advise(kind, names)}; your own is package.module:Name or ./file.py:Name"


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that a field of this type may hold, in a list or by itself."""
    if isinstance(annotation, FieldInfo):
        for inner in (annotation.annotation, *annotation.metadata):
            yield from _models(inner)
    elif isinstance(annotation, Added):
        yield from annotation.models()
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is not dict:
        for inner in get_args(annotation):
            yield from _models(inner)


def _faults(model: type[BaseModel], error: ValidationError, within: tuple[str | int, ...] = ()) -> Iterator[str]:
    places = set[str]()
    for item in error.errors():
        kind, loc = item["type"], (*within, *item["loc"])
        # Steps stand in a program, whatever pydantic calls which of them.
        words = [part for part in map(str, loc) if not (part.startswith(("(", "literal[")) or _MEMBER.search(part))]
        where = ".".join(words).replace("program.flow.", "program.", 1).removesuffix(".flow")
        # Each member of a union complains at the same place: the first one says enough.
        if where in places:
            continue
        places.add(where)
        fault = item.get("ctx", {}).get("error")
        if isinstance(fault, ValidationError):
            yield from _faults(model, fault, loc)
        elif isinstance(fault, UnknownKeyError):
            elsewhere = [place for place in find_places(model, fault.key) if place.split(".")[0] not in loc[:1]]
            place = ".".join(filter(None, [where, fault.key]))
            yield f"unknown key {place!r}: {_advise(fault.key, fault.names, elsewhere)}"
        elif fault is not None:
            yield f"{'.'.join(filter(None, [where, getattr(fault, 'place', '')])) or 'spec'}: {fault}"
        elif kind == "missing":
            yield f"{where}: is missing" + ("; add a line such as name: mine" if where == "name" else "")
        else:
            expected, value = _WANTED.get(kind, item["msg"]), item["input"]
            text = "null" if value is None else repr(value)
            text = text if len(text) <= 100 else f"{text[:100]} [...]"
            yield f"{where or 'spec'}: {expected[0].lower()}{expected[1:]}, found {text}"


def _advise(key: str, names: Collection[str], elsewhere: Collection[str] = ()) -> str:
    """Say which name was meant, and the names that there are, or of many the nearest."""
    names = sorted(names)
    synonyms = [name for name in (_SYNONYMS.get(key.lower().rstrip("s")),) if name in names]
    suggestions = [*elsewhere, *synonyms, *difflib.get_close_matches(key, names, n=1)]
    advice = f"did you mean {suggestions[0]!r}? " if suggestions else ""
    if len(names) <= _MOST_CHOICES:
        return f"{advice}the choices are {', '.join(names)}"
    nearest = ", ".join(difflib.get_close_matches(key, names, cutoff=0))
    return f"{advice}the nearest of {len(names)} choices are {nearest}; `medexam schema` lists all"
