"""What all specs share: they are frozen, a key that does not exist is refused, and one value is a list of one."""

from collections.abc import Mapping
from typing import Any, get_args, get_origin

from pydantic import model_validator

from medexam.frozen_model import FrozenModel


class Spec(FrozenModel):
    """Base of every part of an experiment's spec."""

    @model_validator(mode="before")
    @classmethod
    def _one_is_a_list_of_one(cls, values: Any) -> Any:
        """Take `years: 2016` for `years: [2016]`."""
        if not isinstance(values, Mapping):
            return values
        return {
            name: (value,) if isinstance(value, str | int) and _takes_list(cls, name) else value
            for name, value in values.items()
        }


def _takes_list(model: type[Spec], name: str) -> bool:
    """Return whether a field is a list of values and never one value alone."""
    kind = model.model_fields[name].annotation if name in model.model_fields else None
    kinds = (kind,) if get_origin(kind) is tuple else get_args(kind)
    return any(get_origin(alternative) is tuple for alternative in kinds) and not {str, int} & set(kinds)
