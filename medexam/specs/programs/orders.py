"""In which orders a question's options are shown: `orders` of the programs that have a reply written."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from medexam.specs.base import Spec


class RandomOrders(Spec):
    """Different orders that are drawn anew for each question."""

    random: Annotated[int, Field(ge=2, le=1000)]
    """How many; a question with fewer orders is shown in all that it has."""
    seed: int = 17
    """With the question's key it says which orders are drawn."""


def _tag(orders: object) -> str:
    """Return which part of a spec's `orders` is meant, so that what is wrong is said of that alone."""
    return "drawn" if isinstance(orders, RandomOrders | Mapping) else "named, or {random: 4}"


Orders = Annotated[
    Annotated[Literal["given", "cyclic", "reversed"], Tag("named, or {random: 4}")]
    | Annotated[RandomOrders, Tag("drawn")],
    Discriminator(_tag),
]


def orders_label(orders: Orders) -> list[str]:
    """Return what tells the orders from the exam's own, for tables and folders; empty where only that is shown."""
    if isinstance(orders, RandomOrders):
        return [f"random{orders.random}"]
    return [] if orders == "given" else [orders]
