"""Runs of any benchmark as tables: side by side, as the head of a report and by facet; and the values of MLflow.

They draw what the metrics hold, and ask a benchmark only what its facets and clusters are called.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from medexam.distributions import WILSON
from medexam.measures.benchmarks.base import Benchmark
from medexam.measures.benchmarks.measures import measure_values, run_values, show_measure
from medexam.measures.benchmarks.paired import TableRun
from medexam.measures.benchmarks.resampling import describe_resampling
from medexam.measures.evidence.kinds import evidence_values
from medexam.measures.exam_averages import AVERAGES, LEGEND
from medexam.measures.results import Measure, Metrics, Scores
from medexam.tables import Table, unscored_columns

COLUMNS = 4
"""Measures side by side: more do not fit a terminal."""
_NAMES = {
    "points": "Points",
    "f1": "F1",
    "f1_spanish": "F1, Spanish rule",
    "exact_match_spanish": "Exact match, Spanish rule",
    "component_f1": "Components: F1",
    "component_precision": "Components: precision",
    "component_recall": "Components: recall",
    "published_forgiving": "Published, forgiving",
    "paper_forgiving": "Paper, forgiving",
    "micro_f1": "Micro F1",
    "mean_average_precision": "MAP",
    "mean_reciprocal_rank": "MRR",
    "precision_at_5": "P@5",
    "step_rate": "Step found",
    "bleu": "BLEU",
    "meteor": "METEOR",
    "rouge": "ROUGE",
    **{name: header for name, (_, header) in AVERAGES.items()},
}
"""A measure's name in tables, where it is not its own with a capital."""
_APART = frozenset({"unanswered_ratio", *AVERAGES})
"""Measures that stand in columns of their own."""
_FACETS = {"option_count": "Number of options", "subset": "Questions"}
"""Facet -> its header, where it is not its own name with a capital."""
_PERCENTILES = "median / 95th percentile"


def name_measure(name: str) -> str:
    """Name a measure as tables call it."""
    return _NAMES.get(name, name.replace("_", " ").capitalize())


def name_facet(benchmark: Benchmark[Any, Any], facet: str) -> str:
    """Name a facet as the benchmark calls it."""
    return benchmark.facets.get(facet) or _FACETS.get(facet) or facet.replace("_", " ").capitalize()


def legend(benchmark: Benchmark[Any, Any], metrics: Sequence[Metrics], *, published: bool = False) -> str:
    """Explain how to read tables of runs with these metrics; `published`: as a paper prints them too."""
    names = {name for each in metrics for name in each.measures}
    parts = ["Percent of n, in brackets 95 % intervals"]
    if not benchmark.right_or_wrong:
        parts[0] += " (bootstrap over questions, none with fewer than five; Wilson if each scores 0 or 1)"
        parts.append("An unanswered question scores 0")
    else:
        parts.append(f"Accuracy: right / n ({WILSON})")
    cancelling = f"{benchmark.scoring.cancelling:.3g}" if benchmark.scoring else ""
    if "exam_score" in names:
        kinds = {each.measure(name).resampled for each in metrics for name in ("exam_score", "points")}
        how = describe_resampling(kinds, "bootstrap", benchmark.clusters)
        parts.append(f"Exam score: (right - wrong / {cancelling}) / n ({how})")
    if "points" in names:
        parts.append(f"Points: {cancelling} right - wrong per exam")
    if any(measure.chance is not None for each in metrics for measure in each.measures.values()):
        parts.append("Chance: a uniform choice on the same questions")
    text = f"{'. '.join(parts)}."
    return text + LEGEND if published and names & AVERAGES.keys() else text


def overview(title: str, runs: Sequence[TableRun]) -> Table:
    """Show the runs in the given order, a row a run; the first measure of the best one is stressed.

    Of more measures than fit beside each other, a row is a measure and a column a run.
    """
    metrics = [run.metrics for run in runs]
    names = _measure_names(metrics)
    silent = [show_measure(_silence(each), bare=True) for each in metrics]
    if len(names) > COLUMNS:
        rows = [(name_measure(name), *(show_measure(each.measures.get(name)) for each in metrics)) for name in names]
        rows += [("No answer", *silent), ("n", *(str(each.n) for each in metrics))]
        rows += [(header, *values) for header, values in unscored_columns(metrics).items()]
        alone = f"{title} · {runs[0].labels['Program']}" if len(runs) == 1 else title
        return Table(alone, ("Measure", *([run.name for run in runs] if len(runs) > 1 else ["Score"])), tuple(rows))
    labels = {header: [run.labels[header] for run in runs] for header in runs[0].labels}
    columns = {**labels, "n": [str(each.n) for each in metrics], **_measure_columns(metrics, names, bare=False)}
    columns |= {"No answer": silent, **unscored_columns(metrics)}
    headers = tuple(columns)
    best = frozenset((row, len(labels) + 1) for row, run in enumerate(runs) if run.is_best)
    return Table(title, headers, tuple(zip(*columns.values(), strict=True)), best, text_columns=len(labels))


def headline(metrics: Metrics) -> Table:
    """Show each measure over all questions beside the chance level, and what else is said of the run in a line."""
    rows: list[tuple[str, ...]] = []
    for name, measure in metrics.measures.items():
        label = AVERAGES[name][0] if name in AVERAGES else _headline_name(name)
        rows.append((label, show_measure(measure), show_measure(measure, chance=True)))
    if "unanswered_ratio" not in metrics.measures:
        rows.append(("No answer, %", show_measure(_silence(metrics)), ""))
    if metrics.right is not None:
        rows.append(("Right / wrong / unanswered", f"{metrics.right} / {metrics.wrong} / {metrics.unanswered}", ""))
    rows += [(name, str(value), "") for name, value in metrics.settings.items() if value is not None]
    times = (
        (f"Latency, s, {_PERCENTILES}", metrics.latency_p50_s, metrics.latency_p95_s),
        (f"... without the wait before sending, s, {_PERCENTILES}", metrics.answering_p50_s, metrics.answering_p95_s),
    )
    rows += [(label, f"{p50:.2f} / {p95:.2f}", "") for label, p50, p95 in times if p50 is not None and p95 is not None]
    if not any(measure.chance is not None for measure in metrics.measures.values()):
        rows = [row[:2] for row in rows]
    headers = (f"n = {metrics.n}", "Value [95 % interval]", "Chance")
    return Table("Result", headers[: len(rows[0])], tuple(rows))


def breakdowns(benchmark: Benchmark[Any, Any], metrics: Metrics, *, published: bool = False) -> list[Table]:
    """Show the scores by each facet, and what is counted of the answers by group.

    `published` adds the figures as a paper prints them.
    """
    tables = []
    for place, (facet, groups) in enumerate(metrics.by.items()):
        header, is_first = name_facet(benchmark, facet), place == 0
        tables += group_tables(f"By {header.lower()}", header, groups, published=published and is_first)
    for title, counts in metrics.tallies.items():
        kinds = list(dict.fromkeys(kind for each in counts.values() for kind in each))
        rows = tuple(
            (group, str(sum(each.values())), *(str(each.get(kind, 0)) for kind in kinds))
            for group, each in counts.items()
        )
        tables.append(Table(title, ("Group", "n", *(kind.capitalize() for kind in kinds)), rows))
    return tables


def group_tables(title: str, header: str, groups: Mapping[str, Scores], *, published: bool = False) -> list[Table]:
    """Show a row a group, under the name of what they are grouped by; further measures in further tables."""
    scores = list(groups.values())
    names = _measure_names(scores)
    tables = []
    for begin in range(0, max(len(names), 1), COLUMNS):
        columns = {header: list(groups), "n": [str(group.n) for group in scores]}
        if begin == 0 and all(group.right is not None for group in scores):
            columns |= {
                "Right": [str(group.right) for group in scores],
                "Wrong": [str(group.wrong) for group in scores],
            }
        if begin == 0:
            columns |= {"No answer": [str(group.unanswered) for group in scores], **unscored_columns(scores)}
        columns |= _measure_columns(scores, names[begin : begin + COLUMNS])
        if published and begin == 0:
            averages = [name for name in AVERAGES if any(name in group.measures for group in scores)]
            columns |= {
                AVERAGES[name][1]: [show_measure(group.measures.get(name)) for group in scores] for name in averages
            }
        rows = tuple(zip(*columns.values(), strict=True))
        tables.append(Table(title if begin == 0 else f"{title}, continued", tuple(columns), rows))
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
    rows, has_chance = [], False
    first = next((name for groups in by_run for group in groups.values() for name in group.measures), "accuracy")
    for name in dict.fromkeys(name for groups in by_run for name in groups):
        scores = [groups.get(name) for groups in by_run]
        sizes = sorted({score.n for score in scores if score is not None})
        measures = [None if score is None else score.measures.get(first) for score in scores]
        chance = next((each for each in measures if each is not None and each.chance is not None), None)
        has_chance |= chance is not None
        n = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        rows.append((name, n, show_measure(chance, chance=True), *map(show_measure, measures)))
    headers = (header, "n", "Chance", *(run.name for run in runs))
    caption = f"{name_measure(first)}, percent of n, in brackets 95 % intervals"
    caption += f" ({WILSON}). Chance: a uniform choice on the same questions." if has_chance else "."
    if not has_chance:
        headers, rows = (*headers[:2], *headers[3:]), [(*row[:2], *row[3:]) for row in rows]
    return Table(f"By {header.lower()}", headers, tuple(rows), caption=caption)


def metric_values(metrics: Metrics) -> dict[str, float]:
    """Map name -> value of each number that MLflow keeps: counts, costs, measures and evidence; fractions of 1.

    A measure has `_low` and `_high`, and stands again as `measure.group` for the groups of each facet but exams: the
    first one of answers that are right or wrong, and all of others.
    """
    values: dict[str, float | None] = {**run_values(metrics), **evidence_values(metrics.evidence)}
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
    return {name: float(value) for name, value in values.items() if value is not None}


def count_units(metrics: Metrics) -> dict[str, int]:
    """Count what the questions are counted in beside themselves, such as `{"exams": 30}`."""
    facet = "exam" if metrics.exams is not None else "group"
    return {f"{facet}s": len(metrics.by[facet])} if facet in metrics.by else {}


def origin(metrics: Metrics) -> str:
    """Say what the scored questions come from, as ` of 30 exams` behind their number; empty where they are no exams."""
    return f" of {metrics.exams} exams" if metrics.exams is not None else ""


def _measure_names(scores: Sequence[Scores]) -> list[str]:
    """List the measures that have a value in one of the scores, in order, without those that stand apart."""
    names = dict.fromkeys(name for each in scores for name in each.measures if name not in _APART)
    with_value = [name for name in names if any(each.measure(name).value is not None for each in scores)]
    return with_value or list(names)[:1]


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


def _headline_name(name: str) -> str:
    return {"points": "Points per exam", "unanswered_ratio": "Unanswered, %"}.get(name, f"{name_measure(name)}, %")


def _silence(scores: Scores) -> Measure:
    """Return the share without an answer."""
    share = scores.unanswered / scores.n if scores.n else None
    return scores.measures.get("unanswered_ratio") or Measure(value=share, n=scores.n)
