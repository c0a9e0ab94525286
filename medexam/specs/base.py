"""What all specs share: they are frozen, a key that does not exist is refused, and one value is a list of one."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self, get_args, get_origin

from pydantic import ModelWrapValidatorHandler, model_validator

from medexam.frozen_model import FrozenModel
from medexam.specs.validation import UnknownKeyError


class Spec(FrozenModel):
    """Base of every part of an experiment's spec."""

    other_names: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """What a file may call a field -> the field."""
    short_form: ClassVar[str] = ""
    """The field that a text in the place of the part means; empty: none."""

    def __hash__(self) -> int:
        """Return the hash of its JSON: a field may hold a list."""
        return hash(self.model_dump_json())

    @model_validator(mode="wrap")
    @classmethod
    def _read_keys(cls, values: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        """Take `years: 2016` for `years: [2016]`, where a field is a list and never one value alone."""
        if isinstance(values, str) and cls.short_form:
            values = {cls.short_form: values}
        if not isinstance(values, Mapping):
            return read(values)
        tree = {cls.other_names.get(name, name): value for name, value in values.items()}
        if len(tree) < len(values):
            raise ValueError("two keys are the same field: leave one of them out")
        names = {field.alias or name for name, field in cls.model_fields.items()}
        for name in tree:
            if cls.model_config["extra"] == "forbid" and name not in names and name not in cls.model_fields:
                raise UnknownKeyError(str(name), names)
        for name, field in cls.model_fields.items():
            kind = field.annotation
            kinds = (kind,) if get_origin(kind) is tuple else get_args(kind)
            if isinstance(tree.get(name), str | int) and any(get_origin(one) is tuple for one in kinds):
                tree[name] = tree[name] if {str, int} & set(kinds) else (tree[name],)
        return read(tree)
