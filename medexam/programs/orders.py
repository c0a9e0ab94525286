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
    """The orders in which the question is shown; the exam's own is the first, but where they are drawn."""
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
    """The question as it is shown in `order`; its key stays the same."""
    texts = {option.number: option.text for option in question.options}
    places = zip(question.option_numbers, order, strict=True)
    return question.model_copy(
        update={"options": tuple(Option(number, texts[number_of]) for number, number_of in places)}
    )


def original(question: Question, order: Order, shown: int | None) -> int | None:
    """The printed number of the option that was shown as number `shown` in `order`; None for None."""
    return None if shown is None else order[question.option_numbers.index(shown)]


def _draw(question: Question, orders: RandomOrders) -> list[Order]:
    numbers = list(question.option_numbers)
    drawing = random.Random(f"{orders.seed}/{question.key}")  # noqa: S311 - nothing secret
    if math.factorial(len(numbers)) <= 5040:
        every = list(permutations(numbers))
        return drawing.sample(every, min(orders.random, len(every)))
    drawn: dict[Order, None] = {}
    while len(drawn) < orders.random:
        drawn[tuple(drawing.sample(numbers, len(numbers)))] = None
    return list(drawn)
