"""Python values as the overrides of a spec."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic_core import to_jsonable_python

from medexam.errors import SpecError
from medexam.specs.base import Spec

if TYPE_CHECKING:
    import dspy


OnePart: TypeAlias = "str | Mapping[str, Any] | Spec | dspy.Module | dspy.BaseLM"
PartSource: TypeAlias = "OnePart | Sequence[OnePart] | None"
"""A part of a spec: a text for its first field, a mapping of the fields that change, or a spec. `program` takes a
`dspy.Module` too, and `model` a `dspy.LM`. A list of them is an axis of the matrix. A mapping that names another data
set, program or engine is a whole part."""


def gather(overrides: Mapping[str, Any], **parts: "PartSource | int") -> dict[str, Any]:
    """Map dotted keys to plain values, from keywords in which two underscores stand for a dot; None is left out."""
    settings = {name: part for name, part in parts.items() if part is not None}
    settings |= {name.replace("__", "."): value for name, value in overrides.items()}
    return {
        name: value if isinstance(value, Spec) else to_jsonable_python(value, fallback=_name_object)
        for name, value in settings.items()
    }


def _name_object(value: Any) -> Any:
    """Return what names a module or a model that the script has made."""
    dspy = sys.modules.get("dspy")
    if dspy is None or not isinstance(value, (dspy.Module, dspy.BaseLM)):
        raise SpecError(f"{value!r:.80} cannot be part of a spec")
    from medexam.experiments.evaluate.identity import model_part, program_part

    if isinstance(value, dspy.Module) and any(predictor.lm is not None for predictor in value.predictors()):
        raise SpecError("a module holds the model of set_lm: leave that out, and give the model as model=")
    return program_part(value) if isinstance(value, dspy.Module) else model_part(value)
