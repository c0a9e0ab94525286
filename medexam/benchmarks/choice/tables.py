"""Runs on questions with numbered options: tables side by side, broken down and as the head of a report, and values.

The values are what MLflow keeps of a run.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from medexam.benchmarks.measures import run_values, show_measure
from medexam.benchmarks.paired import TableRun
from medexam.benchmarks.resampling import describe_resampling
from medexam.distributions import WILSON
from medexam.metrics import Metrics
from medexam.metrics.exam_averages import AVERAGES
from medexam.metrics.results import PublishedScores, Scores
from medexam.predictions.evidence.kinds import evidence_headline, evidence_values
from medexam.tables import Captioned, Table, decimal, percent, unscored_columns

_LEGEND = (
    f"Percent of n, in brackets 95 % intervals. Accuracy: right / n ({WILSON}). Exam score: (right - wrong / 3) / n "
    "({}). Points: 3 right - wrong per exam. Chance: a uniform choice on the same questions."
)
_MATRIX_CAPTION = (
    f"Accuracy, percent of n, in brackets 95 % intervals ({WILSON}). Chance: a uniform choice on the same questions."
)
_FACETS: dict[str, Callable[[Metrics], Mapping[Any, Scores]]] = {
    "Year": lambda metrics: metrics.by_year,
    "Number of options": lambda metrics: metrics.by_option_count,
    "Exam": lambda metrics: metrics.by_exam,
}
_PERCENTILES = "median / 95th percentile"


def legend_of(metrics: Sequence[Metrics], clusters: str) -> str:
    """Explain how to read tables of runs with these metrics, whose intervals resample `clusters`, or what few allow."""
    kinds = {kind for m in metrics for kind in (m.exam_score_resampled, m.points_resampled)}
    return _LEGEND.format(describe_resampling(kinds, "bootstrap", clusters))


def scores_by_run(title: str, runs: Sequence[TableRun[Metrics]]) -> Table:
    """Show one row a run, in the given order; the accuracy of a run that is better than all others is stressed."""
    metrics = [run.metrics for run in runs]
    labels = {header: [run.labels[header] for run in runs] for header in runs[0].labels}
    columns = {
        **labels,
        "n": [str(m.n) for m in metrics],
        "Accuracy": [show_measure(m.measures["accuracy"]) for m in metrics],
        "Chance": [percent(m.chance_accuracy) for m in metrics],
        "Exam score": [show_measure(m.measures["exam_score"]) for m in metrics],
        "Points": [decimal(m.points) for m in metrics],
        "No answer": [percent(m.unanswered_ratio) for m in metrics],
        **unscored_columns(metrics),
    }
    headers = tuple(columns)
    best = frozenset((row, headers.index("Accuracy")) for row, run in enumerate(runs) if run.is_best)
    return Table(title, headers, tuple(zip(*columns.values(), strict=True)), best, text_columns=len(labels))


def overall_scores(metrics: Metrics) -> Table:
    """Show the scores over all questions beside the chance level."""
    m = metrics
    rows = [
        ("Accuracy, %", show_measure(m.measures["accuracy"]), percent(m.chance_accuracy)),
        ("Exam score, %", show_measure(m.measures["exam_score"]), percent(m.chance_exam_score)),
        ("Points per exam", show_measure(m.measures["points"]), decimal(m.chance_points)),
        ("Unanswered, %", show_measure(m.measures["unanswered_ratio"]), ""),
        *((average.label, decimal(getattr(m, field)), "") for field, average in AVERAGES.items()),
        ("Right / wrong / unanswered", f"{m.right} / {m.wrong} / {m.unanswered}", ""),
        *evidence_headline(m),
    ]
    if m.latency_p50_s is not None and m.latency_p95_s is not None:
        rows.append((f"Latency, s, {_PERCENTILES}", f"{m.latency_p50_s:.2f} / {m.latency_p95_s:.2f}", ""))
    if m.answering_p50_s is not None and m.answering_p95_s is not None:
        answering = f"{m.answering_p50_s:.2f} / {m.answering_p95_s:.2f}"
        rows.append((f"... without the wait before sending, s, {_PERCENTILES}", answering, ""))
    return Table("Result", (f"n = {m.n}", "Value [95 % interval]", "Chance"), tuple(rows))


def group_table(title: str, header: str, groups: Mapping[str, Scores], *, published: bool) -> Table:
    """Show one row a group of questions, under the name of what they are grouped by.

    `published` adds the averages over exams, where the groups have them.
    """
    scores = list(groups.values())
    columns = {
        header: list(groups),
        "n": [str(group.n) for group in scores],
        "Right": [str(group.right) for group in scores],
        "Wrong": [str(group.wrong) for group in scores],
        "No answer": [str(group.unanswered) for group in scores],
        **unscored_columns(scores),
        "Accuracy": [show_measure(group.measures["accuracy"]) for group in scores],
        "Chance": [percent(group.chance_accuracy) for group in scores],
        "Exam score": [percent(group.exam_score) for group in scores],
        "Points": [decimal(group.points) for group in scores],
    }
    if published:
        papers = [group for group in scores if isinstance(group, PublishedScores)]
        columns |= {
            average.header: [decimal(getattr(group, field)) for group in papers] for field, average in AVERAGES.items()
        }
    return Table(title, tuple(columns), tuple(zip(*columns.values(), strict=True)))


def group_tables(metrics: Metrics, *, published: bool, group: str) -> list[Table]:
    """Show the tables by `group`, such as `Discipline` (with `published` figures or without), year, options and exam.

    That by year is left out if no exam has one.
    """
    tables = []
    for facet, groups in _facets(group).items():
        header = "Options" if facet == "Number of options" else facet
        scores_by_name = {str(name): group for name, group in groups(metrics).items()}
        tables.append(
            group_table(f"By {facet.lower()}", header, scores_by_name, published=published and facet == group)
        )
    return [table for table in tables if table.rows]


def matrices(runs: Sequence[TableRun[Metrics]], group: str) -> list[Captioned]:
    """Show the accuracy of several runs by `group`, year, number of options and exam; what no run has is left out."""
    tables = [_matrix(facet, runs, groups) for facet, groups in _facets(group).items()]
    return [(table, _MATRIX_CAPTION) for table in tables if table.rows]


def _facets(group: str) -> dict[str, Callable[[Metrics], Mapping[Any, Scores]]]:
    return {group: lambda metrics: metrics.by_discipline, **_FACETS}


def _matrix(facet: str, runs: Sequence[TableRun[Metrics]], groups: Callable[[Metrics], Mapping[Any, Scores]]) -> Table:
    """Show a row a group and a column a run; `n` is a span where runs have scored different numbers of a group."""
    first = ("n", "Chance")
    rows = []
    run_groups = [groups(run.metrics) for run in runs]
    for group in sorted({group for scores_by_group in run_groups for group in scores_by_group}):
        scores = [scores_by_group.get(group) for scores_by_group in run_groups]
        accuracies = (None if score is None else score.measures["accuracy"] for score in scores)
        rows.append((str(group), *_size_and_chance(scores), *map(show_measure, accuracies)))
    headers = (facet, *first, *(run.name for run in runs))
    return Table(f"By {facet.lower()}", headers, tuple(rows))


def _size_and_chance(scores: Sequence[Scores | None]) -> tuple[str, str]:
    group_scores = [score for score in scores if score is not None]
    fewest, most = min(score.n for score in group_scores), max(score.n for score in group_scores)
    chance = next((score.chance_accuracy for score in group_scores if score.chance_accuracy is not None), None)
    return str(most) if fewest == most else f"{fewest} to {most}", percent(chance)


def exam_values(metrics: Metrics) -> dict[str, float]:
    """Map name -> value: counts, scores with `_low` and `_high`, accuracy by discipline, year and number of options.

    With those of its evidence. Scores are fractions of 1;
    `metrics.json` has the rest.
    """
    values: dict[str, float | None] = {**run_values(metrics), "chance_accuracy": metrics.chance_accuracy}
    values |= evidence_values(metrics)
    groups: dict[str, Scores] = dict(metrics.by_discipline)
    groups |= {str(year): group for year, group in metrics.by_year.items()}
    groups |= {f"options_{options}": group for options, group in metrics.by_option_count.items()}
    values |= {f"accuracy.{name}": group.accuracy for name, group in groups.items()}
    return {name: float(value) for name, value in values.items() if value is not None}
