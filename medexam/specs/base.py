"""What all specs share: they are frozen, and a key that does not exist is refused."""

from pydantic import BaseModel, ConfigDict


class Spec(BaseModel):
    """Base of every part of an experiment's spec."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())
