"""Python values as the overrides of a spec."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from medexam.specs.base import Spec

PartSource = str | Mapping[str, Any] | Spec | Sequence[str | Mapping[str, Any] | Spec] | None
"""A part of a spec: a text for its first field, a mapping of the fields that change, or a spec. A list of them is an
axis of the matrix. A mapping that names another data set, program or engine is a whole part."""


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
    return [_plain(part) for part in value] if isinstance(value, (list, tuple)) else value
