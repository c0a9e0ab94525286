"""What all specs share: they are frozen, and a key that does not exist is refused."""

from medexam.frozen_model import FrozenModel


class Spec(FrozenModel):
    """Base of every part of an experiment's spec."""
