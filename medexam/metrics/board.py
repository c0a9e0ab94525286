"""Several runs on a board: a mean over groups of questions with weights of one's own, and the mean over the runs.

A benchmark that names no weights means them all alike.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from medexam.errors import SpecError


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A run on a board."""

    run: str
    scores: Mapping[str, float | None]
    """Group -> its score; those that weigh something."""
    weighted: float | None
    """The mean by the weights; None if a group that weighs something has no score."""


@dataclass(frozen=True, slots=True)
class Board:
    """Runs, the best weighted mean first, those without one or without a rank last; equals in the order given."""

    rows: tuple[BoardRow, ...]
    mean: float | None
    """Over the runs; None if one has no weighted mean."""


def weigh(
    runs: Mapping[str, Mapping[str, float | None]], weights: Mapping[str, float], unranked: Collection[str] = ()
) -> Board:
    """Set runs, at least one, side by side: name -> group -> score. A group that `weights` does not name weighs 0.

    The runs of the names in `unranked` stand last, whatever they score.
    Raises `SpecError` for weights that are negative or all 0, and for one of a group that no run has.
    """
    groups = list(dict.fromkeys(group for scores in runs.values() for group in scores))
    unknown = next((name for name in weights if name not in groups), None)
    if unknown is not None:
        raise SpecError(
            f"a weight is given for the group {unknown!r}, which no run has; the groups are {', '.join(groups)}"
        )
    if min(weights.values(), default=0.0) < 0 or sum(weights.values()) <= 0:
        raise SpecError(f"weights must be 0 or more, and at least one above 0; they are {dict(weights)}")
    group_weights = {group: weight for group, weight in weights.items() if weight > 0}
    rows = []
    for name, scores in runs.items():
        own = {group: scores.get(group) for group in group_weights}
        rows.append(
            BoardRow(name, own, _weighted_mean([(own[group], weight) for group, weight in group_weights.items()]))
        )
    mean = _weighted_mean([(row.weighted, 1.0) for row in rows])
    rows.sort(key=lambda row: (row.run not in unranked, -1.0 if row.weighted is None else row.weighted), reverse=True)
    return Board(tuple(rows), mean)


def _weighted_mean(values: list[tuple[float | None, float]]) -> float | None:
    pairs = [(value, weight) for value, weight in values if value is not None]
    if len(pairs) < len(values):
        return None
    return sum(value * weight for value, weight in pairs) / sum(weight for _, weight in pairs)
