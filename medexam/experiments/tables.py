"""Tables of scores as plain text cells, and how the terminal draws them; Markdown draws the same ones.

What the compared runs share goes into the title, so that the columns fit a terminal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.markup import escape
from rich.table import Table as RichTable

from medexam.experiments.formatting import NONE, decimal, percent, with_interval
from medexam.experiments.summary import StoredRun
from medexam.metrics import Metrics, PublishedScores, Scores

LEGEND = (
    "Percent of n, in brackets 95 % intervals. Accuracy: right / n (Wilson). Exam score: (right - wrong / 3) / n "
    "(bootstrap over exams). Points: 3 right - wrong per exam. Chance: a uniform choice on the same questions."
)


@dataclass(frozen=True)
class Table:
    """Rows of text under headers; `best` holds the (row, column) positions to stress."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]] = frozenset()
    text_columns: int = 1
    """How many columns, from the left, hold words and not numbers."""


def build_table(runs: Sequence[StoredRun]) -> RichTable:
    """The comparison of `runs`, ready for `Console.print`, the best scores in bold; at least one run."""
    drawn = _draw(comparison(runs))
    drawn.caption, drawn.caption_justify = LEGEND, "left"
    return drawn


def build_breakdowns(run: StoredRun) -> list[RichTable]:
    """The scores of one run by discipline, year, number of options and exam, ready for `Console.print`."""
    return [_draw(table) for table in breakdowns(run.metrics)]


def _draw(table: Table) -> RichTable:
    drawn = RichTable(title=escape(table.title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for position, header in enumerate(table.headers):
        is_text = position < table.text_columns
        drawn.add_column(header, justify="left" if is_text else "right", overflow="fold", no_wrap=not is_text)
    for row, cells in enumerate(table.rows):
        texts = (escape(text) for text in cells)
        drawn.add_row(
            *(f"[bold]{text}[/bold]" if (row, column) in table.best else text for column, text in enumerate(texts))
        )
    return drawn


def comparison(runs: Sequence[StoredRun]) -> Table:
    """One row a run, in the given order; the best complete run of each score is stressed where there are several."""
    labels: dict[str, list[str]] = {"Program": [run.program for run in runs]}
    shared: list[str] = []
    datasets = [f"{run.record.cell.dataset.name} {run.record.cell.dataset.language}" for run in runs]
    for header, values in (("Model", [run.model for run in runs]), ("Data set", datasets)):
        distinct = {value for value in values if value is not None}
        if len(distinct) > 1:
            labels[header] = [value or NONE for value in values]
        else:
            shared += distinct
    columns = {**labels, **_score_columns([run.metrics for run in runs])}
    names = list(dict.fromkeys(run.record.cell.name for run in runs))
    headers = tuple(columns)
    return Table(
        title=" · ".join([", ".join(names), *shared]),
        headers=headers,
        rows=tuple(zip(*columns.values(), strict=True)),
        best=_best(runs, headers),
        text_columns=len(labels),
    )


def breakdown(title: str, header: str, groups: Mapping[str, Scores]) -> Table:
    """One row a group of questions, under the name of what they are grouped by."""
    scores = list(groups.values())
    columns = {
        header: list(groups),
        "n": [str(group.n) for group in scores],
        "Right": [str(group.right) for group in scores],
        "Wrong": [str(group.wrong) for group in scores],
        "Unanswered": [str(group.unanswered) for group in scores],
        **_owed_columns(scores),
        "Accuracy": [with_interval(percent(group.accuracy), group.accuracy_interval) for group in scores],
        "Chance": [percent(group.chance_accuracy) for group in scores],
        "Exam score": [percent(group.exam_score) for group in scores],
        "Points": [decimal(group.points) for group in scores],
    }
    published = [group for group in scores if isinstance(group, PublishedScores)]
    if len(published) == len(scores):
        columns["v1 accuracy"] = [decimal(group.headqa_v1_accuracy) for group in published]
        columns["v1 points"] = [decimal(group.headqa_v1_points) for group in published]
    return Table(title, tuple(columns), tuple(zip(*columns.values(), strict=True)))


def breakdowns(metrics: Metrics) -> list[Table]:
    """The tables by discipline, year, number of options and exam."""
    return [
        breakdown("By discipline", "Discipline", {str(name): group for name, group in metrics.by_discipline.items()}),
        breakdown("By year", "Year", {str(year): group for year, group in metrics.by_year.items()}),
        breakdown("By number of options", "Options", {str(k): group for k, group in metrics.by_option_count.items()}),
        breakdown("By exam", "Exam", metrics.by_exam),
    ]


def _score_columns(all_metrics: Sequence[Metrics]) -> dict[str, list[str]]:
    return {
        "n": [str(m.n) for m in all_metrics],
        "Accuracy": [with_interval(percent(m.accuracy), m.accuracy_interval) for m in all_metrics],
        "Chance": [percent(m.chance_accuracy) for m in all_metrics],
        "Exam score": [with_interval(percent(m.exam_score), m.exam_score_interval) for m in all_metrics],
        "Points": [decimal(m.points) for m in all_metrics],
        "Unanswered": [percent(m.unanswered_ratio) for m in all_metrics],
        **_owed_columns(all_metrics),
    }


def _owed_columns(scores: Sequence[Scores]) -> dict[str, list[str]]:
    """Failed and missing questions, where there are any."""
    columns = {"Failed": [group.failed for group in scores], "Missing": [group.missing for group in scores]}
    return {header: [str(value) for value in values] for header, values in columns.items() if any(values)}


def _best(runs: Sequence[StoredRun], headers: Sequence[str]) -> frozenset[tuple[int, int]]:
    """Positions of the highest score of each column, ties included; an incomplete run is no contender."""
    found: set[tuple[int, int]] = set()
    for header, field in (("Accuracy", "accuracy"), ("Exam score", "exam_score"), ("Points", "points")):
        scores = {row: getattr(run.metrics, field) for row, run in enumerate(runs) if run.metrics.complete}
        if len(scores) > 1:
            highest = max(scores.values())
            found |= {(row, headers.index(header)) for row, score in scores.items() if score == highest}
    return frozenset(found)
