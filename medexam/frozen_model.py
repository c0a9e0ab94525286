"""The bases of values that are checked when they are made: what files hold, what is reported, what a spec says."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict
from pydantic_core import SchemaSerializer, SchemaValidator


class FrozenModel(BaseModel):
    """A value that never changes and has no other fields than its own."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class SlottedModel:
    """What pydantic's models can do, for its dataclasses with slots: these weigh a fifth of a model's memory.

    For values of which there are as many as questions.
    """

    __slots__ = ()
    __pydantic_validator__: ClassVar[SchemaValidator]
    __pydantic_serializer__: ClassVar[SchemaSerializer]

    @classmethod
    def model_validate(cls, value: object) -> Self:
        """Make an instance of a mapping of its fields, or return one as it is; raise pydantic's `ValidationError`."""
        validated: Self = cls.__pydantic_validator__.validate_python(value)
        return validated

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Self:
        """Make an instance of the JSON of its fields; raise pydantic's `ValidationError`."""
        validated: Self = cls.__pydantic_validator__.validate_json(text)
        return validated

    def model_dump(self, **settings: Any) -> dict[str, Any]:
        """Return the fields by name, under the settings of a model's `model_dump`, such as `mode="json"`."""
        dumped: dict[str, Any] = self.__pydantic_serializer__.to_python(self, **settings)
        return dumped

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self:
        """Return the same with other values in the fields that `update` names."""
        return replace(self, **(update or {}))  # type: ignore[type-var]
