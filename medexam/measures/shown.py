"""How measures stand in tables, sentences and MLflow: a benchmark's and the user's own, each in its unit."""

import re
from collections.abc import Iterable, Mapping
from functools import partial

from medexam.measures.paired import Difference
from medexam.measures.results import Measure, Resampling, Unit
from medexam.measures.scoring import AVERAGES
from medexam.tables import NONE, Number, decimal, percent, with_interval

_UPPER = re.compile(r"\b(f1|bleu|meteor|rouge)\b")


def name_measure(name: str) -> str:
    """Name a measure as tables call it."""
    if name in AVERAGES:
        return AVERAGES[name][1]
    text = name.replace("_spanish", ", Spanish rule").replace("_", " ")
    text = _UPPER.sub(lambda match: match[0].upper(), text)
    return text[:1].upper() + text[1:]


def show_number(value: float | None, unit: Unit) -> Number:
    """Write a share in percent and points with one decimal, and what has a unit of its own with three."""
    return percent(value) if unit is Unit.SHARE else decimal(value, 3 if unit is Unit.OWN else 1)


def show_measure(measure: Measure | None, *, bare: bool = False, chance: bool = False) -> str:
    """Write a measure with its interval, or `bare` without; or its `chance` level, empty if it has none."""
    if measure is None or (chance and measure.chance is None):
        return "" if chance else NONE
    text = show_number(measure.chance if chance else measure.value, measure.unit)
    interval = None if bare or chance else measure.interval
    return with_interval(text, interval, partial(show_number, unit=measure.unit))


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


def describe_resampling(kinds: Iterable[Resampling], bootstrap: str, clusters: str) -> str:
    """Write `bootstrap over exams`, with `bootstrap` before `over`, and what is done with few of `clusters`.

    Each way that occurs once, in a fixed order; that of clusters if none does.
    """
    present_kinds = set(kinds) or {Resampling.CLUSTERS}
    phrases = {
        Resampling.CLUSTERS: f"{bootstrap} over {clusters}",
        Resampling.WITHIN_EXAMS: f"{bootstrap} over questions within exams if there are fewer than five exams",
        **{kind: f"no interval if {why_none(kind, clusters)}" for kind in (Resampling.TOO_FEW, Resampling.ALIKE)},
    }
    return "; ".join(text for kind, text in phrases.items() if kind in present_kinds)


def why_none(kind: Resampling, clusters: str) -> str:
    """Say why there is no interval; `clusters` that are questions have no questions within them."""
    if kind is Resampling.ALIKE:
        return "every resample has the same result"
    if clusters.endswith("questions"):
        return f"there are fewer than five {clusters}"
    return "there are fewer than five exams, and one has fewer than five questions"
