"""The orders in which the options of a question were shown."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from medexam.predictions.core import CorePrediction


@dataclass(frozen=True, kw_only=True)
class OrderFields(CorePrediction):
    """An answer with the orders of its options."""

    __slots__ = ()

    orders: Annotated[tuple[tuple[int, ...], ...] | None, Field(exclude_if=lambda orders: orders is None)] = None
    """The orders in which the options were shown, each as their printed numbers; every order has as many `votes`, one
    order after the other, as printed numbers too, or a row of `order_scores`. Left out of a line where the exam's order
    alone was shown."""
