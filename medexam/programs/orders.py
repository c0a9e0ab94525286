"""A question with its options in another order: the numbers stay in their places, the texts move.

An order is the printed numbers of the options as they are shown: the second is that of the option in the second place.
"""

import math
import random
from itertools import permutations

from medexam.questions import Option, Question
from medexam.specs.programs.orders import Orders, RandomOrders

Order = tuple[int, ...]


def orders_of(question: Question, orders: Orders) -> list[Order]:
    """Return the orders in which the question is shown; the exam's own is the first, but where they are drawn."""
    numbers = question.option_numbers
    if isinstance(orders, RandomOrders):
        return _draw(question, orders)
    match orders:
        case "cyclic":
            return [numbers[turn:] + numbers[:turn] for turn in range(len(numbers))]
        case "reversed":
            return [numbers, numbers[::-1]]
        case "given":
            return [numbers]


def shown_in(question: Question, order: Order) -> Question:
    """Return the question as it is shown in `order`; its key stays the same."""
    texts = {option.number: option.text for option in question.options}
    places = zip(question.option_numbers, order, strict=True)
    return question.model_copy(
        update={"options": tuple(Option(number, texts[source_number]) for number, source_number in places)}
    )


def original(question: Question, order: Order, number: int | None) -> int | None:
    """Return the printed number of the option that was shown as `number` in `order`; None for None."""
    return None if number is None else order[question.option_numbers.index(number)]


def _draw(question: Question, orders: RandomOrders) -> list[Order]:
    numbers = list(question.option_numbers)
    generator = random.Random(f"{orders.seed}/{question.key}")  # noqa: S311 - nothing secret
    if math.factorial(len(numbers)) <= 5040:
        all_orders = list(permutations(numbers))
        return generator.sample(all_orders, min(orders.random, len(all_orders)))
    distinct_orders: dict[Order, None] = {}
    while len(distinct_orders) < orders.random:
        distinct_orders[tuple(generator.sample(numbers, len(numbers)))] = None
    return list(distinct_orders)
