"""Python values as the overrides of a spec."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from medexam.specs.base import Spec


class ModuleObject(Protocol):
    """A `dspy.Module`, as far as type checkers need to know: DSPy is loaded when it is used."""

    def named_predictors(self) -> Any:
        """List name and predictor of each."""


class ModelObject(Protocol):
    """A `dspy.LM`, likewise."""

    model: Any
    kwargs: Any


OnePart = str | Mapping[str, Any] | Spec | ModuleObject | ModelObject
PartSource = OnePart | Sequence[OnePart] | None
"""A part of a spec: a text for its first field, a mapping of the fields that change, or a spec. `program` takes a
`dspy.Module` too, and `model` a `dspy.LM`. A list of them is an axis of the matrix. A mapping that names another data
set, program or engine is a whole part."""


def gather(overrides: Mapping[str, Any], **parts: PartSource) -> dict[str, Any]:
    """Map dotted keys to plain values, from keywords in which two underscores stand for a dot; None is left out."""
    settings = {name: part for name, part in parts.items() if part is not None}
    settings |= {name.replace("__", "."): value for name, value in overrides.items()}
    return {name: value if isinstance(value, Spec) else _plain(value) for name, value in settings.items()}


def _plain(value: Any) -> Any:
    """Convert a value to what YAML would give."""
    if isinstance(value, Spec):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return _name_object(value)


def _name_object(value: Any) -> Any:
    """Return the part of a spec that names a module or a model that the script has made; any other value as it is."""
    dspy = sys.modules.get("dspy")
    if dspy is None or not isinstance(value, (dspy.Module, dspy.BaseLM)):
        return value
    # Imported here: most settings are no objects.
    from medexam.experiments.evaluate.planning import model_part, program_part

    return program_part(value) if isinstance(value, dspy.Module) else model_part(value)
