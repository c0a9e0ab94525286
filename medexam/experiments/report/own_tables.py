"""What the user's own metrics say of runs, in tables and sentences: the same for every benchmark."""

from collections.abc import Iterator, Sequence

from medexam.benchmarks.measures import paired_table, show_measure, signed
from medexam.distributions import WILSON
from medexam.experiments.compare.result import Comparison
from medexam.experiments.compare.runs import run_names
from medexam.experiments.store.stored_run import AnyRun
from medexam.metrics.results import Unit
from medexam.tables import Captioned, Table, equals, p_value

TITLE = "Own metrics"
_CAPTION = (
    "Means over the questions that have a score, in the metric's own unit, in brackets 95 % intervals (bootstrap "
    f"over exams or whole questions; with fewer than five exams over questions within them; {WILSON}, if each scores "
    "0 or 1; none with too few questions). No score: the other questions, answered or not."
)
_TOLD = {"better": "is higher than", "worse": "is lower than", "not told apart": "shows no difference from"}


def own_tables(runs: Sequence[AnyRun]) -> list[Captioned]:
    """Build one row a metric and run; empty if no run is scored by a metric of the user's own."""
    several = len(runs) > 1
    rows = [
        (name, *([run_name] if several else []), str(measure.n), str(measure.skipped), show_measure(measure))
        for name in dict.fromkeys(name for run in runs for name in run.metrics.own)
        for run, run_name in zip(runs, run_names(runs), strict=True)
        if (measure := run.metrics.own.get(name)) is not None
    ]
    headers = ("Metric", *(["Run"] if several else []), "n", "No score", "Mean")
    return [(Table(TITLE, headers, tuple(rows), text_columns=2 if several else 1), _CAPTION)] if rows else []


def paired_tables(comparison: Comparison) -> list[Captioned]:
    """Build tables of the differences of each pair; empty if the runs share no metric of the user's own."""
    tables = []
    for name, pair in zip(comparison.names[1:], comparison.own, strict=False):
        title = f"{TITLE}: {name} against {comparison.names[0]}"
        caption = (
            "Means over the questions that all runs have a score for, in brackets 95 % intervals (paired bootstrap). "
            "p: paired permutation test over questions, two-sided, and adjusted by Holm for all own metrics and runs. "
            "Bold: a difference is shown."
        )
        tables.append((paired_table(title, "Metric", pair, Unit.OWN), caption))
    return tables


def paired_sentences(comparison: Comparison) -> Iterator[str]:
    """Yield what may be said of each pair in each metric of the user's own."""
    for name, pair in zip(comparison.names[1:], comparison.own, strict=False):
        for metric, measure in pair.items():
            yield (
                f"{name} {_TOLD[measure.verdict]} {comparison.names[0]} in {metric}: "
                f"{signed(measure.difference, Unit.OWN)}, p {equals(measure.p)}, {p_value(measure.p_adjusted)} after "
                "Holm."
            )
