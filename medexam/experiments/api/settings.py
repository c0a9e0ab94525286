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
    """Map dotted keys to plain values, from keywords in which two underscores stand for a dot; None is left out."""
    settings = {name: part for name, part in parts.items() if part is not None}
    settings |= {name.replace("__", "."): value for name, value in overrides.items()}
    settings = _with_set_models(settings)
    return {name: value if isinstance(value, Spec) else _plain(value) for name, value in settings.items()}


def _with_set_models(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the models that `set_lm` gave a module as the run's; say what is not heeded."""
    dspy = sys.modules.get("dspy")
    if dspy is None:
        return settings
    from medexam.experiments.evaluate.planning import set_model, unset_models

    program, model = settings.get("program"), settings.get("model")
    programs = _listed(program)
    modules = [part for part in programs if isinstance(part, dspy.Module)]
    if dspy.settings.adapter is not None and len(modules) < max(1, len(programs)):
        adapter = type(dspy.settings.adapter).__name__
        write_notice(
            f"dspy.configure(adapter={adapter}) applies only to modules; for other programs set program__adapter"
        )
    if len(programs) == len(modules) == 1 and model is None and (own_model := set_model(modules[0])) is not None:
        model = settings["model"] = own_model
    models = _listed(model) or [None]
    asking = [unset_models(part, models) if isinstance(part, dspy.Module) else part for part in programs]
    return {**settings, "program": asking if isinstance(program, (list, tuple)) else asking[0]} if modules else settings


def _listed(part: Any) -> list[Any]:
    if part is None:
        return []
    return list(part) if isinstance(part, (list, tuple)) else [part]


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
