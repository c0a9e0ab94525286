"""Measures in tables, sentences and MLflow: those of every benchmark, and the user's own, each in its unit."""

from collections.abc import Mapping
from functools import partial

from medexam.measures.counting import COSTS, COUNTS
from medexam.measures.paired.results import Difference
from medexam.measures.results import Measure, Metrics, Unit
from medexam.tables import NONE, Number, decimal, percent, with_interval


def show_number(value: float | None, unit: Unit) -> Number:
    """Write a share in percent and points with one decimal, and what has a unit of its own with three."""
    return percent(value) if unit is Unit.SHARE else decimal(value, 3 if unit is Unit.OWN else 1)


def show_measure(measure: Measure | None, *, bare: bool = False, chance: bool = False) -> str:
    """Write a measure with its interval, or `bare` without; or its `chance` level, empty if it has none."""
    if measure is None or (chance and measure.chance is None):
        return "" if chance else NONE
    if chance:
        return show_number(measure.chance, measure.unit)
    text = show_number(measure.value, measure.unit)
    return with_interval(text, None if bare else measure.interval, partial(show_number, unit=measure.unit))


def signed(difference: Difference, unit: Unit = Unit.SHARE) -> str:
    """Write a difference as `+3.3 [-1.0, 7.6]`: a plus before what is more, and no sign before a zero."""
    text = show_number(difference.value, unit)
    sign = "+" if difference.value > 0 and text.strip("0.") else ""
    return with_interval(Number(sign + text, text.value), difference.interval, partial(show_number, unit=unit))


def measure_values(measures: Mapping[str, Measure], prefix: str = "", ending: str = "") -> dict[str, float]:
    """Map the names of the numbers that MLflow keeps to their values: each measure, with `_low` and `_high`."""
    values: dict[str, float | None] = {}
    for measure_name, measure in measures.items():
        name, (low, high) = prefix + measure_name, measure.interval or (None, None)
        values |= {f"{name}{ending}": measure.value, f"{name}_low{ending}": low, f"{name}_high{ending}": high}
        if measure.skipped is not None:
            values |= {f"{name}_n{ending}": measure.n, f"{name}_skipped{ending}": measure.skipped}
    return {name: float(value) for name, value in values.items() if value is not None}


def run_values(metrics: Metrics) -> dict[str, float]:
    """Map the same of a run: how its questions came out, what they took, and its measures."""
    counts = {name: getattr(metrics, name) for name in (*COUNTS, *COSTS)}
    return {name: float(n) for name, n in counts.items() if n is not None} | measure_values(metrics.measures)
