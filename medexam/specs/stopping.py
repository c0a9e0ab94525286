"""When the cells of an experiment stop being asked: the `stop_when` part of a spec."""

from typing import Annotated

from pydantic import Field

from medexam.specs.base import Spec


class StopSpec(Spec):
    """Ask in blocks, and end each comparison with the baseline once it is decided."""

    difference: Annotated[float, Field(gt=0, le=50)]
    """The smallest difference of accuracy that matters, in percentage points."""
    power: Annotated[float, Field(ge=0.5, lt=1)] = 0.8
    """A true difference of that size is called none with a probability of at most 1 - power."""
    baseline: str | None = None
    """The program that the others are compared with, as `medexam plan` names it, with its language if several cells
    have that program; None: the first cell."""
    seed: int = 0
    """Chooses the order in which the questions are asked."""
