"""What tells one Python object from another across processes: modules, models, metrics and whatever they hold.

Everything that an answer may depend on is described as JSON-ready data: the values of attributes, instructions and
demonstrations, and the source of code. Addresses in memory, caches of DSPy's and keys are left out. What cannot be
looked into is known by its class alone.
"""

import builtins
import dataclasses
import dis
import hashlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from functools import partial
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import dspy

from medexam.errors import SpecError
from medexam.experiments.run.language_model import EngineLM
from medexam.plugins import hash_source
from medexam.serve.naming import known_model

_GROUP = "medexam.programs"
_OTHER = object()
"""Stands for a value that is of none of the kinds in question."""
_DIGITS = 12
"""Hexadecimal digits of a digest."""
_OF_CALLS = frozenset({"history", "callbacks", "traces", "train", "stage", "_compiled"})
"""Attributes of DSPy's modules and models that calls and optimizers leave behind, and no answer depends on."""
_OF_ENGINES = frozenset({"_engine_store", "_engine_lock", "_providers", "_warned_zero_temp_rollout"})
_SECRET = re.compile(r"(^|_)(key|secret|password|credentials?|authorization|headers|(access|auth|bearer)_token)$", re.I)
"""Names of settings that may hold a key."""
_ADDRESS = frozenset({"api_base", "base_url", "api_version"})
"""Settings that say where a model is reached."""
_BY_TEXT = frozenset({"datetime", "decimal", "fractions", "uuid", "zoneinfo"})
"""Modules of the standard library whose values are known by their texts."""


def digest_part(description: Any, digits: int = _DIGITS) -> str:
    """Compute the first `digits` hexadecimal digits of a SHA-256 over a description."""
    text = json.dumps(description, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def describe_program(program: Any) -> dict[str, Any]:
    """Describe a module, or anything else that is called with an example's inputs.

    Class and source, a digest of each predictor's state, and one of all other attributes: so two runs tell in which of
    them they differ.
    """
    describer = _Describer()
    if not isinstance(program, dspy.Module):
        return {"callable": describer.describe(program)}
    predictors = {name: digest_part(describer.describe(part)) for name, part in program.named_predictors()}
    return {
        "class": type(program).__qualname__,
        "source": digest_part(describer.describe(type(program))),
        "predictors": predictors,
        "attributes": digest_part(describer.describe(program)),
    }


def describe_metric(metric: Callable[..., Any]) -> dict[str, Any]:
    """Describe a metric: its name, and a digest of its source and of everything that it refers to."""
    return {"name": metric_name(metric), "source": digest_part(_Describer().describe(metric))}


def describe_model(lm: Any) -> dict[str, Any]:
    """Describe a model without its keys and addresses: the same model may be reached elsewhere."""
    description: dict[str, Any] = _Describer().describe(lm)
    return description


def describe_value(value: Any) -> Any:
    """Describe any value as JSON-ready data; plain data is itself."""
    return _Describer().describe(value)


def metric_name(metric: Callable[..., Any]) -> str:
    """Return how tables call a metric: a function's name, else its class's."""
    function = metric.func if isinstance(metric, partial) else metric
    name: str = getattr(function, "__name__", None) or type(function).__name__
    return "metric" if name == "<lambda>" else name


def model_settings(lm: dspy.BaseLM) -> dict[str, Any]:
    """List the settings that a model's requests have, as JSON-ready data, without keys and addresses."""
    describer = _Describer()
    return {
        name: describer.describe(value)
        for name, value in lm.kwargs.items()
        if value is not None and not _SECRET.search(name) and name not in _ADDRESS
    }


class _Describer:
    """Describes values; what is met again within itself is told by a mark."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        """Ids of the objects that are being described."""
        self._sources: dict[str, Any] = {}
        """Module -> its source, for those that were looked at."""

    def describe(self, value: Any) -> Any:
        """Describe one value as JSON-ready data."""
        if value is None or (isinstance(value, (bool, int, str)) and not isinstance(value, Enum)):
            return value
        if isinstance(value, float):
            # JSON knows no such numbers as nan.
            return value if value - value == 0 else repr(value)
        if id(value) in self._open:
            return "(itself)"
        self._open.add(id(value))
        try:
            return self._describe(value)
        finally:
            self._open.discard(id(value))

    def _describe(self, value: Any) -> Any:
        for describe in (self._data, self._of_dspy, self._code):
            if (description := describe(value)) is not _OTHER:
                return description
        return self._object(value, {}, set())

    def _data(self, value: Any) -> Any:
        match value:
            case Mapping():
                return {str(name): self.describe(part) for name, part in value.items()}
            case list() | tuple():
                return [self.describe(part) for part in value]
            case set() | frozenset():
                return sorted((self.describe(part) for part in value), key=digest_part)
            case bytes() | bytearray():
                return {"sha256": hashlib.sha256(value).hexdigest()}
            case Enum() | PurePath():
                return str(value)
            case re.Pattern():
                return {"pattern": value.pattern, "flags": value.flags}
        return _OTHER

    def _of_dspy(self, value: Any) -> Any:
        match value:
            case dspy.Example():
                return {"fields": self.describe(value.toDict()), **self._inputs(value)}
            case EngineLM() if value.spec is not None:
                return {**known_model(value.spec), "settings": model_settings(value)}
            case dspy.BaseLM():
                return self._object(value, {**model_settings(value), "model": value.model}, {"kwargs", "model"})
        return _OTHER

    def _code(self, value: Any) -> Any:
        match value:
            case type():
                return self._class(value)
            case partial():
                return {"partial": [self.describe(part) for part in (value.func, value.args, value.keywords)]}
            case MethodType():
                return {"method": [self.describe(value.__func__), self.describe(value.__self__)]}
            case BuiltinFunctionType():
                return f"{value.__module__}.{value.__qualname__}"
            case FunctionType() if _is_standard(value.__module__):
                return f"{value.__module__}.{value.__qualname__}"
            case FunctionType():
                return self._function(value)
            case ModuleType() if _is_standard(value.__name__):
                return value.__name__
            case ModuleType():
                return self._source(value.__name__) or value.__name__
        return _OTHER

    def _inputs(self, example: dspy.Example) -> dict[str, Any]:
        try:
            return {"inputs": sorted(example.inputs().keys())}
        except (AttributeError, ValueError):  # none are named; a prediction has no such
            return {}

    def _object(self, value: Any, facts: dict[str, Any], told: Iterable[str]) -> Any:
        """Describe an object by its class and attributes; `facts` stand for the attributes in `told`."""
        kind = type(value)
        if _is_standard(kind.__module__):
            # A lock, a logger or a file has nothing that an answer depends on.
            by_text = kind.__module__.partition(".")[0] in _BY_TEXT
            return str(value) if by_text else f"{kind.__module__}.{kind.__qualname__}"
        left_out = {*told, *_OF_CALLS, *_OF_ENGINES}
        if isinstance(value, dspy.BaseLM):
            left_out |= {name for name in vars(value) if _SECRET.search(name)}
        attributes = {name: part for name, part in _attributes(value) if name not in left_out}
        if not attributes and hasattr(value, "tobytes"):
            # An array holds its content outside Python's attributes.
            attributes = {"bytes": value.tobytes(), "shape": getattr(value, "shape", None)}
        return {"class": self.describe(kind), **facts, **({"is": self.describe(attributes)} if attributes else {})}

    def _class(self, kind: Any) -> Any:
        if issubclass(kind, dspy.Signature):
            fields = {
                name: [str(field.annotation), self.describe(field.json_schema_extra)]
                for name, field in kind.fields.items()
            }
            return {"signature": kind.instructions, "fields": fields}
        if _is_standard(kind.__module__):
            return f"{kind.__module__}.{kind.__qualname__}"
        source = self._source(kind.__module__)
        if source is not None:
            return {"name": kind.__qualname__, **source}
        functions = [part for part in vars(kind).values() if isinstance(part, FunctionType)]
        return {
            "name": kind.__qualname__,
            "code": _read_source(kind),
            "bases": [self.describe(base) for base in kind.__bases__ if base is not object],
            "uses": [uses for function in functions if (uses := self._uses(function))],
        }

    def _function(self, function: FunctionType) -> Any:
        source = self._source(function.__module__ or "")
        # Beside the file: two lambdas of one module have the same name.
        description: dict[str, Any] = {"name": function.__qualname__, "code": _read_source(function)}
        description |= source if source is not None else {"uses": self._uses(function)}
        cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
        held = [cells, list(function.__defaults__ or ()), function.__kwdefaults__ or {}]
        return {**description, **({"holds": self.describe(held)} if any(held) else {})}

    def _uses(self, function: FunctionType) -> dict[str, Any]:
        """Describe the names of its module that a function refers to, if no file says what they are."""
        # Names of attributes are none of the module's, whatever stands there under the same name.
        names = sorted({name for code in _codes(function.__code__) for name in _read_names(code)})
        values = function.__globals__
        return {name: self.describe(values[name]) for name in names if name in values and not hasattr(builtins, name)}

    def _source(self, module: str) -> dict[str, Any] | None:
        """Read what `hash_source` says of a module; None for a script, a notebook, and whatever has no file."""
        if module not in self._sources:
            try:
                source = None if module in ("", "__main__") else hash_source(f"{module}:module", _GROUP)
            except (SpecError, OSError):
                source = None
            self._sources[module] = source and {name: part for name, part in source.items() if name != "object"}
        source_part: dict[str, Any] | None = self._sources[module]
        return source_part


def _read_names(code: CodeType) -> set[str]:
    """Return the names outside a function that its code reads."""
    reading = {"LOAD_GLOBAL", "LOAD_NAME"}
    return {str(step.argval) for step in dis.get_instructions(code) if step.opname in reading}


def _is_standard(module: str | None) -> bool:
    """Return whether a module is of Python's standard library: its name says enough, and its source is not read."""
    return (module or "").partition(".")[0] in sys.stdlib_module_names


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object that are its own, slots included."""
    if dataclasses.is_dataclass(value):
        yield from ((field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value))
    yield from sorted(getattr(value, "__dict__", {}).items())


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a function's code and that of the functions in it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


def _read_source(value: type | FunctionType) -> str:
    """Hash the lines of the source; of a lambda, and of code without any, the instructions too."""
    parts: list[bytes] = []
    is_lambda = isinstance(value, FunctionType) and value.__name__ == "<lambda>"
    with suppress(OSError, TypeError):
        parts.append(inspect.getsource(value).encode("utf-8", "surrogatepass"))
    if is_lambda or not parts:
        functions = [value] if isinstance(value, FunctionType) else vars(value).values()
        codes = (code for part in functions if isinstance(part, FunctionType) for code in _codes(part.__code__))
        for code in codes:
            constants = [part for part in code.co_consts if not isinstance(part, CodeType)]
            parts += [code.co_code, repr((constants, code.co_names)).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:_DIGITS]


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty one raises
    except ValueError:
        return False
    return True
