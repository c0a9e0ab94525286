"""What the user's own metrics say of runs, in tables and sentences: the same for every benchmark."""

from collections.abc import Iterator, Sequence

from medexam.experiments.compare.result import Comparison
from medexam.experiments.compare.runs import run_names
from medexam.experiments.store.stored_run import AnyRun
from medexam.metrics.paired.results import Difference
from medexam.metrics.results import WILSON, OwnMeasure, RunMetrics
from medexam.tables import NONE, Captioned, Interval, Table, count_stars, equals, p_value

TITLE = "Own metrics"
_CAPTION = (
    "Means over the questions that have a score, in the metric's own unit, in brackets 95 % intervals (bootstrap over "
    f"exams or whole questions, of fewer than five exams over questions within them; {WILSON}, where each scores 0 or "
    "1; none of too few questions). No score: other questions that were answered or not."
)
_TOLD = {"better": "is higher than", "worse": "is lower than", "not told apart": "is not told apart from"}


def own_tables(runs: Sequence[AnyRun]) -> list[Captioned]:
    """Build one row a metric and run; empty if no run is scored by a metric of the user's own."""
    several = len(runs) > 1
    rows = [
        (name, *([run_name] if several else []), str(measure.n), str(measure.skipped), _value(measure))
        for name in dict.fromkeys(name for run in runs for name in run.metrics.own)
        for run, run_name in zip(runs, run_names(runs), strict=True)
        if (measure := run.metrics.own.get(name)) is not None
    ]
    headers = ("Metric", *(["Run"] if several else []), "n", "No score", "Mean")
    return [(Table(TITLE, headers, tuple(rows), text_columns=2 if several else 1), _CAPTION)] if rows else []


def own_values(metrics: RunMetrics) -> dict[str, float]:
    """Map the name of each number that MLflow keeps to its value."""
    values: dict[str, float | None] = {}
    for name, measure in metrics.own.items():
        low, high = measure.interval or (None, None)
        values |= {f"own.{name}": measure.value, f"own.{name}_low": low, f"own.{name}_high": high}
        values |= {f"own.{name}_n": measure.n, f"own.{name}_skipped": measure.skipped}
    return {name: float(value) for name, value in values.items() if value is not None}


def paired_tables(comparison: Comparison) -> list[Captioned]:
    """Build tables of the differences of each pair; empty if the runs share no metric of the user's own."""
    tables = []
    for name, pair in zip(comparison.names[1:], comparison.own, strict=False):
        rows = tuple(
            (
                metric,
                str(measure.n),
                _number(measure.baseline),
                _number(measure.other),
                _signed(measure.difference),
                p_value(measure.p),
                p_value(measure.p_adjusted),
            )
            for metric, measure in pair.items()
        )
        bold_cells = frozenset(
            (row, 4) for row, measure in enumerate(pair.values()) if measure.verdict != "not told apart"
        )
        headers = ("Metric", "n", "Baseline", "Run", "Difference", "p", "p Holm")
        title = f"{TITLE}: {name} against {comparison.names[0]}"
        caption = (
            "Means over the questions that all runs have a score for, in brackets 95 % intervals (paired bootstrap). "
            "p: paired permutation test over questions, two-sided, and adjusted by Holm for all own metrics and runs. "
            "Bold: told apart."
        )
        stars = tuple((row, 4, count_stars(measure.p_adjusted)) for row, measure in enumerate(pair.values()))
        tables.append((Table(title, headers, rows, bold_cells, stars=stars), caption))
    return tables


def paired_sentences(comparison: Comparison) -> Iterator[str]:
    """Yield what may be said of each pair in each metric of the user's own."""
    for name, pair in zip(comparison.names[1:], comparison.own, strict=False):
        for metric, measure in pair.items():
            yield (
                f"{name} {_TOLD[measure.verdict]} {comparison.names[0]} in {metric}: {_signed(measure.difference)}, "
                f"p {equals(measure.p)}, {p_value(measure.p_adjusted)} after Holm."
            )


def _value(measure: OwnMeasure) -> str:
    return _with(_number(measure.value), measure.interval)


def _signed(difference: Difference) -> str:
    return _with(("+" if difference.value > 0 else "") + _number(difference.value), difference.interval)


def _with(text: str, interval: Interval | None) -> str:
    return text if interval is None else f"{text} [{_number(interval[0])}, {_number(interval[1])}]"


def _number(value: float | None) -> str:
    """Format a number with three decimals, without a minus before a zero."""
    return NONE if value is None else f"{round(value, 3) + 0.0:.3f}"
