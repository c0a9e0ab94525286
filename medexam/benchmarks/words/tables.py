"""Runs that answer in words: tables side by side, by group and of what happened to answers, and values for MLflow."""

from collections.abc import Mapping, Sequence

from medexam.benchmarks.measures import measure_values, run_values, show_measure
from medexam.benchmarks.paired import TableRun
from medexam.metrics.results import Measures, TaskMetrics
from medexam.metrics.span_outcomes import SpanOutcome
from medexam.tables import Table, percent, unscored_columns

LEGEND = (
    "Percent of n, in brackets 95 % intervals (bootstrap over questions, none with fewer than five; Wilson if each "
    "scores 0 or 1). An unanswered question scores 0."
)
COLUMNS = 4
"""Measures side by side: more do not fit a terminal."""
MEASURES = {
    "f1": "F1",
    "exact_match": "Exact match",
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
}
"""A measure's name in tables, where it is not its own with a capital."""


def name_measure(name: str) -> str:
    """Name a measure as tables call it."""
    return MEASURES.get(name, name.capitalize())


def measures_by_run(title: str, runs: Sequence[TableRun[TaskMetrics]]) -> Table:
    """Show one row a measure, one column a run."""
    metrics = [run.metrics for run in runs]
    names = list(dict.fromkeys(name for each in metrics for name in each.measures))
    rows = [(name_measure(name), *(show_measure(each.measures.get(name)) for each in metrics)) for name in names]
    rows.append(("No answer", *(percent(each.unanswered / each.n if each.n else None) for each in metrics)))
    rows.append(("n", *(str(each.n) for each in metrics)))
    rows += [(header, *values) for header, values in unscored_columns(metrics).items()]
    shared = title if len(runs) > 1 else f"{title} · {runs[0].labels['Program']}"
    headers = ("Measure", *([run.name for run in runs] if len(runs) > 1 else ["Score"]))
    return Table(shared, headers, tuple(rows))


def overall_measures(metrics: TaskMetrics) -> Table:
    """Show each measure over all questions, with what the scoring depends on."""
    rows = [(name_measure(name), show_measure(measure)) for name, measure in metrics.measures.items()]
    rows.append(("No answer", percent(metrics.unanswered / metrics.n if metrics.n else None)))
    rows += [(name, str(value)) for name, value in metrics.settings.items() if value is not None]
    return Table("Result", (f"n = {metrics.n}", "Percent [95 % interval]"), tuple(rows))


def measure_group_tables(metrics: TaskMetrics) -> list[Table]:
    """Show the tables by group and by subset, and the counts; those that have rows."""
    tables = _measure_tables("By group", "Group", metrics.by_group)
    tables += _measure_tables("Subsets", "Questions", metrics.by_subset)
    tables += outcome_tables(metrics)
    rows = tuple((group, kind, str(n)) for group, counts in metrics.counts.items() for kind, n in counts.items())
    tables.append(Table("Answers", ("Group", "What", "n"), rows, text_columns=2))
    return [table for table in tables if table.rows]


def outcome_tables(metrics: TaskMetrics) -> list[Table]:
    """Show what became of extracted spans by variant, with their scores; empty if the data hold no right answers."""
    if not metrics.outcomes:
        return []
    kinds = [kind.value for kind in SpanOutcome]
    rows = tuple(
        (
            group,
            str(sum(counts.values())),
            *(str(counts.get(kind, 0)) for kind in kinds),
            *(show_measure(metrics.by_group.get(group, {}).get(name), bare=True) for name in ("f1", "exact_match")),
        )
        for group, counts in metrics.outcomes.items()
    )
    headers = ("Variant", "n", *(kind.capitalize() for kind in kinds), "F1", "Exact match")
    return [Table("Extracted spans", headers, rows)]


def _measure_tables(title: str, header: str, groups: Mapping[str, Measures]) -> list[Table]:
    """Show one row a group, `COLUMNS` measures a table; the first of each table with its interval."""
    pairs = ((name, measure) for measures in groups.values() for name, measure in measures.items())
    names = list(dict.fromkeys(name for name, measure in pairs if measure.value is not None))
    tables = []
    for begin in range(0, len(names), COLUMNS):
        measure_names = names[begin : begin + COLUMNS]
        rows = {
            group: group_measures
            for group, group_measures in groups.items()
            if any(name in group_measures for name in measure_names)
        }
        columns = {
            header: list(rows),
            "n": [
                str(max(group_measures[name].n for name in measure_names if name in group_measures))
                for group_measures in rows.values()
            ],
            **{
                name_measure(name): [
                    show_measure(group_measures.get(name), bare=place > 0) for group_measures in rows.values()
                ]
                for place, name in enumerate(measure_names)
            },
        }
        full_title = title if begin == 0 else f"{title}, continued"
        tables.append(Table(full_title, tuple(columns), tuple(zip(*columns.values(), strict=True))))
    return tables


def task_values(metrics: TaskMetrics) -> dict[str, float]:
    """Map name -> value: counts, measures with `_low` and `_high`, and `measure.group` for each group and subset."""
    values = run_values(metrics)
    for group, measures in (*metrics.by_group.items(), *metrics.by_subset.items()):
        values |= measure_values(measures, ending=f".{group}")
    return values
