"""Python values as the overrides of a spec."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from medexam.experiments.entry.carry_out import write_notice
from medexam.specs.base import Spec

if TYPE_CHECKING:
    import dspy


OnePart: TypeAlias = "str | Mapping[str, Any] | Spec | dspy.Module | dspy.BaseLM"
PartSource: TypeAlias = "OnePart | Sequence[OnePart] | None"
"""A part of a spec: a text for its first field, a mapping of the fields that change, or a spec. `program` takes a
`dspy.Module` too, and `model` a `dspy.LM`. A list of them is an axis of the matrix. A mapping that names another data
set, program or engine is a whole part."""


def gather(overrides: Mapping[str, Any], **parts: PartSource) -> dict[str, Any]:
    """Map dotted keys to plain values, from keywords in which two underscores stand for a dot; None is left out.

    The model that `set_lm` gave a module is the run's.
    """
    settings: dict[str, Any] = {name: part for name, part in parts.items() if part is not None}
    settings |= {name.replace("__", "."): value for name, value in overrides.items()}
    # Most settings are no objects.
    if (dspy := sys.modules.get("dspy")) is not None:
        from medexam.experiments.evaluate.identity import set_model, unset_models

        programs, models = (_listed(settings.get(name)) for name in ("program", "model"))
        modules = [part for part in programs if isinstance(part, dspy.Module)]
        if dspy.settings.adapter is not None and len(modules) < max(1, len(programs)):
            adapter = type(dspy.settings.adapter).__name__
            write_notice(
                f"dspy.configure(adapter={adapter}) applies only to modules; for other programs set program__adapter"
            )
        if len(programs) == len(modules) == 1 and not models and (own_model := set_model(modules[0])) is not None:
            settings["model"], models = own_model, [own_model]
        asking = [unset_models(part, models or [None]) if part in modules else part for part in programs]
        if modules:
            settings["program"] = asking if isinstance(settings["program"], (list, tuple)) else asking[0]
    return {name: value if isinstance(value, Spec) else _plain(value) for name, value in settings.items()}


def _listed(part: Any) -> list[Any]:
    if part is None:
        return []
    return list(part) if isinstance(part, (list, tuple)) else [part]


def _plain(value: Any) -> Any:
    """Convert a value to what YAML would give; a module or a model that the script has made to what names it."""
    if isinstance(value, Spec):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    dspy = sys.modules.get("dspy")
    if dspy is None or not isinstance(value, (dspy.Module, dspy.BaseLM)):
        return value
    from medexam.experiments.evaluate.identity import model_part, program_part

    return program_part(value) if isinstance(value, dspy.Module) else model_part(value)
