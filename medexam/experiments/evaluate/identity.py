"""What tells one module, model or metric of a script from another, in this process and in the next one.

Code is known by the source of its file and of the files beside it that it imports, with the values of the constants in
its module. An object of such code is known by that and by what it holds; keys, and what calls leave behind, are left
out. What cannot be known in this way is refused.
"""

import hashlib
import inspect
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

from medexam.errors import SpecError
from medexam.plugins import hash_source, name_object
from medexam.programs.base import EngineLM
from medexam.specs.identity import digest
from medexam.text import SECRET_NAME

_LEFT_BEHIND = frozenset(
    {
        *("history", "callbacks", "traces", "train", "stage", "_compiled"),
        *("_engine_store", "_engine_lock", "_providers", "_warned_zero_temp_rollout"),
    }
)
"""Attributes of DSPy's modules and models that calls and optimizers leave behind, and no answer depends on."""
_STANDARD = sys.stdlib_module_names
_ADDRESS = frozenset({"api_base", "base_url", "api_version"})
"""Settings that say where a model is reached."""


def label_of(part: Any) -> str:
    """Return how tables call a module or a metric: a function's name, else its class's."""
    function = part.func if isinstance(part, partial) else part
    return str(getattr(function, "__name__", type(function).__name__)).strip("<>")


def name_part(part: Any) -> str:
    """Name a part that a script made, for the time of this process, by its label and a digest of what it is."""
    return name_object(part, label_of(part), digest(describe_value(part)))


def program_part(program: Any) -> dict[str, Any]:
    """Return the `program` part of a spec for a module that a script made, and for the adapter of `dspy.configure`."""
    adapter = dspy.settings.adapter
    return {"kind": name_part(program), **({} if adapter is None else {"adapter": name_part(adapter)})}


def model_part(lm: Any) -> dict[str, Any]:
    """Return the `model` part of a spec for a model that a script made; it names the object, and says its settings.

    What the object leaves to its provider, the run leaves to it too.
    """
    if isinstance(lm, EngineLM) and lm.spec is not None:
        return lm.spec.model_dump(exclude_unset=True)
    if lm is None:
        return {"engine": name_object(None, "none", "module"), "name": "set by the module"}
    settings = model_settings(lm)
    temperature = settings.get("temperature")
    return {
        "engine": name_part(lm),
        "name": lm.model,
        "args": settings,
        "seed": settings.get("seed"),
        "temperature": temperature if isinstance(temperature, (int, float)) and 0 <= temperature <= 2 else None,
        # DSPy renames the budget for OpenAI's models that think.
        "max_tokens": settings.get("max_tokens") or settings.get("max_completion_tokens") or 0,
    }


def model_settings(lm: dspy.BaseLM) -> dict[str, Any]:
    """List the settings that a model's requests have, as JSON-ready data, without keys and addresses."""
    return {
        name: describe_value(value)
        for name, value in lm.kwargs.items()
        if value is not None and not _holds_key(name) and name not in _ADDRESS
    }


def _holds_key(setting: str) -> bool:
    return bool(SECRET_NAME.search(setting)) or setting.endswith("headers")


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
            return sorted(map(describe, value), key=digest)
        case Path() if value.is_file():
            return {"file": hashlib.sha256(value.read_bytes()).hexdigest()}
        case EngineLM() if value.spec is not None:
            from medexam.serve.build import known_model

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
    kind, facts = type(value), dict[str, Any]()
    attributes = {name: part for name, part in getattr(value, "__dict__", {}).items() if name not in _LEFT_BEHIND}
    if isinstance(value, dspy.BaseLM):
        attributes = {name: part for name, part in attributes.items() if name != "kwargs" and not _holds_key(name)}
        facts = model_settings(value)
    elif _package(kind) != "dspy" and (_package(kind) in _STANDARD or "distribution" in _source(kind)):
        # Of an installed package: what pickle makes of it.
        try:
            return {"class": _name(kind), "pickle": hashlib.sha256(pickle.dumps(value)).hexdigest()}
        except Exception as error:
            if _package(kind) in _STANDARD:
                return _name(kind)  # a lock or an open file holds nothing that an answer depends on
            raise SpecError(
                f"a {_name(kind)} cannot be told from another one ({type(error).__name__}: {error}), so nobody knows "
                "whether an answer is still valid: make it where it is used, or keep it in a module-level variable"
            ) from None
    return {
        "class": describe(kind),
        **facts,
        "state": {name: describe(attributes[name]) for name in sorted(attributes)},
    }


def _describe_code(part: Any, describe: Callable[[Any], Any]) -> Any:
    if _package(part) in _STANDARD or _package(part) == "dspy":
        return _name(part)
    description = {"name": part.__qualname__, **_source(part)}
    if isinstance(part, FunctionType):
        cells = [cell.cell_contents for cell in part.__closure__ or () if cell != CellType()]
        description["holds"] = describe([cells, part.__defaults__, part.__kwdefaults__])
        if part.__name__ == "<lambda>":
            code = part.__code__
            description["place"] = [code.co_firstlineno, *next(iter([*code.co_positions()][1:]), ())]
    names = vars(sys.modules[part.__module__]) if part.__module__ in sys.modules else {}
    description["constants"] = {
        name: describe_value(constant) for name, constant in names.items() if name.isupper() and _is_plain(constant)
    }
    if "lines" in description:
        # A notebook has no file: its other functions and classes are known by their names in these lines.
        words = sorted(set(re.findall(r"[^\W\d]\w*", description["lines"])) & names.keys())
        description["uses"] = describe({name: names[name] for name in words if not inspect.ismodule(names[name])})
    return description


def _source(part: Any) -> dict[str, Any]:
    """Return hashes of the files of a class or a function, or its lines in a notebook."""
    file = getattr(sys.modules.get(part.__module__), "__file__", None)
    if part.__module__ != "__main__" or file is not None:
        try:
            source = hash_source(
                f"{file if part.__module__ == '__main__' else part.__module__}:code", "medexam.programs"
            )
            return {name: value for name, value in source.items() if name != "object"}
        except SpecError:
            pass  # of a module that was made without a file
    # Of a class without a file Python finds the lines of its functions alone.
    parts = [one for one in vars(part).values() if isinstance(one, FunctionType)] if isinstance(part, type) else [part]
    try:
        return {"lines": "".join(map(inspect.getsource, parts))}
    except (OSError, TypeError):
        raise SpecError(
            f"{_name(part)} has no source that could be read, so a run cannot be told from one of other code: write it "
            "in a file or a notebook"
        ) from None


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.values()))
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


def _name(part: Any) -> str:
    return f"{part.__module__}.{part.__qualname__}"


def _package(part: Any) -> str:
    return (part.__module__ or "").partition(".")[0]
