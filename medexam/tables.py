"""A table as plain text cells, which the terminal, Markdown and the page draw, and how numbers are written in it.

Scores come in as fractions of 1 and go out as percent with one decimal.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Interval = tuple[float, float]

NONE = "-"
"""Written if there is no score."""
STARS = "*: p < 0.05, **: p < 0.01, ***: p < 0.001."


Captioned = tuple["Table", str]
"""A table with the caption that says how to read it."""


@dataclass(frozen=True)
class Table:
    """Rows of text under headers; `best` holds the (row, column) positions to stress."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]] = frozenset()
    text_columns: int = 1
    """How many columns, from the left, hold words and not numbers."""
    stars: tuple[tuple[int, int, int], ...] = ()
    """(row, column, how many) of the stars that a printed table has behind a number; `STARS` is their legend."""
    spans: tuple[str, ...] = ()
    """What a printed table has above each header, once over neighbours that share it; empty for a single line of
    headers."""


class UnscoredCounts(Protocol):
    """Scores that know how many items enter none of them."""

    @property
    def failed(self) -> int:
        """Items whose asking failed."""

    @property
    def missing(self) -> int:
        """Items without a prediction."""


def unscored_columns(scores: Sequence[UnscoredCounts]) -> dict[str, list[str]]:
    """Return the column of questions that are not scored; empty if all are."""
    if not any(group.failed or group.missing for group in scores):
        return {}
    return {"Failed, missing": [f"{group.failed}, {group.missing}" for group in scores]}


def decimal(value: float | None) -> str:
    """Write a number with one decimal, without a minus before a zero."""
    if value is None:
        return NONE
    text = f"{value:.1f}"
    return "0.0" if text == "-0.0" else text


def percent(fraction: float | None) -> str:
    """Write a fraction of 1 as percent with one decimal, without the sign."""
    return NONE if fraction is None else decimal(100 * fraction)


def amount(value: float | None) -> str:
    """Write a quantity of any size: whole from 100 on, with three digits below."""
    if value is None:
        return NONE
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def with_interval(text: str, interval: Interval | None) -> str:
    """Write `28.1 [27.1, 29.2]`; the bare text without an interval."""
    if interval is None:
        return text
    return f"{text} [{decimal(100 * interval[0])}, {decimal(100 * interval[1])}]"


def p_value(p: float) -> str:
    """Write three decimals, and no less than can be told in them."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def count_stars(p: float) -> int:
    """Return how many stars `STARS` gives a p."""
    return sum(p < level for level in (0.05, 0.01, 0.001))


def coefficient(value: float) -> str:
    """Write a correlation with two decimals, without a minus before a zero."""
    return f"{round(value, 2) + 0.0:.2f}"


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
