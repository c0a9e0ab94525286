"""Tables of runs whose questions are answered in words: side by side, by group, and what happened to the answers.

For the terminal, Markdown and the page.
"""

from collections.abc import Mapping, Sequence

from medexam.experiments.comparing import run_names
from medexam.experiments.formatting import NONE, percent, with_interval
from medexam.experiments.summary import TaskRun
from medexam.experiments.tables import Table, TerminalTable, label_runs, owed_columns
from medexam.metrics.board import weigh
from medexam.metrics.task_results import Measure, Measures, TaskMetrics

TASK_LEGEND = (
    "Percent of n, in brackets 95 % intervals (bootstrap over questions; Wilson where each scores 0 or 1). An "
    "unanswered question scores 0."
)
BOARDS = {"cliniqlink": ("published", "paper")}
"""Benchmark -> the measures that its runs are ranked by; others by F1."""
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
    "step_rate": "Step found",
    "bleu": "BLEU",
    "meteor": "METEOR",
    "rouge": "ROUGE",
}
"""A measure's name in tables, where it is not its own with a capital."""


def name_measure(name: str) -> str:
    """A measure as tables call it."""
    return MEASURES.get(name, name.capitalize())


def build_task_table(runs: Sequence[TaskRun]) -> TerminalTable:
    """The comparison of runs of one benchmark, ready for `Console.print`; at least one run."""
    return TerminalTable(task_comparison(runs), TASK_LEGEND)


def build_task_breakdowns(run: TaskRun) -> list[TerminalTable]:
    """The scores of one run by group and subset and what happened to its answers, ready for `Console.print`."""
    return [TerminalTable(table) for table in task_breakdowns(run.metrics)]


def task_comparison(runs: Sequence[TaskRun]) -> Table:
    """One row a measure, one column a run; the best complete run of each is stressed where there are several."""
    title, labels = label_runs(runs)
    metrics = [run.metrics for run in runs]
    names = list(dict.fromkeys(name for each in metrics for name in each.measures))
    rows = [(name_measure(name), *(show_measure(each.measures.get(name)) for each in metrics)) for name in names]
    rows.append(("No answer", *(percent(each.unanswered / each.n if each.n else None) for each in metrics)))
    rows.append(("n", *(str(each.n) for each in metrics)))
    rows += [(header, *values) for header, values in owed_columns(metrics).items()]
    best = {
        (row, 1 + column)
        for row, name in enumerate(names)
        for column in _best([each.measures.get(name) if each.complete else None for each in metrics])
    }
    shared = title if len(runs) > 1 else " · ".join([title, *labels["Program"]])
    headers = ("Measure", *(run_names(runs) if len(runs) > 1 else ("Score",)))
    return Table(shared, headers, tuple(rows), frozenset(best))


def board_tables(runs: Sequence[TaskRun], weights: Mapping[str, float]) -> list[Table]:
    """The runs by the weighted mean of their groups, a table for each measure that ranks them.

    Raises `SpecError` for weights that fit no group.
    """
    return [_board_table(runs, weights, measure) for measure in BOARDS.get(runs[0].record.cell.dataset.name, ("f1",))]


def _board_table(runs: Sequence[TaskRun], weights: Mapping[str, float], measure: str) -> Table:
    names = run_names(runs)
    scores = {
        name: {
            group: measures[measure].value if measure in measures else None
            for group, measures in run.metrics.by_group.items()
        }
        for name, run in zip(names, runs, strict=True)
    }
    board = weigh(scores, weights)
    groups = list(board.rows[0].scores)
    rows = [(row.run, percent(row.weighted), *(percent(row.scores[group]) for group in groups)) for row in board.rows]
    if len(runs) > 1:
        rows.append(("Mean of the runs", percent(board.mean), *("" for _ in groups)))
    headers = ("Run", "Weighted", *(f"{group} ({weights[group]:g})" for group in groups))
    return Table(f"Board: {name_measure(measure)}", headers, tuple(rows))


def task_breakdowns(metrics: TaskMetrics) -> list[Table]:
    """The tables by group and by subset, and the counts; those that have rows."""
    tables = _measure_tables("By group", "Group", metrics.by_group)
    tables += _measure_tables("Subsets", "Questions", metrics.by_subset)
    rows = tuple((group, what, str(n)) for group, counts in metrics.counts.items() for what, n in counts.items())
    tables.append(Table("Answers", ("Group", "What", "n"), rows, text_columns=2))
    return [table for table in tables if table.rows]


def show_measure(measure: Measure | None, *, bare: bool = False) -> str:
    """A measure in percent with its interval, or `bare` without."""
    return NONE if measure is None else with_interval(percent(measure.value), None if bare else measure.interval)


def _measure_tables(title: str, header: str, groups: Mapping[str, Measures]) -> list[Table]:
    """One row a group, `COLUMNS` measures a table; the first of each table with its interval."""
    known = ((name, each) for measures in groups.values() for name, each in measures.items())
    names = list(dict.fromkeys(name for name, each in known if each.value is not None))
    tables = []
    for begin in range(0, len(names), COLUMNS):
        shown = names[begin : begin + COLUMNS]
        rows = {group: found for group, found in groups.items() if any(name in found for name in shown)}
        columns = {
            header: list(rows),
            "n": [str(max(found[name].n for name in shown if name in found)) for found in rows.values()],
            **{
                name_measure(name): [show_measure(found.get(name), bare=place > 0) for found in rows.values()]
                for place, name in enumerate(shown)
            },
        }
        whole = title if begin == 0 else f"{title}, continued"
        tables.append(Table(whole, tuple(columns), tuple(zip(*columns.values(), strict=True))))
    return tables


def _best(measures: Sequence[Measure | None]) -> list[int]:
    """The places of the highest value, where several have one."""
    values = {place: each.value for place, each in enumerate(measures) if each is not None and each.value is not None}
    if len(values) < 2:
        return []
    highest = max(values.values())
    return [place for place, value in values.items() if value == highest]
