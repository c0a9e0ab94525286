"""The kinds of programs: what the `program` part of a spec may be, told apart by `kind`.

A strategy is a file: one of `specs/kinds`, one that a spec names (`./mine.yaml`), or one whose path an installed
package names in the entry point group `medexam.kinds`. A file has `help`, `asks` (whose settings a spec may set too:
`reply`, `likelihood`, `task` or `module`), `parameters`, and `steps` in which `$name` stands for what a parameter is. A
step with `only: {name: value}` is there if the parameter has that value, or one of a list of values; `set` stands for
any. What is set and stands in no step is put into the step that writes `answer`, or into `retrieve: stem`, whose `k`,
`query` and `query_language` a spec may set too. What these steps say themselves it may not set.

A file of a kind that is code names what builds it by `calls`, in place of `asks` and `steps`: `package.module:function`
of its spec, the language of the questions and a `ProgramContext`. `answers` lists the forms of questions that it
answers, by default numbered options; `any` is all. With a parameter `retriever` it looks up passages where these are
numbered options; the weights of the local model that a parameter `reader` names are in its context; `label` is what
tables call it.
"""

import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    create_model,
    model_validator,
)

from medexam.errors import SpecError
from medexam.kept import keep
from medexam.plugins import added_names, is_own_name, load_object, ships
from medexam.questions import Language
from medexam.specs.base import (
    KIND_FILES,
    PROGRAMS,
    PlacedError,
    Spec,
    advise,
    describe_faults,
    find_source,
    holds,
    parse_yaml,
    validate,
    walk,
)
from medexam.specs.dataset import STORED, Split
from medexam.specs.programs.needs import Asking, PositiveInt, RetrievalSettings
from medexam.specs.programs.programs import FlowSpec, ModuleSpec, OwnSpec, ProgramSpec
from medexam.specs.programs.steps import Step
from medexam.specs.programs.words import TAKES, WordsSpec
from medexam.specs.retriever import RetrieverSpec
from medexam.text import nearest

Tree = dict[str, Any]
_FILES = sorted(Path(__file__).parents[1].joinpath("kinds").glob("*.yaml"))
_TYPES: Mapping[str, Any] = {
    "count": PositiveInt,
    "seed": int,
    "share": Annotated[float, Field(gt=0, lt=1)],
    "switch": bool,
    "text": str,
    "file": str | Path,
    "language": Language,
    "split": Split,
    "retriever": RetrieverSpec,
}
"""Type of a parameter in a file -> that of a field; a list holds the choices."""
_BESIDE: Mapping[str, type[Spec]] = {"samples": Step, "orders": Step, "reading": FlowSpec, "load": FlowSpec}
"""What may be set beside the words of a reply -> the class that has it."""
_NAMED = re.compile(r"\$([A-Za-z_]\w*)")
_LOOK_UP = ("k", "query", "query_language")
"""What may be set of the step `retrieve: stem`."""


def _one_of(names: Collection[str]) -> AfterValidator:
    def check(name: str) -> str:
        if name not in names:
            raise ValueError(f"{name!r} is none: {advise(name, names)}")
        return name

    return AfterValidator(check)


class _Parameter(Spec):
    type: Annotated[str, _one_of(_TYPES)] | list[Any]
    default: Any = None
    label: str = ""
    help: str
    most: int | None = None


class _File(Spec):
    help: str
    parameters: dict[str, _Parameter] = Field(default={})


class _StepFile(_File):
    asks: Annotated[str, _one_of((*TAKES, "module"))]
    steps: list[Any]


class _CodeFile(_File):
    calls: str
    answers: Any = None
    label: str = ""


class KindSpec(ProgramSpec):
    """Base of the kinds that files are: the steps of the file, with what a spec sets put in."""

    name: str | None = None
    """What it is called in tables and folders; None: its kind."""

    @model_validator(mode="after")
    def _is_program(self) -> Self:
        values, steps = dict(self), self.template["steps"]
        for name in self.template["parameters"].keys() & self._set.keys() - {"retriever"}:
            default = type(self).model_fields[name].default
            if _fill(steps, values | {name: default}) == _fill(steps, values):
                raise ValueError(f"{name} changes nothing beside these settings: leave it out")
        _ = self.flow
        return self

    @property
    def _set(self) -> Tree:
        fields = type(self).model_fields
        return {name: value for name, value in self if name not in ("kind", "name") and value != fields[name].default}

    @cached_property
    def document(self) -> Tree:
        """The same program as a spec writes it in steps."""
        settings, steps = Tree(), _fill(self.template["steps"], dict(self))
        retriever = getattr(self, "retriever", None)
        if retriever not in (None, RetrieverSpec()) and any(path.endswith(".retrieve") for path, _ in walk(steps)):
            settings["retriever"] = _plain(retriever)
        for name, value in self._set.items():
            if name in self.template["parameters"]:
                continue
            if name in FlowSpec.model_fields:
                settings[name] = _plain(value)
                continue
            changed = [step for step in steps if (_looks_up if name in _LOOK_UP else _writes_answer)(step)]
            if len(changed) != 1:
                raise ValueError(f"{name} changes nothing beside these settings: leave it out")
            (step,), words = changed, changed[0].get("words")
            if list_settings(self.template)[name] is Step:
                step[name] = _plain(value)
            else:
                step["words"] = {**(words if isinstance(words, dict) else {"kind": words}), name: _plain(value)}
        return {"name": self.name or self.kind, **settings, "steps": steps}

    @cached_property
    def flow(self) -> FlowSpec:
        """The steps that it is."""
        try:
            return FlowSpec.model_validate(self.document)
        except ValidationError as error:
            if not self.kind.endswith(".yaml"):
                raise
            raise ValueError(describe_faults(error, FlowSpec, self.document)) from None


class CodeSpec(ProgramSpec):
    """Base of the kinds that files are which name code."""

    @property
    def asking(self) -> Asking:
        """What it takes: its passages, and the model that reads them."""
        template, fields = self.template, dict(self)
        answers = _fill(template.get("answers", [{"form": "choice"}]), fields)
        forms = None if answers == "any" else tuple(answer["form"] for answer in answers)
        is_shipped = template["calls"].startswith("medexam.") or ships(self.kind, KIND_FILES)
        reader = fields.get("reader")
        return Asking(
            forms,
            codes=() if is_shipped else (template["calls"],),
            retrieval=RetrievalSettings.of(self) if fields.get("retriever") and forms == ("choice",) else None,
            local_reader=reader and (reader, fields.get("revision")),
        )


def _looks_up(step: Mapping[str, Any]) -> bool:
    return step.get("retrieve") == "stem"


def _writes_answer(step: Mapping[str, Any]) -> bool:
    return not {"as", "add"} & step.keys() and "answer" in str(step.get("ask", "")).partition("->")[2]


def _fill(part: Any, values: Mapping[str, Any]) -> Any:
    """Return a part of a file with the values of parameters, without steps that are not there."""
    if isinstance(part, list):
        only = [(entry, entry.get("only", {}) if isinstance(entry, Mapping) else {}) for entry in part]
        is_there = [entry for entry, one in only if all(holds(values[name], wanted) for name, wanted in one.items())]
        return [_fill(entry, values) for entry in is_there]
    if isinstance(part, Mapping):
        entries = ((key, _fill(value, values)) for key, value in part.items() if key != "only")
        filled = {key: value for key, value in entries if value is not None}
        words = filled.get("words", ())
        return filled | ({"words": words["group"]} if [*words] == ["group"] else {})
    names = _NAMED.findall(part) if isinstance(part, str) else ()
    if unknown := next((name for name in names if name not in values), None):
        raise ValueError(f"${unknown} is no parameter of the file: {advise(unknown, values)}")
    if names and part == f"${names[0]}":
        return _plain(values[names[0]])
    return _NAMED.sub(lambda name: str(_plain(values[name[1]])), part) if names else part


def _plain(value: Any) -> Any:
    """Return a value as YAML has it; of a part of a spec, what is not by default."""
    if isinstance(value, RetrieverSpec):
        return value.model_dump(mode="json", exclude_defaults=True)
    return str(value) if isinstance(value, Path) else value


def _read_kind(kind: str) -> type[ProgramSpec]:
    is_file = kind.endswith(".yaml")
    path: Path = Path(kind).expanduser().absolute() if is_file else load_object(kind, KIND_FILES)
    try:
        return _make_kind(path, str(path) if is_file else kind, path.stat().st_mtime_ns)
    except OSError as error:
        raise SpecError(f"{path}: cannot read it: {error.strerror}") from None
    except (LookupError, TypeError, AttributeError) as error:
        raise SpecError(
            f"{path}: {error} is missing or wrong; a strategy has help, asks, parameters with type and "
            "help, and steps, as the files of `medexam/specs/kinds` have"
        ) from None


@lru_cache(maxsize=256)
def _make_kind(path: Path, kind: str, changed_ns: int) -> type[ProgramSpec]:
    template = parse_yaml(path.read_text(encoding="utf-8"), str(path), lines=kind.endswith(".yaml"))
    if not isinstance(template, dict):
        raise TypeError("a mapping of keys to values")
    validate(_CodeFile if "calls" in template else _StepFile, template)
    parameters, calls = template.setdefault("parameters", {}), template.get("calls", "")
    fields: Tree = {"kind": (Literal[kind], kind), "template": (ClassVar[Mapping[str, Any]], template)}
    for name, source in {} if calls else list_settings(template).items():
        field = source.model_fields[name]
        is_prompt = name == "prompt" and template["asks"] != "task"
        fields[name] = (str | Path, "paper") if is_prompt else (field.annotation, field)
    base = CodeSpec if calls else KindSpec
    for name, parameter in parameters.items():
        if hasattr(base, name) or name.startswith("_") or name in ("kind", "name"):
            place = f"parameters.{name}"
            raise SpecError(f"{find_source(template, place)}{place}: this name cannot be used: choose another")
        fields[name] = _field(parameter)
    if kind != path.stem and not calls:
        fields["name"] = (str | None, path.stem)
    make: Any = create_model  # type checkers know no class that is made of a file
    fields |= {"__base__": base, "__doc__": template["help"]}
    spec: type[ProgramSpec] = make(path.stem.title().replace("_", "") + "Kind", **fields)
    if changed_ns:
        _check_only(template, spec)
    return spec


def _check_only(template: Mapping[str, Any], spec: type[ProgramSpec]) -> None:
    """Raise `SpecError` for a condition `only` that is misspelt, that its parameter never meets, or names none."""
    for place, only in walk({"steps": template.get("steps", [])}):
        where, near = f"{find_source(template, place)}{place}: ", nearest(place.rpartition(".")[2], ["only"])
        if not near:
            continue
        if not place.endswith(".only"):
            raise SpecError(f"{where}unknown key: did you mean {near}?")
        if not isinstance(only, Mapping):
            raise SpecError(f"{where}name a parameter with its value, such as {{looks: 2}}")
        for name, wanted in only.items():
            if name not in spec.model_fields:
                raise SpecError(f"{where}{name} is no parameter of the file: {advise(name, spec.model_fields)}")
            for value in wanted if isinstance(wanted, list) else [wanted]:
                field, read = spec.model_fields[name], ...
                with suppress(ValidationError):
                    read = TypeAdapter(field.rebuild_annotation()).validate_python(value)
                if value not in ("set", "unset") and read != value:
                    raise SpecError(f"{where}{name} is never {value!r}: name a value")


def list_settings(template: Mapping[str, Any]) -> dict[str, type[Spec]]:
    """Map each field that a spec may set of a file's steps, beside its parameters, to the class that has it."""
    asks, steps = template["asks"], template["steps"]
    settings: dict[str, type[Spec]] = dict.fromkeys(ModuleSpec.model_fields, ModuleSpec)
    if asks != "module":
        settings = {**dict.fromkeys(TAKES[asks], WordsSpec), **(_BESIDE if asks == "reply" else {})}
    if any(map(_looks_up, steps)):
        settings |= dict.fromkeys(_LOOK_UP, Step)
    changed = [step for step in steps if _looks_up(step) or _writes_answer(step)]
    own = {key for step in changed for part in (step, step.get("words")) if isinstance(part, Mapping) for key in part}
    return {name: source for name, source in settings.items() if name not in {"kind", *own}}


def _field(parameter: Mapping[str, Any]) -> tuple[Any, Any]:
    stated, default = parameter["type"], parameter.get("default", ...)
    annotation: Any = Literal[tuple(stated)] if isinstance(stated, list) else _TYPES[stated]
    default = RetrieverSpec(**default) if isinstance(default, Mapping) else default
    parameter.get("label", "").format(1)
    field = Field(default=default, validate_default=True, le=parameter.get("most"), description=parameter["help"])
    return annotation | None if default is None else annotation, field


KINDS: Mapping[str, type[ProgramSpec]] = {
    **{path.stem: _make_kind(path, path.stem, 0) for path in _FILES},
    "flow": FlowSpec,
}
"""Kind of program of this package -> its spec."""


def find_kind(kind: str) -> type[ProgramSpec] | None:
    """Find the spec of a kind of this package, of a file, or of an installed package; None of any other.

    Raises `SpecError` if it cannot be loaded.
    """
    if kind in KINDS:
        return KINDS[kind]
    return _read_kind(kind) if kind.endswith(".yaml") or kind in added_names(KIND_FILES) else None


def all_kinds() -> dict[str, type[ProgramSpec]]:
    """Return every kind that has a name, those of this package first, with its spec; without those that do not load."""
    kinds = dict(KINDS)
    for kind in added_names(KIND_FILES):
        with suppress(SpecError):
            kinds.setdefault(kind, _read_kind(kind))
    return kinds


class GoneSpec(ProgramSpec):
    """A program of a stored run whose package is not installed."""

    model_config = ConfigDict(extra="allow")
    kind: str


def _read_program(program: Any, info: ValidationInfo) -> ProgramSpec:
    if isinstance(program, ProgramSpec):
        return program
    kind = program.get("kind") if isinstance(program, Mapping) else None
    if not isinstance(kind, str):
        raise ValueError("needs a kind")
    own = OwnSpec if is_own_name(kind, PROGRAMS) else GoneSpec if info.context == STORED else None
    try:
        spec = find_kind(kind) or own
    except SpecError as error:
        raise PlacedError("kind", str(error)) from None
    if spec is None:
        advice = advise(kind, all_kinds())
        raise PlacedError(
            "kind", f"no kind is called {kind!r}: {advice}; your own is package.module:Name or ./file.py:Name"
        )
    tree = {**program, "kind": spec.model_fields["kind"].default} if issubclass(spec, KindSpec) else program
    return spec.model_validate(tree) if info.context != STORED else _read_stored(spec, json.dumps(tree))


# To expand the steps of a program takes most of the time in which a stored run is read.
@keep(worth=lambda _: True)
def _read_stored(spec: type[ProgramSpec], text: str) -> ProgramSpec:
    return spec.model_validate_json(text, context=STORED)


if TYPE_CHECKING:
    AnyProgram = ProgramSpec
else:
    AnyProgram = Annotated[
        Any,
        PlainValidator(_read_program),
        WithJsonSchema({"title": "AnyProgram"}),
        lambda: [*all_kinds().values(), OwnSpec],
    ]
    """The `program` part of a spec."""

# What a step uses is a program, and steps stand in steps.
for nested in (Step, FlowSpec):
    nested.model_rebuild(_types_namespace={"AnyProgram": AnyProgram})
