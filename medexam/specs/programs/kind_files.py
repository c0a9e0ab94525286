"""Kinds that are files: steps with parameters, of which a class of specs is made.

A file has `help`, `asks` (the words whose settings a spec may set too: `reply`, `likelihood`, `task` or `module`),
`parameters`, and `steps` in which `$name` stands for what a parameter or setting is. A step with `only: {name: value}`
is there if the parameter has that value, or one of a list of values; `set` stands for any. Settings that are set and
stand in no step are put into the step that writes `answer`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, TypeAdapter, ValidationError, create_model

from medexam.errors import SpecError
from medexam.model_calls import Reading
from medexam.questions import Language
from medexam.specs.catalogue import Form
from medexam.specs.programs.base import PositiveInt, ProgramSpec
from medexam.specs.programs.flows import StepsSpec
from medexam.specs.programs.likelihood import LikelihoodSpec
from medexam.specs.programs.needs import Query
from medexam.specs.programs.orders import Orders, orders_label
from medexam.specs.programs.own import ModuleSpec
from medexam.specs.programs.replies import ReplySpec
from medexam.specs.programs.steps import Steps
from medexam.specs.programs.tasks import TaskSpec
from medexam.specs.retriever import RetrieverSpec
from medexam.specs.strict_yaml import parse_yaml

Tree = dict[str, Any]
FILES = tuple(sorted(Path(__file__).parents[1].joinpath("kinds").glob("*.yaml")))
"""The strategies that ship."""
_TYPES: Mapping[str, Any] = {
    "count": PositiveInt,
    "share": Annotated[float, Field(gt=0, lt=1)],
    "switch": bool,
    "text": str,
    "file": str | Path,
    "language": Language,
    "query": Query,
    "retriever": RetrieverSpec,
}
"""Type of a parameter in a file -> that of a field; a list holds the choices."""
_OF_STEP = ("samples", "orders", "max_tokens", "answer_format", "answer_form")
"""Settings that a step has, and not its words."""
_OF_PROGRAM = ("retriever", "adapter", "adapter_args", "timeout_s", "load", "reading")
"""Settings that stand beside the steps."""
_BY_ITSELF = (("query", "stem"), ("prompt", "retrieval"), ("by", "predict"))
"""What steps and their words have without being told."""
_WORDS: Mapping[str, type[ProgramSpec]] = {
    kind: words
    for words in (ReplySpec, LikelihoodSpec, TaskSpec)
    for kind in words.model_fields["kind"].annotation.__args__  # type: ignore[union-attr]
}


class KindSpec(StepsSpec):
    """Base of the kinds that files are: the steps of the file, with what a spec sets put in."""

    template: ClassVar[Mapping[str, Any]]
    """The file."""
    name: str | None = None
    """What it is called in tables and folders; None: its kind."""

    def check_steps(self) -> None:
        """Raise `ValueError` for a parameter that is set and changes nothing, and what steps raise."""
        uses = list(_uses(self.template["steps"]))
        for name in self._parameters.keys() & self.model_fields_set:
            conditions = [
                {key: value for key, value in only.items() if key != name} for only, text in uses if f"${name} " in text
            ]
            if getattr(self, name) == type(self).model_fields[name].default or not conditions:
                continue
            if not any(all(map(self._is, only.items())) for only in conditions):
                condition = " and ".join(_told(key, value) for key, value in conditions[0].items())
                raise ValueError(f"{name} belongs to {condition}: set that too, or leave {name} out")
        super().check_steps()

    @property
    def _parameters(self) -> Mapping[str, Any]:
        parameters: Mapping[str, Any] = self.template.get("parameters", {})
        return parameters

    @property
    def steps(self) -> Steps:
        """The steps, with what is set put in."""
        return _read_steps(json.dumps(self._steps(), ensure_ascii=False))

    @property
    def document(self) -> Tree:
        """The same program as a spec writes it in steps."""
        fields = type(self).model_fields
        changed = {
            name: _plain(getattr(self, name))
            for name in _OF_PROGRAM + (_OF_STEP if isinstance(self, ModuleSpec) else ())
            if name in fields and getattr(self, name) != fields[name].get_default(call_default_factory=True)
        }
        retriever = getattr(self, "retriever", None)
        if self.asking.retrieval is None or retriever == RetrieverSpec():
            changed.pop("retriever", None)
        elif retriever is not None:
            changed["retriever"] = _plain(retriever)
        return {"name": self.name or self.kind, **changed, "steps": self._steps()}

    def _steps(self) -> list[Tree]:
        steps = list(self._put_in(self.template["steps"]))
        fields = type(self).model_fields
        other_names = {*self._parameters, *_OF_PROGRAM, "kind", "name"}
        names = [name for name in fields if name not in other_names and getattr(self, name) != fields[name].default]
        for name in () if isinstance(self, ModuleSpec) else names:
            answering = [step for step in steps if "answer" in str(step.get("ask", "")).partition("->")[2]]
            if len(answering) != 1:
                raise ValueError(f"{name} changes the one step that writes `answer`, and there is none: leave it out")
            (step,) = answering
            if name in _OF_STEP:
                step[name] = _plain(getattr(self, name))
                continue
            words = step["words"] if isinstance(step.get("words"), dict) else {"kind": step.get("words")}
            if name not in getattr(_WORDS.get(str(words["kind"])), "model_fields", ()):
                raise ValueError(f"{name} is no setting of {words['kind']}, which asks the question: leave it out")
            step["words"] = {**words, name: _plain(getattr(self, name))}
        return steps

    def _put_in(self, steps: list[Tree]) -> Iterator[Tree]:
        """Yield the steps that are there, each with the values of its parameters."""
        for step in steps:
            if all(map(self._is, step.get("only", {}).items())):
                yield {
                    key: list(self._put_in(value)) if key in ("do", "else") else put
                    for key, value in step.items()
                    if key != "only" and (put := self._put(key, value)) is not None
                }

    def _put(self, key: str, value: Any) -> Any:
        """Return what is set, with nothing where that is what a step has by itself."""
        if isinstance(value, Mapping):
            parts = {inner: put for inner, part in value.items() if (put := self._put(inner, part)) is not None}
            is_name = key == "words" and len(parts) == 1 and parts.keys() <= {"kind", "group"}
            return next(iter(parts.values())) if is_name else parts
        if not isinstance(value, str) or not value.startswith("$"):
            return value
        setting = _plain(getattr(self, value[1:]))
        return None if (key, setting) in _BY_ITSELF else setting

    def _is(self, condition: tuple[str, Any]) -> bool:
        """Return whether a parameter has the value, or one of the values."""
        name, values = condition
        value = getattr(self, name)
        return value is not None if values == "set" else value in (values if isinstance(values, list) else [values])

    @property
    def label_words(self) -> list[str]:
        """What tells it from others of its kind."""
        fields = type(self).model_fields
        own = []
        for name, parameter in self._parameters.items():
            value = getattr(self, name)
            if isinstance(value, RetrieverSpec):
                own += [value.label] if self.asking.retrieval is not None else []
            elif "label" in parameter and value != fields[name].default:
                own.append(parameter["label"].format(Path(value).name if parameter["type"] == "file" else value))
        if isinstance(self, ModuleSpec):
            return [*own, *self.marks(answer_format="{}", adapter="{}", load="optimized")]
        words = [] if self.answering is None else self.answering.label_words
        if isinstance(self, ReplyKind):
            words = [*words, *self.marks(load="optimized", samples="samples{}"), *orders_label(self.orders)]
        return [*words, *own]


class ReplyKind(KindSpec, ReplySpec):
    """Base of the kinds whose replies hold the number of an option."""

    samples: Annotated[int, Field(ge=1, le=1000)] = 1
    """Replies to each question, of which the commonest legal answer is taken (self-consistency); more than one needs a
    `model.temperature`."""
    orders: Orders = "given"
    """Ask once for each of several orders of the options and take the commonest answer: `cyclic` shows every rotation,
    `reversed` the exam's order and its reverse, `{random: 4}` four orders that are drawn for each question."""
    reading: Reading = "strict"
    """How replies are scored: `strict` by the format alone, as the paper did; `lenient` as a careful marker would where
    the format is missing. Both are always reported, and no answer depends on it."""
    load: Path | None = None
    """A folder that `medexam optimize` made, or a `program.json`: instructions and demonstrations instead of the
    prompt's; None asks in the prompt's words."""

    def check_steps(self) -> None:
        """Raise `ValueError` for samples, orders and words of a program that asks once, and what steps raise."""
        if self.is_asked_once and (self.samples > 1 or self.orders != "given" or self.load is not None):
            called = self.kind if self.template.get("once") else "cite"
            raise ValueError(f"{called} takes no samples, orders or load: leave them out")
        super().check_steps()

    @property
    def is_asked_once(self) -> bool:
        """Whether it takes no samples and orders of its own, so that steps ask it several times instead."""
        return bool(self.template.get("once") or getattr(self, "cite", False))

    @property
    def asked_as(self) -> str:
        """The kind of words that the question is asked in."""
        return str(getattr(self, "then", self.kind))


class LikelihoodKind(KindSpec, LikelihoodSpec):
    """Base of the kinds that read options instead of a reply."""


class TaskKind(KindSpec, TaskSpec):
    """Base of the kinds that answer in words."""


class ModuleKind(KindSpec, ModuleSpec):
    """Base of the kinds that ask a signature of a spec's own."""


_create_model: Any = create_model
"""Type checkers know no class that is made of a file."""
_ASKS: Mapping[str, type[KindSpec]] = {
    "reply": ReplyKind,
    "likelihood": LikelihoodKind,
    "task": TaskKind,
    "module": ModuleKind,
}


def is_kind_file(kind: str) -> bool:
    """Return whether a kind names a file of its own."""
    return kind.endswith(".yaml") and ":" not in kind.removeprefix(Path(kind).drive)


def read_kind(path: Path, kind: str | None = None) -> type[KindSpec]:
    """Make the class of a kind of its file, called `kind` in specs; None: the file's path, or its name if it ships.

    Raises `SpecError` if it cannot be read, or is no such file.
    """
    try:
        return _read_kind(path, kind or (path.stem if path in FILES else str(path)), path.stat().st_mtime_ns)
    except OSError as error:
        raise SpecError(f"program.kind {path}: cannot read it: {error.strerror}") from None


@lru_cache(maxsize=256)
def _read_kind(path: Path, called: str, _changed_ns: int) -> type[KindSpec]:
    try:
        template = parse_yaml(path.read_text(encoding="utf-8"), str(path))
        return _make_kind(template, called, path.stem)
    except (KeyError, TypeError, AttributeError) as error:
        raise SpecError(
            f"program.kind {path}: {error} is missing or wrong; a strategy has help, asks, parameters with type and "
            "help, and steps, as the files of `medexam/specs/kinds` have"
        ) from None


def _make_kind(template: Mapping[str, Any], called: str, stem: str) -> type[KindSpec]:
    parameters = {name: _field(parameter) for name, parameter in template.get("parameters", {}).items()}
    fields: dict[str, Any] = {"kind": (Literal[called], called), **parameters}
    fields |= {} if called == stem else {"name": (str | None, stem)}
    title = "".join(word.capitalize() for word in stem.split("_"))
    kind: type[KindSpec] = _create_model(
        f"{title}Spec", __base__=_ASKS[template["asks"]], __doc__=template["help"], **fields
    )
    kind.template = template
    kind.task_forms = tuple[Form, ...](template.get("forms", ()))
    kind.then_by_form = template.get("parameters", {}).get("then", {}).get("by_form", {})
    return kind


def _field(parameter: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the type and the default of a parameter, with its help."""
    stated, default = parameter["type"], parameter.get("default", ...)
    annotation: Any = Literal[tuple(stated)] if isinstance(stated, list) else _TYPES[stated]
    if "most" in parameter:
        annotation = Annotated[annotation, Field(le=parameter["most"])]
    if default is None:
        annotation |= None
    elif stated == "retriever":
        default = RetrieverSpec(**default)
    return annotation, Field(default=default, description=parameter["help"])


def _uses(steps: list[Tree], outer: Tree | None = None) -> Iterator[tuple[Tree, str]]:
    """Yield under which conditions a step is there, with its text, for each step at any depth."""
    for step in steps:
        only = {**(outer or {}), **step.get("only", {})}
        inner = [*step.get("do", ()), *step.get("else", ())]
        own = {key: value for key, value in step.items() if key not in ("only", "do", "else")}
        yield only, re.sub(r"(\$\w+)", r"\1 ", json.dumps(own))
        yield from _uses(inner, only)


def _told(name: str, value: Any) -> str:
    """Return a condition as a spec has it."""
    choices = " or ".join(map(str, value)) if isinstance(value, list) else str(value).lower()
    return name if value == "set" else f"{name}: {choices}"


def _plain(value: Any) -> Any:
    """Return a value as YAML has it; of a part of a spec, what is not by default."""
    if isinstance(value, RetrieverSpec):
        return {"kind": value.kind, **value.model_dump(mode="json", exclude_defaults=True)}
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return str(value) if isinstance(value, Path) else value


@lru_cache(maxsize=512)
def _read_steps(text: str) -> Steps:
    """Read the steps; raises `ValueError` with what is wrong, and where among the steps' own fields."""
    try:
        return TypeAdapter(Steps).validate_python(json.loads(text))
    except ValidationError as error:
        first = error.errors()[0]
        fault = first.get("ctx", {}).get("error")
        raise ValueError(str(fault) if fault is not None else f"{first['loc'][-1]}: {first['msg']}") from None
