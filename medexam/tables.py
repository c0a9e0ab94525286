"""A table as plain text cells; the terminal, Markdown and the page draw the same ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

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
