"""Runs of any benchmark as tables: side by side, as the head of a report and by facet; and the values of MLflow.

They draw what the metrics hold, and ask a benchmark only what its facets and clusters are called.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from medexam.distributions import WILSON
from medexam.measures.benchmarks.base import Benchmark
from medexam.measures.evidence.kinds import evidence_values
from medexam.measures.results import Measure, Metrics, Scores
from medexam.measures.scoring import AVERAGES, COSTS, COUNTS
from medexam.measures.shown import describe_resampling, measure_values, name_measure, show_measure
from medexam.tables import Table

COLUMNS = 4
"""Measures side by side: more do not fit a terminal."""
_APART = frozenset({"unanswered_ratio", *AVERAGES})
"""Measures that stand in columns of their own."""
_FACETS = {"option_count": "Number of options", "subset": "Questions"}
"""Facet -> its header, where it is not its own name with a capital."""


@dataclass(frozen=True, slots=True)
class TableRun:
    """A run as tables need it."""

    name: str
    """What tells it from the others."""
    labels: Mapping[str, str]
    """Header -> what the run is called in that column; the same headers for all runs of a table."""
    metrics: Metrics
    is_best: bool
    """Whether a verdict finds it better than every other run of the table."""


def name_facet(benchmark: Benchmark[Any, Any], facet: str) -> str:
    """Name a facet as the benchmark calls it."""
    return benchmark.facets.get(facet) or _FACETS.get(facet) or facet.replace("_", " ").capitalize()


def legend(benchmarks: Sequence[Benchmark[Any, Any]], metrics: Sequence[Metrics]) -> str:
    """Explain how to read tables of runs of these benchmarks, one family, with these metrics."""
    benchmark = benchmarks[0]
    names = {name for each in metrics for name in each.measures}
    parts = ["Percent of n, in brackets 95 % intervals"]
    if not benchmark.right_or_wrong:
        parts[0] += " (bootstrap over questions, none with fewer than five; Wilson if each scores 0 or 1)"
        parts.append("An unanswered question scores 0")
    else:
        parts.append(f"Accuracy: right / n ({WILSON})")
    # Each data set declares its own.
    cancelling = " or ".join(sorted({f"{one.scoring.cancelling:.3g}" for one in benchmarks if one.scoring}))
    if "exam_score" in names:
        kinds = {each.measure(name).resampled for each in metrics for name in ("exam_score", "points")}
        how = describe_resampling(kinds, "bootstrap", benchmark.clusters)
        parts.append(f"Exam score: (right - wrong / {cancelling}) / n ({how})")
    if "points" in names:
        parts.append(f"Points: {cancelling} right - wrong per exam")
    if any(measure.chance is not None for each in metrics for measure in each.measures.values()):
        parts.append("Chance: a uniform choice on the same questions")
    return f"{'. '.join(parts)}."


def overview(title: str, runs: Sequence[TableRun]) -> Table:
    """Show the runs in the given order, a row a run; the first measure of the best one is stressed.

    Of more measures than fit beside each other, a row is a measure and a column a run.
    """
    metrics = [run.metrics for run in runs]
    names = _measure_names(metrics)
    ends = {"No answer": [show_measure(_silence(each), bare=True) for each in metrics]}
    counts, ends = {"n": [str(each.n) for each in metrics]}, ends | _unscored_columns(metrics)
    if len(names) > COLUMNS:
        measures = {name_measure(name): [show_measure(each.measures.get(name)) for each in metrics] for name in names}
        rows = tuple((header, *values) for header, values in (measures | ends | counts).items())
        alone = f"{title} · {runs[0].labels['Program']}" if len(runs) == 1 else title
        return Table(alone, ("Measure", *([run.name for run in runs] if len(runs) > 1 else ["Score"])), rows)
    labels = {header: [run.labels[header] for run in runs] for header in runs[0].labels}
    best = frozenset((row, len(labels) + 1) for row, run in enumerate(runs) if run.is_best)
    columns = {**labels, **counts, **_measure_columns(metrics, names, bare=False), **ends}
    return replace(_in_columns(title, columns), best=best, text_columns=len(labels))


def headline(metrics: Metrics) -> Table:
    """Show each measure over all questions beside the chance level, and what else is said of the run in a line."""
    names = {"points": "Points per exam", "unanswered_ratio": "Unanswered, %"} | {
        name: header for name, (header, _) in AVERAGES.items()
    }
    rows: list[tuple[str, ...]] = [
        (names.get(name, f"{name_measure(name)}, %"), show_measure(measure), show_measure(measure, chance=True))
        for name, measure in metrics.measures.items()
    ]
    if "unanswered_ratio" not in metrics.measures:
        rows.append(("No answer, %", show_measure(_silence(metrics)), ""))
    if metrics.right is not None:
        rows.append(("Right / wrong / unanswered", f"{metrics.right} / {metrics.wrong} / {metrics.unanswered}", ""))
    rows += [(name, str(value), "") for name, value in metrics.settings.items() if value is not None]
    if (p50 := metrics.latency_p50_s) is not None and (p95 := metrics.latency_p95_s) is not None:
        rows.append(("Latency, s, median / 95th percentile", f"{p50:.2f} / {p95:.2f}", ""))
    if not any(measure.chance is not None for measure in metrics.measures.values()):
        rows = [row[:2] for row in rows]
    headers = (f"n = {metrics.n}", "Value [95 % interval]", "Chance")
    return Table("Result", headers[: len(rows[0])], tuple(rows))


def breakdowns(benchmark: Benchmark[Any, Any], metrics: Metrics) -> list[Table]:
    """Show the scores by each facet, and what is counted of the answers by group.

    The first table has the averages that a paper prints beside its own, and says how to read all.
    """
    tables = []
    for place, (facet, groups) in enumerate(metrics.by.items()):
        header = name_facet(benchmark, facet)
        tables += _group_tables(f"By {header.lower()}", header, groups, published=place == 0)
    for title, counts in metrics.tallies.items():
        kinds = list(dict.fromkeys(kind for each in counts.values() for kind in each))
        columns = {"Group": list(counts), "n": [str(sum(each.values())) for each in counts.values()]}
        columns |= {kind.capitalize(): [str(each.get(kind, 0)) for each in counts.values()] for kind in kinds}
        tables.append(_in_columns(title, columns))
    caption = legend([benchmark], [metrics])
    if metrics.measures.keys() & AVERAGES.keys():
        caption += " v1: rounded and averaged over exams as the HEAD-QA v1 paper does."
    return [replace(table, caption="" if place else caption) for place, table in enumerate(tables)]


def _in_columns(title: str, columns: Mapping[str, Sequence[str]]) -> Table:
    return Table(title, tuple(columns), tuple(zip(*columns.values(), strict=True)))


def _group_tables(title: str, header: str, groups: Mapping[str, Scores], *, published: bool) -> list[Table]:
    scores = list(groups.values())
    names = _measure_names(scores)
    tables = []
    for begin in range(0, max(len(names), 1), COLUMNS):
        columns = {header: list(groups), "n": [str(group.n) for group in scores]}
        if begin == 0:
            if all(group.right is not None for group in scores):
                columns |= {name.capitalize(): [str(getattr(each, name)) for each in scores] for name in COUNTS[2:4]}
            columns |= {"No answer": [str(group.unanswered) for group in scores], **_unscored_columns(scores)}
        columns |= _measure_columns(scores, names[begin : begin + COLUMNS])
        for name, (_, short) in AVERAGES.items() if published and begin == 0 else ():
            if any(name in group.measures for group in scores):
                columns[short] = [show_measure(group.measures.get(name)) for group in scores]
        tables.append(_in_columns(title if begin == 0 else f"{title}, continued", columns))
    return tables


def matrices(
    benchmark: Benchmark[Any, Any], runs: Sequence[TableRun], facets: Sequence[str] | None = None
) -> list[Table]:
    """Show the first measure of several runs by `facets`, or by each: a row a group, a column a run."""
    facets = facets or list(dict.fromkeys(facet for run in runs for facet in run.metrics.by))
    return [_matrix(name_facet(benchmark, facet), runs, facet) for facet in facets]


def _matrix(header: str, runs: Sequence[TableRun], facet: str) -> Table:
    """Show one facet; `n` is a span where runs have scored different numbers of a group."""
    by_run = [run.metrics.by.get(facet, {}) for run in runs]
    first = next((name for groups in by_run for group in groups.values() for name in group.measures), "accuracy")
    groups = list(dict.fromkeys(name for each in by_run for name in each))
    cells = {
        name: [scores.measures.get(first) if (scores := each.get(name)) else None for each in by_run] for name in groups
    }
    sizes = {name: sorted({each[name].n for each in by_run if name in each}) for name in groups}
    columns = {header: groups, "n": [" to ".join(map(str, dict.fromkeys((n[0], n[-1])))) for n in sizes.values()]}
    chances = [next((each for each in cells[name] if each and each.chance is not None), None) for name in groups]
    caption = f"{name_measure(first)}, percent of n, in brackets 95 % intervals"
    if any(chances):
        columns["Chance"] = [show_measure(each, chance=True) for each in chances]
        caption += f" ({WILSON}). Chance: a uniform choice on the same questions"
    columns |= {run.name: [show_measure(cells[name][place]) for name in groups] for place, run in enumerate(runs)}
    return replace(_in_columns(f"By {header.lower()}", columns), caption=f"{caption}.")


def metric_values(metrics: Metrics) -> dict[str, float]:
    """Map name -> value of each number that MLflow keeps: counts, costs, measures and evidence; fractions of 1.

    A measure has `_low` and `_high`, and stands again as `measure.group` for the groups of each facet but exams: the
    first one of answers that are right or wrong, and all of others.
    """
    values: dict[str, float | None] = {name: getattr(metrics, name) for name in (*COUNTS, *COSTS)}
    values |= measure_values(metrics.measures) | evidence_values(metrics.evidence)
    first = next(iter(metrics.measures), None)
    if first is not None:
        values[f"chance_{first}"] = metrics.measures[first].chance
    for facet, groups in metrics.by.items():
        for group, scores in groups.items() if facet != "exam" else ():
            ending = f".options_{group}" if facet == "option_count" else f".{group}"
            if metrics.right is None:
                values |= measure_values(scores.measures, ending=ending)
            elif first is not None:
                values[f"{first}{ending}"] = scores.measure(first).value
    values |= measure_values(metrics.own, "own.")
    return {name: float(value) for name, value in values.items() if value is not None}


def _measure_names(scores: Sequence[Scores]) -> list[str]:
    """List the measures that have a value in one of the scores, in order, without those that stand apart."""
    names = dict.fromkeys(name for each in scores for name in each.measures if name not in _APART)
    with_value = [name for name in names if any(each.measure(name).value is not None for each in scores)]
    return with_value or list(names)[:1]


def _unscored_columns(scores: Sequence[Scores]) -> dict[str, list[str]]:
    counts = [f"{group.failed}, {group.missing}" for group in scores]
    return {"Failed, missing": counts} if {*counts} - {"0, 0"} else {}


def _measure_columns(scores: Sequence[Scores], names: Sequence[str], *, bare: bool = True) -> dict[str, list[str]]:
    """Show the first measure with its interval and the chance level; the others `bare`, or those but points."""
    columns: dict[str, list[str]] = {}
    for place, name in enumerate(names):
        measures = [each.measures.get(name) for each in scores]
        is_bare = place > 0 and (bare or name == "points")
        columns[name_measure(name)] = [show_measure(measure, bare=is_bare) for measure in measures]
        if place == 0 and any(measure is not None and measure.chance is not None for measure in measures):
            columns["Chance"] = [show_measure(measure, chance=True) for measure in measures]
    return columns


def _silence(scores: Scores) -> Measure:
    share = scores.unanswered / scores.n if scores.n else None
    return scores.measures.get("unanswered_ratio") or Measure(value=share, n=scores.n)
