"""What tells one module, model or metric of a script from another, in this process and in the next one.

Code is known by the source of its file and of the files beside it that it imports, with the values of the constants in
its module. An object of such code is known by that and by what it holds; keys, and what calls leave behind, are left
out. What cannot be known in this way is refused.
"""

import hashlib
import inspect
import json
import pickle
import re
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, CellType, FunctionType, MethodType
from typing import Any

import dspy
import pydantic

from medexam.errors import SpecError
from medexam.plugins import hash_source
from medexam.programs.lm import EngineLM
from medexam.serve.naming import known_model

_LEFT_BEHIND = frozenset(
    {
        *("history", "callbacks", "traces", "train", "stage", "_compiled"),
        *("_engine_store", "_engine_lock", "_providers", "_warned_zero_temp_rollout"),
    }
)
"""Attributes of DSPy's modules and models that calls and optimizers leave behind, and no answer depends on."""
_SECRET = re.compile(r"(^|_)(key|secret|password|credentials?|authorization|headers|(access|auth|bearer)_token)$", re.I)
"""Names of settings that may hold a key."""
_STANDARD = sys.stdlib_module_names
_ADDRESS = frozenset({"api_base", "base_url", "api_version"})
"""Settings that say where a model is reached."""


def digest_part(description: Any, digits: int = 12) -> str:
    """Compute the first `digits` hexadecimal digits of a SHA-256 over a description."""
    text = json.dumps(description, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def describe_part(part: Any) -> dict[str, Any]:
    """Describe a module or a metric: its name and a digest; raises `SpecError` for what cannot be known."""
    return {"name": metric_name(part), "digest": digest_part(describe_value(part))}


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


def describe_value(value: Any, around: tuple[Any, ...] = ()) -> Any:  # noqa: C901 - a case for each type
    """Describe any value as JSON-ready data; plain data is itself. `around` are the values that hold it."""
    if value is None or (isinstance(value, (bool, int, str)) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else repr(value)  # JSON knows no such numbers as nan
    if any(value is outer for outer in around):
        return "(itself)"
    describe = partial(describe_value, around=(*around, value))
    match value:
        case Mapping():
            return {str(name): describe(part) for name, part in value.items()}
        case list() | tuple():
            return [describe(part) for part in value]
        case set() | frozenset():
            return sorted(map(describe, value), key=digest_part)
        case Path() if value.is_file():
            return {"file": hashlib.sha256(value.read_bytes()).hexdigest()}
        case Enum() | Path() | re.Pattern():
            return str(value)
        case dspy.Example():
            return {"fields": describe(value.toDict()), "inputs": sorted(getattr(value, "_input_keys", None) or ())}
        case EngineLM() if value.spec is not None:
            return {**known_model(value.spec), "settings": model_settings(value)}
        case dspy.SignatureMeta():
            fields = {
                name: [str(field.annotation), describe(field.json_schema_extra)] for name, field in value.fields.items()
            }
            return {"signature": value.instructions, "fields": fields}
        case partial():
            return [describe(part) for part in (value.func, value.args, value.keywords)]
        case MethodType():
            return [describe(value.__func__), describe(value.__self__)]
        case type() | FunctionType() | BuiltinFunctionType():
            return _describe_code(value, describe)
        case pydantic.BaseModel():
            return {"class": describe(type(value)), "fields": describe(dict(value))}
    return _describe_object(value, describe)


def _describe_object(value: Any, describe: Callable[[Any], Any]) -> Any:
    """Describe an object of DSPy's or of own code by its class and attributes, any other by what pickle makes of it."""
    kind, facts = type(value), dict[str, Any]()
    attributes = {name: part for name, part in getattr(value, "__dict__", {}).items() if name not in _LEFT_BEHIND}
    if isinstance(value, dspy.BaseLM):
        attributes = {name: part for name, part in attributes.items() if name != "kwargs" and not _SECRET.search(name)}
        facts = model_settings(value)
    elif _package(kind) != "dspy" and (_package(kind) in _STANDARD or "distribution" in _source(kind)):
        try:
            return {"class": _name(kind), "pickle": hashlib.sha256(pickle.dumps(value)).hexdigest()}
        except Exception as error:
            if _package(kind) in _STANDARD:
                return _name(kind)  # a lock or an open file holds nothing that an answer depends on
            raise SpecError(
                f"a {_name(kind)} cannot be told from another one ({type(error).__name__}: {error}), so nobody knows "
                "whether an answer is still valid: make it where it is used, or keep it in a module-level variable"
            ) from None
    state = {name: describe(part) for name, part in sorted(attributes.items())}
    return {"class": describe(kind), **facts, "state": state}


def _describe_code(part: Any, describe: Callable[[Any], Any]) -> Any:
    """Describe a class or a function: its files, the constants of its module, and what a closure or default holds."""
    if _package(part) in _STANDARD or _package(part) == "dspy":
        return _name(part)
    description = {"name": part.__qualname__, **_source(part)}
    if isinstance(part, FunctionType):
        cells = [cell.cell_contents for cell in part.__closure__ or () if cell != CellType()]
        description["holds"] = describe([cells, part.__defaults__, part.__kwdefaults__])
        if part.__name__ == "<lambda>":
            code = part.__code__
            description["place"] = [code.co_firstlineno, *next(iter([*code.co_positions()][1:]), ())]
    constants = vars(sys.modules[part.__module__]) if part.__module__ in sys.modules else {}
    description["constants"] = {
        name: describe_value(constant) for name, constant in constants.items() if name.isupper() and _is_plain(constant)
    }
    if "lines" in description:
        # A notebook has no file: its other functions and classes are known by their names in these lines.
        names = set(re.findall(r"[^\W\d]\w*", description["lines"]))
        used = {
            name: constants[name] for name in sorted(names & constants.keys()) if not inspect.ismodule(constants[name])
        }
        description["uses"] = describe(used)
    return description


def _source(part: Any) -> dict[str, Any]:
    """Return hashes of the files of a class or a function, or its lines in a notebook."""
    module = sys.modules.get(part.__module__)
    file = getattr(module, "__file__", None)
    if part.__module__ != "__main__" or file is not None:
        try:
            place = file if part.__module__ == "__main__" else part.__module__
            return {
                name: value
                for name, value in hash_source(f"{place}:code", "medexam.programs").items()
                if name != "object"
            }
        except SpecError:
            pass  # of a module that was made without a file
    # Of a class without a file Python finds the lines of its functions alone.
    functions = (
        [one for one in vars(part).values() if isinstance(one, FunctionType)] if isinstance(part, type) else [part]
    )
    try:
        return {"lines": "".join(map(inspect.getsource, functions))}
    except (OSError, TypeError):
        raise SpecError(
            f"{_name(part)} has no source that could be read, so a run cannot be told from one of other code: write it "
            "in a file or a notebook"
        ) from None


def _is_plain(value: Any) -> bool:
    """Return whether a value is a text, a number, or a list, tuple, set or mapping of such."""
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.values()))
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


def _name(part: Any) -> str:
    return f"{part.__module__}.{part.__qualname__}"


def _package(part: Any) -> str:
    return (part.__module__ or "").partition(".")[0]
