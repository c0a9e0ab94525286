"""Tables of scores as plain text cells, and how the terminal draws them; Markdown draws the same ones.

What the compared runs share goes into the title, so that the columns fit a terminal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from medexam.experiments.compare.ranking import best_places, rivals
from medexam.experiments.report.formatting import NONE, decimal, percent, with_interval
from medexam.experiments.store.stored_run import AnyRun, ExamRun
from medexam.metrics import Metrics, PublishedScores, Scores, TaskMetrics

LEGEND = (
    "Percent of n, in brackets 95 % intervals. Accuracy: right / n (Wilson). Exam score: (right - wrong / 3) / n "
    "(bootstrap over exams). Points: 3 right - wrong per exam. Chance: a uniform choice on the same questions."
)

LONG_NAME = 18
"""A longer name breaks at its first hyphen in a narrow terminal."""


@dataclass(frozen=True)
class Table:
    """Rows of text under headers; `best` holds the (row, column) positions to stress."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]] = frozenset()
    text_columns: int = 1
    """How many columns, from the left, hold words and not numbers."""


class TerminalTable:
    """A table for `Console.print`. In a narrow terminal intervals move below their numbers, and long names break."""

    def __init__(self, table: Table, caption: str | None = None) -> None:
        self._table = table
        self._caption = caption

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the wide form where it fits and the narrow one where it does not."""
        wide = self._draw(narrow=False)
        fits = Measurement.get(console, options.update(max_width=10_000), wide).maximum <= options.max_width
        yield wide if fits else self._draw(narrow=True)

    def _draw(self, *, narrow: bool) -> RichTable:
        table = self._table
        drawn = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        drawn.title, drawn.title_justify = escape(table.title), "left"
        drawn.caption, drawn.caption_justify = self._caption, "left"
        for position, header in enumerate(table.headers):
            is_text = position < table.text_columns
            drawn.add_column(
                header.replace(" ", "\n") if narrow and not is_text else header,
                justify="left" if is_text else "right",
                overflow="fold",
                no_wrap=not is_text,
            )
        for row, cells in enumerate(table.rows):
            texts = [text.replace(" [", "\n[") for text in cells] if narrow else list(cells)
            if narrow and len(texts[0]) > LONG_NAME:
                texts[0] = texts[0].replace("-", "-\n", 1)
            drawn.add_row(
                *(Text(text, style="bold" if (row, column) in table.best else "") for column, text in enumerate(texts))
            )
        return drawn


def build_table(runs: Sequence[ExamRun]) -> TerminalTable:
    """The comparison of `runs`, ready for `Console.print`, the best scores in bold; at least one run."""
    return TerminalTable(comparison(runs), LEGEND)


def build_breakdowns(run: ExamRun) -> list[TerminalTable]:
    """The scores of one run by discipline, year, number of options and exam, ready for `Console.print`."""
    return [TerminalTable(table) for table in breakdowns(run.metrics, published=False)]


def comparison(runs: Sequence[ExamRun]) -> Table:
    """One row a run, in the given order; the best score of each column is stressed among runs that may be ranked."""
    title, labels = label_runs(runs)
    columns = {**labels, **_score_columns([run.metrics for run in runs])}
    headers = tuple(columns)
    return Table(
        title=title,
        headers=headers,
        rows=tuple(zip(*columns.values(), strict=True)),
        best=_best(runs, headers),
        text_columns=len(labels),
    )


def label_runs(runs: Sequence[AnyRun]) -> tuple[str, dict[str, list[str]]]:
    """A title with what all runs share, and a column, by its header, for each thing in which they differ.

    Controls beside runs of one model are named in the title as asking none.
    """
    labels: dict[str, list[str]] = {"Program": [run.program for run in runs]}
    title = [", ".join(dict.fromkeys(run.record.cell.name for run in runs))]
    models = list(dict.fromkeys(run.model for run in runs if run.model is not None))
    controls = dict.fromkeys(run.program for run in runs if run.model is None)
    if len(models) > 1:
        labels["Model"] = [run.model or NONE for run in runs]
    elif models:
        title.append(models[0] + (f" (no model: {', '.join(controls)})" if controls else ""))
    datasets = [run.record.cell.dataset.label for run in runs]
    if len(set(datasets)) > 1:
        labels["Data set"] = datasets
    else:
        title.append(datasets[0])
    return " · ".join(title), labels


def breakdown(title: str, header: str, groups: Mapping[str, Scores], *, published: bool = False) -> Table:
    """One row a group of questions, under the name of what they are grouped by.

    `published` adds the figures as the HEAD-QA v1 paper prints them, where the groups have them.
    """
    scores = list(groups.values())
    columns = {
        header: list(groups),
        "n": [str(group.n) for group in scores],
        "Right": [str(group.right) for group in scores],
        "Wrong": [str(group.wrong) for group in scores],
        "No answer": [str(group.unanswered) for group in scores],
        **unscored_columns(scores),
        "Accuracy": [with_interval(percent(group.accuracy), group.accuracy_interval) for group in scores],
        "Chance": [percent(group.chance_accuracy) for group in scores],
        "Exam score": [percent(group.exam_score) for group in scores],
        "Points": [decimal(group.points) for group in scores],
    }
    if published:
        papers = [group for group in scores if isinstance(group, PublishedScores)]
        columns["v1 accuracy"] = [decimal(group.headqa_v1_accuracy) for group in papers]
        columns["v1 points"] = [decimal(group.headqa_v1_points) for group in papers]
    return Table(title, tuple(columns), tuple(zip(*columns.values(), strict=True)))


def breakdowns(metrics: Metrics, *, published: bool) -> list[Table]:
    """The tables by discipline (with `published` figures or without), year, number of options and exam.

    That by year is left out where no exam has one.
    """
    disciplines = {discipline.value: group for discipline, group in metrics.by_discipline.items()}
    by_year = breakdown("By year", "Year", {str(year): group for year, group in metrics.by_year.items()})
    return [
        breakdown("By discipline", "Discipline", disciplines, published=published),
        *([by_year] if by_year.rows else []),
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
        "No answer": [percent(m.unanswered_ratio) for m in all_metrics],
        **unscored_columns(all_metrics),
    }


def unscored_columns(scores: Sequence[Scores | TaskMetrics]) -> dict[str, list[str]]:
    """The questions that are not scored, where there are any."""
    if not any(group.failed or group.missing for group in scores):
        return {}
    return {"Failed, missing": [f"{group.failed}, {group.missing}" for group in scores]}


def _best(runs: Sequence[ExamRun], headers: Sequence[str]) -> frozenset[tuple[int, int]]:
    """Positions of the highest score of each column, ties included."""
    among = rivals(runs)
    return frozenset(
        (row, headers.index(header))
        for header, field in (("Accuracy", "accuracy"), ("Exam score", "exam_score"), ("Points", "points"))
        for row in best_places([getattr(run.metrics, field) for run in runs], among)
    )
