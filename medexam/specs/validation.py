"""One clear line for a spec that is wrong: where, what, and the nearest key that exists."""

import difflib
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from medexam.errors import SpecError
from medexam.specs.secret_values import check_secrets

OWN = "own"
"""The tag of the spec in a union whose kind is any name, not one of a list."""
ADDED = "(added)"
"""The tag of a spec whose kind a package adds; no part of the places that errors name."""
SYNONYMS: Mapping[str, str] = types.MappingProxyType(
    {
        "cot": "chain_of_thought",
        "rag": "retrieve_then_answer",
        "logprob": "likelihood",
        "logprobs": "likelihood",
        "shots": "examples",
        "zeroshot": "zero_shot",
        "fewshot": "few_shot",
        "year": "years",
        "lang": "language",
    }
)
"""What people write -> the name that a spec has for it."""
MOST_CHOICES = 20
"""Names that an error lists; of more it gives the nearest."""
CLOSEST = 3
LONGEST_VALUE = 100
"""Characters of a value that an error repeats."""
M = TypeVar("M", bound=BaseModel)
_MEMBER = re.compile(r"^(str|int|float|bool|path|none)$|\[")
"""How pydantic names the members of a union, which are no part of a place in a spec."""


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


class NestedError(ValueError):
    """What is wrong in a part whose class is known only when its `kind` is read."""

    def __init__(self, model: type[BaseModel], error: ValidationError) -> None:
        super().__init__(str(error))
        self.model = model
        self.error = error


def validate(model: type[M], tree: Mapping[str, Any]) -> M:
    """Validate `tree` as a `model`. Raise `SpecError` naming every wrong key in one line, and for a key or a password
    in it.
    """
    check_secrets(tree)
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        raise SpecError("; ".join(dict.fromkeys(_faults(model, error)))) from None


def field_at(model: type[BaseModel], path: str, *, source: str = "spec") -> None:
    """Raise `SpecError`, naming the nearest key, unless the dotted `path` exists in `model`."""
    models: list[type[BaseModel]] = [model]
    for depth, key in enumerate(path.split(".")):
        names = sorted({name for candidate in models for name in candidate.model_fields})
        if key not in names:
            where = ".".join(path.split(".")[:depth])
            raise SpecError(
                f"{source}: {path!r} does not exist: {_unknown(key, names, where, find_places(model, key))}"
            )
        kinds = [candidate.model_fields[key].annotation for candidate in models if key in candidate.model_fields]
        models = [inner for candidate in models if key in candidate.model_fields for inner in _models(candidate, key)]
        if not models and any(typing.get_origin(kind) is dict for kind in kinds):
            return  # any keys


def takes_one(model: type[BaseModel], path: str) -> bool:
    """Return whether the field at a dotted path takes one value and no list, wherever it exists; False if nowhere."""
    models: list[type[BaseModel]] = [model]
    *parents, leaf = path.split(".")
    for key in parents:
        models = [inner for candidate in models if key in candidate.model_fields for inner in _models(candidate, key)]
    fields = [candidate.model_fields[leaf] for candidate in models if leaf in candidate.model_fields]
    return bool(fields) and not any(_holds_many(field.annotation) for field in fields)


def _holds_many(annotation: Any) -> bool:
    """Return whether a field's type holds lists or mappings, or anything at all."""
    if annotation is Any or typing.get_origin(annotation) in (tuple, list, dict, set, frozenset):
        return True
    return any(map(_holds_many, typing.get_args(annotation)))


def find_places(model: type[BaseModel], key: str) -> list[str]:
    """Find where else in a spec there is a key of this name: `model.temperature` for `temperature`."""
    parts = [name for name in model.model_fields if name in ("dataset", "model", "program")]
    return [f"{part}.{key}" for part in parts if any(key in inner.model_fields for inner in _models(model, part))]


def _faults(model: type[BaseModel], error: ValidationError, within: tuple[str | int, ...] = ()) -> Iterator[str]:
    unions = set[str]()
    for item in error.errors():
        loc, where = [part for part in item["loc"] if isinstance(part, str)], _place((*within, *item["loc"]))
        # Each member of a union complains at the same place: the first one says enough.
        if loc and _MEMBER.search(loc[-1]):
            if where in unions:
                continue
            unions.add(where)
        if item["type"] == "extra_forbidden":
            names = _known(model, loc[:-1])
            elsewhere = [place for place in find_places(model, loc[-1]) if place.split(".")[0] != loc[0]]
            yield f"unknown key {where!r}: {_unknown(loc[-1], names, _place((*within, *item['loc'][:-1])), elsewhere)}"
        elif item["type"] == "union_tag_not_found":
            yield f"{where}: needs a kind"
        elif item["type"] == "union_tag_invalid":
            tags = [tag.strip().strip("'") for tag in item["ctx"]["expected_tags"].split(",")]
            tag = item["ctx"]["tag"]
            yield f"{where}.kind: {unknown_kind(tag, tags)}"
        elif item["type"] == "missing":
            yield f"{where}: is missing" + ("; add a line such as name: mine" if where == "name" else "")
        elif item["type"] == "value_error" and isinstance(fault := item["ctx"]["error"], NestedError):
            yield from _faults(fault.model, fault.error, (*within, *item["loc"]))
        elif item["type"] == "value_error":
            fault = item["ctx"]["error"]
            where = ".".join(filter(None, [where, getattr(fault, "place", "")]))
            yield f"{where or 'spec'}: {fault}"
        else:
            yield f"{where or 'spec'}: {_wanted(item)}, found {_told(item['input'])}"


def _place(loc: Sequence[str | int]) -> str:
    """Return a place as a spec has it: steps stand in a program, whatever pydantic calls which of them."""
    words = [str(part) for part in loc if not (str(part).startswith(("(", "literal[")) or _MEMBER.search(str(part)))]
    return ".".join(words).replace("program.flow.", "program.", 1).removesuffix(".flow")


_WANTED: Mapping[str, str] = types.MappingProxyType(
    {
        "string_pattern_mismatch": "input should be at most 64 letters, digits, dots, hyphens and underscores",
        "list_type": "input should be a list, such as [a, b]",
        "int_parsing": "input should be a whole number",
        "float_parsing": "input should be a number",
        "bool_parsing": "input should be true or false",
        "string_type": "input should be a text",
        "model_type": "input should be a name, or keys with their values",
        "dict_type": "input should be keys with their values",
    }
)
"""What pydantic wants, by the type of its error, in the words of a spec."""


def _wanted(item: Mapping[str, Any]) -> str:
    message: str = _WANTED.get(item["type"], item["msg"])
    return f"{message[0].lower()}{message[1:]}"


def _told(value: Any) -> str:
    """Return a value as an error repeats it: in no more than a line."""
    text = "null" if value is None else repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]} [...]"


def unknown_kind(kind: str, names: Sequence[str]) -> str:
    """Say that no kind is called so, and which are near."""
    names = [name if name != OWN else "your own as package.module:Name or ./file.py:Name" for name in names]
    return f"no kind is called {kind!r}: {_unknown(kind, names, '')}"


def _unknown(key: str, names: list[str], where: str, elsewhere: Sequence[str] = ()) -> str:
    synonyms = [SYNONYMS[key.lower()]] if SYNONYMS.get(key.lower()) in names else []
    suggestions = elsewhere or synonyms or difflib.get_close_matches(key, names, n=1, cutoff=0.6)
    suffix = f" of {where}" if where else ""
    advice = f"did you mean {suggestions[0]!r}? " if suggestions else ""
    if len(names) <= MOST_CHOICES:
        return f"{advice}the choices{suffix} are {', '.join(names)}"
    closest = difflib.get_close_matches(key, names, n=CLOSEST, cutoff=0)
    return f"{advice}the nearest of {len(names)} choices{suffix} are {', '.join(closest)}; `medexam schema` lists all"


def _known(model: type[BaseModel], loc: list[str]) -> list[str]:
    models: list[type[BaseModel]] = [model]
    for key in loc:
        inner = [m for candidate in models if key in candidate.model_fields for m in _models(candidate, key)]
        tagged = [candidate for candidate in models if _tag(candidate) == key]
        models = inner or tagged or models
    return sorted({field.alias or name for candidate in models for name, field in candidate.model_fields.items()})


def _tag(model: type[BaseModel]) -> str | None:
    kind = model.model_fields.get("kind")
    if kind is None:
        step = getattr(model, "step", None)
        return f"({step})" if isinstance(step, str) else None
    values = typing.get_args(kind.annotation)
    return values[0] if values else OWN


def _models(model: type[BaseModel], key: str) -> list[type[BaseModel]]:
    models: list[type[BaseModel]] = []
    queue: list[Any] = [model.model_fields[key].annotation]
    while queue:
        annotation = queue.pop()
        origin = typing.get_origin(annotation)
        if origin in (typing.Union, types.UnionType, typing.Annotated, tuple, list):
            queue.extend(typing.get_args(annotation))
        elif isinstance(annotation, Added):
            models.extend(annotation.models())
        elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
            models.append(annotation)
    return models
