"""What all specs share: parts that refuse keys they do not have, names of code, YAML, and one line for a fault."""

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar, Self, TypeVar, get_args, get_origin

import yaml
from pydantic import AfterValidator, BaseModel, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic.fields import FieldInfo

from medexam.errors import SpecError
from medexam.frozen_model import FrozenModel
from medexam.plugins import added_names, is_own_name, ships
from medexam.text import hide_lookalikes, nearest, shorten, writable

RETRIEVERS = "medexam.retrievers"
ENGINES = "medexam.engines"
BENCHMARKS = "medexam.benchmarks"
OWN_METRICS = "medexam.metrics"
OPTIMIZERS = "medexam.optimizers"
PROGRAMS = "medexam.programs"
KIND_FILES = "medexam.kinds"
ALTERATIONS = "medexam.alterations"
"""The entry point groups of short names, by what they name."""
INSTEAD = "name the variable that holds the key in model.api_key_env"
_SYNONYMS = {"cot": "chain_of_thought", "rag": "retrieve_then_answer", "logprob": "likelihood", "shot": "examples"}
"""What people write, without a final s -> the name that a spec has for it."""
_MOST_CHOICES = 20
"""Names that an error lists; of more it gives the nearest."""
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
_WANTED = {
    "model_type": "input should be a name, or keys with their values",
    **dict.fromkeys(("list_type", "tuple_type"), "input should be a list, such as [a, b]"),
    "int_parsing": "input should be a whole number",
    "string_type": "input should be a text",
    NAME: "input should be at most 64 letters, digits, dots, hyphens and underscores",
}
"""What pydantic wants, by its pattern or its error's type, in the words of a spec; of all others it says it itself."""
_MEMBER = re.compile(r"^(str|int|float|bool|path|none)$|\[")
"""How pydantic names the members of a union, which are no part of a place in a spec."""
M = TypeVar("M", bound=BaseModel)


class Spec(FrozenModel):
    """Base of every part of an experiment's spec."""

    other_names: ClassVar[Mapping[str, str]] = {}
    """What a file may call a field -> the field."""
    short_form: ClassVar[str] = ""
    """The field that a text means that stands for the whole part; empty: none."""

    def __hash__(self) -> int:
        """Return the hash of its JSON: a field may hold a list."""
        return hash(self.model_dump_json())

    @classmethod
    def keys_of(cls, tree: Mapping[str, Any]) -> Collection[str]:  # noqa: ARG003
        """Return the keys that such a part of a file may have; raises `ValueError` if it is no such part."""
        return {field.alias or name for name, field in cls.model_fields.items()}

    @property
    def own(self) -> dict[str, Any]:
        """The keys that it has, with their values."""
        values = {field.alias or name: getattr(self, name) for name, field in type(self).model_fields.items()}
        keys = self.keys_of(values)
        return {key: value for key, value in values.items() if key in keys}

    @model_validator(mode="wrap")
    @classmethod
    def _read_keys(cls, values: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        """Take `years: 2016` for `years: [2016]`, where a field is a list and never one value alone."""
        if isinstance(values, str):
            if not cls.short_form:
                raise ValueError(f"{values[:60]!r} is a text: write keys with their values")
            values = {cls.short_form: values}
        if not isinstance(values, Mapping):
            return read(values)
        tree = {cls.other_names.get(name, name): value for name, value in values.items()}
        if len(tree) < len(values):
            raise ValueError("two keys are the same field: leave one of them out")
        names = cls.keys_of(tree)
        unknown = [str(name) for name in tree if name not in names]
        if unknown and cls.model_config["extra"] == "forbid":
            raise PlacedError(unknown[0], "unknown key", names)
        for name in tree.keys() & cls.model_fields.keys():
            kind = cls.model_fields[name].annotation
            kinds = (kind,) if get_origin(kind) is tuple else get_args(kind)
            is_list = any(get_origin(one) is tuple for one in kinds) and not {str, int} & {*kinds}
            if isinstance(tree[name], str | int) and is_list:
                tree[name] = (tree[name],)
        return read(tree)

    @model_validator(mode="after")
    def _refuse(self) -> Self:
        for kind in type(self).__mro__:
            for words, cases in _REFUSED.get(kind.__name__, {}).items():
                if any(all(self._holds(name, target) for name, target in case.items()) for case in cases):
                    raise ValueError(words)
        return self

    def _holds(self, name: str, target: Any) -> bool:
        field = type(self).model_fields.get(name)
        return holds(getattr(self, name), target, field and field.get_default(call_default_factory=True))


def holds(value: Any, target: Any, default: Any = None) -> bool:
    """Return whether a field has the value, or one of a list; `set` is any but its default, `unset` is that."""
    if target in ("set", "unset"):
        return bool((value == default) == (target == "unset"))
    return any(value == one for one in (target if isinstance(target, list) else [target]))


class PlacedError(ValueError):
    """What is wrong inside the part of a spec that a validator was called with, and where in it."""

    def __init__(self, place: str, message: str, names: Collection[str] = ()) -> None:
        """`names`: the keys that the part has, where `place` is one that it does not have."""
        super().__init__(message)
        self.place, self.names = place, names


def part_of(group: str, shipped: Any = None) -> AfterValidator:
    """Return what checks a field that names a part: one of the literal `shipped`, an added one, or code."""
    return AfterValidator(lambda name: part_name(name, get_args(shipped), group))


def part_name(name: str, shipped: Collection[str], group: str) -> str:
    """Return `name` if it ships with the core or beside it, else the code that it means, so that a stored run needs
    neither folder nor entry point; raise `ValueError` if it is neither.
    """
    if name in shipped or ships(name, group):
        return name
    if name in added_names(group):
        return f"{group}:{name}"
    if not is_own_name(name, group):
        names = [*shipped, *added_names(group)]
        near = f": did you mean {near}?" if (near := nearest(name, names)) else ""
        problem = f"is none of {', '.join(names)}{near}" if names else "names no code"
        raise ValueError(f"{name!r} {problem}; your own is package.module:Name or ./file.py:Name")
    place, _, attribute = name.rpartition(":")
    return f"{Path(place).expanduser().absolute()}:{attribute}" if place.endswith(".py") else name


def class_name(name: str) -> str:
    """Return `package.module.Name` as `package.module:Name`, and any other name as it is."""
    module, dot, attribute = name.rpartition(".")
    return f"{module}:{attribute}" if dot and ":" not in name else name


def short_name(name: str) -> str:
    """Return how a part is called in tables: as the object that a name means."""
    return name.rpartition(":")[2]


class SourceText(str):
    """A text of a YAML file or a flag that knows its place there, which an error names."""

    source: str

    def __new__(cls, text: str, source: str = "") -> Self:
        """Keep `source`, such as `study.yaml, line 3` or `--set`."""
        sourced = super().__new__(cls, text)
        sourced.source = source
        return sourced


_NO_PATH = SourceText("")


class _Loader(yaml.SafeLoader):
    keys: tuple[str, ...] = ("str",)
    knows_lines = False

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Refuse a key that is no text or stands twice, which PyYAML lets replace the first."""
        node, lines = super().compose_mapping_node(anchor), dict[str, int]()
        for key, _ in node.value:
            if (kind := key.tag.rpartition(":")[2]) == "merge":
                continue
            line = f"{self.name}, line {key.start_mark.line + 1}"
            if kind not in self.keys:
                raise SpecError(f"{line}: a key must be a text; put it in quotes")
            if key.value in lines:
                raise SpecError(f"{line}: key {key.value[:80]!r} occurs twice, first in line {lines[key.value]}")
            lines[key.value] = key.start_mark.line + 1
        return node

    def construct_scalar(self, node: Any) -> Any:
        """Return a scalar's text, and refuse one that no path or prompt can hold."""
        text, source = super().construct_scalar(node), f"{self.name}, line {node.start_mark.line + 1}"
        if "\0" in text:
            raise SpecError(f"{source}: a text holds a null character")
        return SourceText(text, source) if self.knows_lines else text


yaml.SafeDumper.add_representer(SourceText, yaml.SafeDumper.represent_str)


def find_source(tree: Any, place: str = "") -> str:
    """Return where a part of a spec was written, or else the nearest part around it, with a colon; empty: nowhere."""
    first = next(iter(tree), "") if isinstance(tree, Mapping) else tree
    sources = [path.source for path, _ in walk(tree) if f"{place}.".startswith(f"{path}.") and path.source]
    source = sources[-1] if sources else getattr(first, "source", "")
    return f"{source}: " if source else ""


def parse_yaml(text: str, where: str, *, numbered: bool = False, lines: bool = False) -> Any:
    """Parse the value of a YAML text: keys are texts, and each stands once, where PyYAML lets a second one replace it.

    `numbered`: a key may be a whole number too. `lines`: texts know theirs. Raises `SpecError` with the line where it
    breaks.
    """
    try:
        loader = _Loader(text)
        loader.name, loader.knows_lines = where, lines
        loader.keys = ("str", "int") if numbered else ("str",)
        return writable(loader.get_single_data())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        problem = " ".join((getattr(error, "problem", None) or str(error)).split())
        raise SpecError(f"{where}{line}: not YAML: {problem}") from None
    except (ValueError, OverflowError, RecursionError) as error:
        raise SpecError(f"{where}: a value cannot be read: {str(error).split(';')[0]}") from None


_REFUSED: Mapping[str, Mapping[str, Any]] = parse_yaml(
    Path(__file__).with_name("refused.yaml").read_text(encoding="utf-8"), "refused.yaml"
)
"""Class of a spec -> what is said of fields that contradict each other -> their values, or several such cases."""


def validate(model: type[M], tree: Mapping[str, Any]) -> M:
    """Validate `tree` as a `model`. Raise `SpecError` naming what is wrong in one line, and for a key or a password in
    it, since specs are stored with their runs.
    """
    texts = ((path, value) for path, value in walk(tree) if isinstance(value, str))
    if secret := next((path for path, text in texts if hide_lookalikes(text) != text), None):
        raise SpecError(f"{find_source(tree, secret)}{secret} looks like a secret, and specs are stored: {INSTEAD}")
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        raise SpecError(describe_faults(error, model, tree)) from None


def walk(value: Any, path: SourceText = _NO_PATH) -> Iterator[tuple[SourceText, Any]]:
    """Yield every value in nested mappings and lists, behind its dotted path, which knows where it was written."""
    if path:
        yield path, value
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    for name, child in inner:
        source = getattr(child, "source", "") or getattr(name, "source", path.source)
        yield from walk(child, SourceText(f"{path}.{name}" if path else str(name), source))


def takes_one(model: type[BaseModel], path: str) -> bool:
    """Return whether the field at a dotted path holds one value, and no list, mapping or anything at all."""

    def is_one(annotation: Any) -> bool:
        one = annotation is not Any and get_origin(annotation) not in (tuple, list, dict)
        return one and all(map(is_one, get_args(annotation)))

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


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, FieldInfo):
        for inner in (annotation.annotation, *annotation.metadata):
            yield from _models(inner)
    elif isinstance(annotation, FunctionType):
        # What installed packages add to.
        yield from annotation()
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is not dict:
        for inner in get_args(annotation):
            yield from _models(inner)


def describe_faults(error: ValidationError, model: type[BaseModel] = BaseModel, tree: Any = None) -> str:
    """Describe what is wrong with a `model`, or with what is written in a file, in one line; of a `tree` from a file
    with its lines.
    """
    faults = dict[str, str]()
    for item in error.errors():
        kind, fault = item["type"], item.get("ctx", {}).get("error")
        # Steps stand in a program, whatever pydantic calls which of them.
        words = [
            part for part in map(str, item["loc"]) if not (part.startswith(("(", "literal[")) or _MEMBER.search(part))
        ]
        where = ".".join(words).replace("program.flow.", "program.", 1).removesuffix(".flow")
        # Each member of a union complains at the same place: the first one says enough.
        if where in faults:
            continue
        key = getattr(fault, "place", "")
        place = ".".join(filter(None, [where, key])) or "all of it"
        if names := getattr(fault, "names", ()):
            elsewhere = [other for other in find_places(model, key) if other.split(".")[0] not in words[:1]]
            faults[where] = f"unknown key {place!r}: {advise(key, names, elsewhere)}"
        elif fault is not None:
            faults[where] = f"{place}: {fault}"
        elif kind == "missing":
            faults[where] = f"{where}: is missing" + "; add a line such as name: mine" * (where == "name")
        else:
            expected, value = _WANTED.get(item.get("ctx", {}).get("pattern", kind), item["msg"]), item["input"]
            text = shorten("null" if value is None else repr(value), 100)
            faults[where] = f"{place}: {expected[0].lower()}{expected[1:]}, found {text}"
        faults[where] = find_source(tree, place) + faults[where]
    return "; ".join(faults.values())


def advise(key: str, names: Collection[str], elsewhere: Collection[str] = ()) -> str:
    """Say which name was meant, and the names that there are, or of many the nearest."""
    names = sorted(names)
    synonyms = [name for name in (_SYNONYMS.get(key.lower().rstrip("s")),) if name in names]
    suggestions = [*elsewhere, *synonyms, *difflib.get_close_matches(key, names, n=1)]
    advice = f"did you mean {suggestions[0]!r}? " if suggestions else ""
    if len(names) <= _MOST_CHOICES:
        return f"{advice}the choices are {', '.join(names)}"
    near = ", ".join(difflib.get_close_matches(key, names, cutoff=0))
    return f"{advice}the nearest of {len(names)} choices are {near}; `medexam schema` lists all"
