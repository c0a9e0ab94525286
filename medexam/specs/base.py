"""What all specs share: they are frozen, a key that does not exist is refused, and one value is a list of one."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self, get_args, get_origin

from pydantic import ModelWrapValidatorHandler, ValidationError, model_validator

from medexam.frozen_model import FrozenModel
from medexam.specs.validation import UnknownKeysError


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
        for other, name in cls.other_names.items():
            if other in values and name in values:
                raise ValueError(f"{other} and {name} are the same: leave one of them out")
        values = {cls.other_names.get(name, name): value for name, value in values.items()}
        names = {field.alias or name for name, field in cls.model_fields.items()}
        fields = cls.model_fields
        allowed = {*names, *fields} if cls.model_config["extra"] == "forbid" else {*values}
        tree = {name: value for name, value in values.items() if name in allowed}
        for name in [name for name, value in tree.items() if isinstance(value, str | int) and name in fields]:
            kind = fields[name].annotation
            kinds = (kind,) if get_origin(kind) is tuple else get_args(kind)
            if any(get_origin(alternative) is tuple for alternative in kinds) and not {str, int} & set(kinds):
                tree[name] = (tree[name],)
        if len(tree) == len(values):
            return read(tree)
        others = None
        try:
            read(tree)
        except ValidationError as error:
            others = error
        raise UnknownKeysError(
            [str(name) for name in values if name not in allowed], names, str(tree.get("kind")), others
        )
