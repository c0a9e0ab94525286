"""The base of values that are checked when they are made: what files hold, what is reported, what a spec says."""

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """A value that never changes and has no other fields than its own."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())
