"""What the kinds of evidence share: the form of their figures, and how tables show them."""

from collections.abc import Mapping, Sequence
from typing import Any

from medexam.distributions import rate_interval
from medexam.predictions.prediction import Prediction
from medexam.questions import Gold
from medexam.tables import Table, percent, with_interval

Figures = dict[str, Any]
"""What `metrics.json` holds of a kind. Shares, probabilities and accuracies are fractions of 1, intervals 95 %."""
Rows = Sequence[tuple[Prediction, Gold]]
"""The scored predictions of a run, in the order of the questions."""


def rate_of(right: int, n: int, name: str = "accuracy") -> Figures:
    """Return the share `right / n` and Wilson's interval under their names; both None if `n` is 0."""
    interval = rate_interval(right, n)
    return {name: right / n if n else None, f"{name}_interval": interval and list(interval)}


def show_figure(part: Mapping[str, Any], name: str) -> str:
    """Write a text or a count as it is, and a share in percent, with its interval if it has one."""
    value = part[name]
    return str(value) if isinstance(value, str | int) else with_interval(percent(value), part.get(f"{name}_interval"))


def show_figures(title: str, parts: Sequence[Figures], columns: Mapping[str, str], caption: str) -> Table:
    """Show a row a part; `columns` maps each header to the name of a figure."""
    rows = tuple(tuple(show_figure(part, name) for name in columns.values()) for part in parts)
    return Table(title, tuple(columns), rows, caption=caption)
