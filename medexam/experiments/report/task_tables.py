"""Tables of runs whose questions are answered in words: side by side, by group, and what happened to the answers.

For the terminal, Markdown and the page.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from medexam.errors import SpecError
from medexam.experiments.compare.ranking import best_places, rivals, why_unranked
from medexam.experiments.compare.runs import run_names
from medexam.experiments.report.formatting import NONE, percent, with_interval
from medexam.experiments.report.tables import Table, TerminalTable, label_runs, unscored_columns
from medexam.experiments.store.stored_run import TaskRun
from medexam.metrics.board import Board, weigh
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


def task_comparison(runs: Sequence[TaskRun], among: Sequence[bool] | None = None) -> Table:
    """One row a measure, one column a run; the best of each measure is stressed.

    `among` says which runs may be ranked; None asks `rivals`.
    """
    title, labels = label_runs(runs)
    metrics = [run.metrics for run in runs]
    names = list(dict.fromkeys(name for each in metrics for name in each.measures))
    rows = [(name_measure(name), *(show_measure(each.measures.get(name)) for each in metrics)) for name in names]
    rows.append(("No answer", *(percent(each.unanswered / each.n if each.n else None) for each in metrics)))
    rows.append(("n", *(str(each.n) for each in metrics)))
    rows += [(header, *values) for header, values in unscored_columns(metrics).items()]
    best = {
        (row, 1 + column)
        for row, name in enumerate(names)
        for column in best_places([_value(each.measures.get(name)) for each in metrics], among or rivals(runs))
    }
    shared = title if len(runs) > 1 else " · ".join([title, *labels["Program"]])
    headers = ("Measure", *(run_names(runs) if len(runs) > 1 else ("Score",)))
    return Table(shared, headers, tuple(rows), frozenset(best))


def make_boards(runs: Sequence[TaskRun], weights: Mapping[str, float]) -> dict[str, Board]:
    """Measure -> the runs of one benchmark by the weighted mean of their groups; empty without weights.

    Raises `SpecError` for weights that fit no group, and for runs that asked different questions.
    """
    if not weights:
        return {}
    if reason := why_unranked(runs):
        raise SpecError(f"--weight ranks runs of the same questions: leave it out, or name such runs. {reason}")
    unranked = {name for name, rival in zip(run_names(runs), rivals(runs), strict=True) if not rival}
    measures = BOARDS.get(runs[0].record.cell.dataset.name, ("f1",))
    return {measure: weigh(_group_scores(runs, measure), weights, unranked) for measure in measures}


def board_tables(boards: Mapping[str, Board], weights: Mapping[str, float]) -> list[Table]:
    """A table for each board, under its measure."""
    return [_board_table(measure, board, weights) for measure, board in boards.items()]


def standings(runs: Sequence[TaskRun], boards: Mapping[str, Board]) -> list[dict[str, Any]]:
    """What `--json` says of each run on the boards: `{"board": {measure: weighted mean}}`; nothing without boards."""
    if not boards:
        return [{} for _ in runs]
    weighted = {measure: {row.run: row.weighted for row in board.rows} for measure, board in boards.items()}
    return [{"board": {measure: each[name] for measure, each in weighted.items()}} for name in run_names(runs)]


def _group_scores(runs: Sequence[TaskRun], measure: str) -> dict[str, dict[str, float | None]]:
    return {
        name: {group: _value(measures.get(measure)) for group, measures in run.metrics.by_group.items()}
        for name, run in zip(run_names(runs), runs, strict=True)
    }


def _board_table(measure: str, board: Board, weights: Mapping[str, float]) -> Table:
    groups = list(board.rows[0].scores)
    rows = [(row.run, percent(row.weighted), *(percent(row.scores[group]) for group in groups)) for row in board.rows]
    if len(rows) > 1:
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


def _value(measure: Measure | None) -> float | None:
    return None if measure is None else measure.value
