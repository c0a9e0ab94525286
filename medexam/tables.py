"""A table, which the terminal, Markdown, LaTeX, CSV and the page draw, and how numbers are written in it.

Scores come in as fractions of 1 and go out as percent with one decimal.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Interval = tuple[float, float]

NONE = "-"
"""Written if there is no score."""


class Number(str):
    """A number as a table writes it: a text that knows its value."""

    value: float | None
    """In the unit that is written, such as percent; None if there is no number."""
    interval: Interval | None
    """The ends of its 95 % interval, in the same unit."""

    __slots__ = ("interval", "value")

    def __new__(cls, text: str, value: float | None, interval: Interval | None = None) -> "Number":
        """Make the text that a reader sees, the interval included."""
        number = super().__new__(cls, text)
        number.value, number.interval = value, interval
        return number


@dataclass(frozen=True)
class Table:
    """Rows of text under headers; `best` holds the (row, column) positions to stress."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]] = frozenset()
    text_columns: int = 1
    """How many columns, from the left, hold words and not numbers."""
    caption: str = ""
    """How to read it."""


def decimal(value: float | None, digits: int = 1) -> Number:
    """Write a number with `digits` decimals, without a minus before a zero."""
    if value is None:
        return Number(NONE, None)
    text = f"{value:.{digits}f}"
    return Number(text if text.strip("-0.") else text.lstrip("-"), value)


def percent(fraction: float | None) -> Number:
    """Write a fraction of 1 as percent with one decimal, without the sign."""
    return decimal(None if fraction is None else 100 * fraction)


def with_interval(text: str, interval: Interval | None, write: Callable[[float], Number] = percent) -> str:
    """Write `28.1 [27.1, 29.2]`, its ends by `write`; the bare text without an interval."""
    if interval is None:
        return text
    low, high = map(write, interval)
    ends = None if low.value is None or high.value is None else (low.value, high.value)
    return Number(f"{text} [{low}, {high}]", getattr(text, "value", None), ends)


def p_value(p: float) -> Number:
    """Write three decimals, and no less than can be told in them."""
    return Number("<0.001" if p < 0.001 else f"{p:.3f}", p)


def coefficient(value: float | None) -> Number:
    """Write a correlation with two decimals, without a minus before a zero."""
    return decimal(value, 2)


def six_digits(value: float | None) -> float | None:
    """Round to six digits, more than anybody reads off a page; None too for what JSON cannot say."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


def equals(p: float) -> str:
    """Write `= 0.012` or `< 0.001`, behind the name of a test."""
    text = p_value(p)
    return text.replace("<", "< ") if text.startswith("<") else f"= {text}"


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Map dotted key to text for every leaf that is set; None, empty lists and empty texts are left out."""
    text_by_key: dict[str, str] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            text_by_key |= flatten(value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple):
            if value:
                text_by_key[f"{prefix}{key}"] = ", ".join(str(item) for item in value)
        elif value is not None and value != "":
            text_by_key[f"{prefix}{key}"] = str(value)
    return text_by_key
