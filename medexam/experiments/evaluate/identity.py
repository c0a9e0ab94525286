"""What tells one module, model or metric of a script from another across processes: source, state and settings.

Code is known by its files, or by its lines and what they refer to where a script or a notebook defines it. Values are
described as JSON-ready data; addresses in memory, keys and what calls leave behind are left out.
"""

import dataclasses
import dis
import hashlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import partial
from pathlib import PurePath
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType
from typing import Any

import dspy

from medexam.errors import SpecError
from medexam.plugins import hash_source
from medexam.programs.lm import EngineLM
from medexam.serve.naming import known_model

_GROUP = "medexam.programs"
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
"""Modules of the standard library whose values are known by their texts; a lock, say, is known by its class."""


def digest_part(description: Any, digits: int = _DIGITS) -> str:
    """Compute the first `digits` hexadecimal digits of a SHA-256 over a description."""
    text = json.dumps(description, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def describe_part(part: Any) -> dict[str, Any]:
    """Describe a module, a metric or a model: its name, a digest of its source and one of what it holds.

    Raises `SpecError` if there is no source to read.
    """
    function = part.func if isinstance(part, partial) else part
    code = function if isinstance(function, (FunctionType, MethodType)) else type(function)
    try:
        _describe_code(code)
    except OSError:
        raise SpecError(
            f"{metric_name(part)} has no source that could be read, so a run cannot be told from one of other code: "
            "write it in a file or a notebook"
        ) from None
    return {
        "name": metric_name(part),
        "source": digest_part(describe_value(code)),
        "state": digest_part(describe_value(part)),
    }


def metric_name(metric: Callable[..., Any]) -> str:
    """Return how tables call a metric: a function's name, else its class's."""
    function = metric.func if isinstance(metric, partial) else metric
    name: str = getattr(function, "__name__", None) or type(function).__name__
    return "metric" if name == "<lambda>" else name


def model_settings(lm: dspy.BaseLM) -> dict[str, Any]:
    """List the settings that a model's requests have, as JSON-ready data, without keys and addresses."""
    return {
        name: describe_value(value)
        for name, value in lm.kwargs.items()
        if value is not None and not _SECRET.search(name) and name not in _ADDRESS
    }


def describe_value(value: Any, around: frozenset[int] = frozenset()) -> Any:  # noqa: C901 - a case for each type
    """Describe any value as JSON-ready data; plain data is itself. `around`: ids of the values that hold it."""
    if value is None or (isinstance(value, (bool, int, str)) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else repr(value)  # JSON knows no such numbers as nan
    if id(value) in around:
        return "(itself)"
    describe = partial(describe_value, around=around | {id(value)})
    match value:
        case Mapping():
            return {str(name): describe(part) for name, part in value.items()}
        case list() | tuple():
            return [describe(part) for part in value]
        case set() | frozenset():
            return sorted(map(describe, value), key=digest_part)
        case bytes() | bytearray():
            return {"sha256": hashlib.sha256(value).hexdigest()}
        case Enum() | PurePath() | re.Pattern():
            return str(value)
        case dspy.Example():
            return {"fields": describe(value.toDict()), "inputs": sorted(getattr(value, "_input_keys", None) or ())}
        case EngineLM() if value.spec is not None:
            return {**known_model(value.spec), "settings": model_settings(value)}
        case partial():
            return {"partial": [describe(part) for part in (value.func, value.args, value.keywords)]}
        case MethodType():
            return {"method": [describe(value.__func__), describe(value.__self__)]}
        case dspy.SignatureMeta():
            fields = {
                name: [str(field.annotation), describe(field.json_schema_extra)] for name, field in value.fields.items()
            }
            return {"signature": value.instructions, "fields": fields}
        case type() | FunctionType() | BuiltinFunctionType():
            try:
                return _describe_code(value, describe)
            except OSError:
                return _name(value)
    return _describe_object(value, describe)


def _describe_object(value: Any, describe: Callable[[Any], Any]) -> Any:
    """Describe an object by its class and attributes; one of the standard library, such as a lock, by its class."""
    kind = type(value)
    if _is_standard(kind.__module__):
        return str(value) if kind.__module__.partition(".")[0] in _BY_TEXT else _name(kind)
    attributes = dict(getattr(value, "__dict__", {}))
    if dataclasses.is_dataclass(value):
        attributes |= {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    facts: dict[str, Any] = {}
    if isinstance(value, dspy.BaseLM):
        attributes = {name: part for name, part in attributes.items() if name != "kwargs" and not _SECRET.search(name)}
        facts = model_settings(value)
    elif not attributes and hasattr(value, "tobytes"):
        # An array holds its content outside Python's attributes.
        facts = {"bytes": describe(value.tobytes()), "shape": str(getattr(value, "shape", None))}
    left_out = _OF_CALLS | _OF_ENGINES
    state = {name: describe(part) for name, part in sorted(attributes.items()) if name not in left_out}
    return {"class": describe(kind), **facts, "state": state}


def _describe_code(part: Any, describe: Callable[[Any], Any] = describe_value) -> Any:
    """Describe a class or a function: its files, or its lines and what they refer to; raises `OSError` without any."""
    part = getattr(part, "__func__", part)
    module = part.__module__ or ""
    if _is_standard(module):
        return _name(part)
    description: dict[str, Any] = {"name": part.__qualname__}
    try:
        source = None if module in ("", "__main__") else hash_source(f"{module}:module", _GROUP)
    except SpecError:
        source = None
    if source is not None:
        description |= {name: value for name, value in source.items() if name != "object"}
    if source is None or part.__name__ == "<lambda>":
        try:
            description["lines"] = digest_part(inspect.getsource(part))
        except TypeError as error:
            raise OSError from error
    if source is None:
        members = [part, *(vars(part).values() if isinstance(part, type) else ())]
        functions = [member for member in members if isinstance(member, FunctionType)]
        description["uses"] = describe([_read_globals(function) for function in functions])
    if isinstance(part, FunctionType):
        cells = [cell.cell_contents for cell in part.__closure__ or () if cell != CellType()]
        description["holds"] = describe([cells, part.__defaults__, part.__kwdefaults__])
    return description


def _read_globals(function: FunctionType) -> dict[str, Any]:
    """Return the values of its module that a function's code reads, by name; names of attributes are none of them."""
    steps = [step for code in _codes(function.__code__) for step in dis.get_instructions(code)]
    names = sorted({str(step.argval) for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")})
    values = function.__globals__
    return {name: values[name] for name in names if name in values and not inspect.ismodule(values[name])}


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a function's code and that of the functions in it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


def _name(part: Any) -> str:
    return f"{part.__module__}.{part.__qualname__}"


def _is_standard(module: str | None) -> bool:
    """Return whether a module is of Python's standard library: its name says enough, and its source is not read."""
    return (module or "").partition(".")[0] in sys.stdlib_module_names
