"""`medexam report --layout paper`: stored runs in the layout of the HEAD-QA v2 paper's tables.

Models are rows and strategies by language are columns. Beside a run stands the paper's figure where model, strategy,
language and data set are the same and the figure is known. Runs of different data sets never share a table.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from medexam.errors import SpecError
from medexam.experiments.report.markdown_parts import render_table
from medexam.experiments.report.papers.published_figures import Measure, Paper, TableLayout, load_paper
from medexam.experiments.report.tables import LONG_NAME, TerminalTable
from medexam.experiments.store.stored_run import ExamRun
from medexam.formatting import NONE
from medexam.metrics import Scores
from medexam.questions import Discipline
from medexam.tables import Table

NO_MODEL = "no model"
"""The row of controls."""
GUTTER = 2
"""Characters between the columns of a table in the terminal."""
MEASURES: dict[Measure, str] = {
    "accuracy": "accuracy",
    "exam_score": "exam score",
    "unanswered_ratio": "unanswered",
}

Column = tuple[str, str]
"""A strategy's id, or the label of a program that is none of the paper's, and a language."""


@dataclass(frozen=True)
class PaperTable:
    """One table of one data set, filled with what there is."""

    dataset: str
    layout: TableLayout
    paper: Paper
    cells: Mapping[tuple[str, Column], ExamRun]
    """(model, column) -> the run that stands there."""

    @property
    def columns(self) -> list[Column]:
        """The paper's own in its order, and behind them those that only the runs have."""
        own = [(strategy.id, language) for strategy in self.layout.strategies for language in self.paper.languages]
        return list(dict.fromkeys([*own, *(column for _, column in self.cells)]))

    @property
    def models(self) -> list[str]:
        """Those of the runs in the paper's order, then others, then the controls."""
        found = list(dict.fromkeys(model for model, _ in self.cells))
        known = [model for model in self.paper.models if model in found]
        return [*known, *(m for m in found if m not in (*known, NO_MODEL)), *(m for m in found if m == NO_MODEL)]

    def published(self, model: str, column: Column, measure: Measure) -> float | None:
        """The paper's figure beside a cell, a fraction of 1; None where there is none."""
        return self.paper.published(model, *column, measure) if self.dataset == self.paper.dataset else None

    def heading(self, column: Column) -> str:
        """The column's strategy in the paper's words, and its language."""
        name, language = column
        headings = {strategy.id: strategy.heading for table in self.paper.tables for strategy in table.strategies}
        return f"{headings.get(name, name)} {language}"

    @property
    def title(self) -> str:
        """The paper's number where it is known, what the table holds, and the data set."""
        words = self.layout.title
        if self.layout.number is None:
            return f"{words[0].upper()}{words[1:]} · {self.dataset}"
        return f"Table {self.layout.number}: {words} · {self.dataset}"


def paper_tables(runs: Sequence[ExamRun], paper: Paper | None = None) -> list[PaperTable]:
    """The tables that `runs` have something for, data set by data set; `paper` is the shipped one by default.

    Raises `SpecError` where two runs would stand in one cell.
    """
    paper = paper or load_paper()
    claimed = {kind for layout in paper.tables for kind in layout.kinds}
    tables = []
    for dataset in dict.fromkeys(run.record.cell.dataset.name for run in runs):
        for layout in paper.tables:
            cells: dict[tuple[str, Column], ExamRun] = {}
            for run in runs:
                kind = run.record.cell.program.kind
                fits = layout.rows == "disciplines" or (kind in layout.kinds if layout.kinds else kind not in claimed)
                if fits and run.record.cell.dataset.name == dataset:
                    _put(cells, run, paper)
            if cells:
                tables.append(PaperTable(dataset, layout, paper, cells))
    return tables


def paper_table(table: PaperTable) -> Table:
    """The table in words: percent with two decimals, as the paper prints them, and n."""
    columns = table.columns
    rows = []
    for model in table.models:
        runs = [table.cells.get((model, column)) for column in columns]
        if table.layout.rows == "disciplines":
            rows += [
                (model, discipline.value, *(_percent(run, "accuracy", discipline) for run in runs))
                for discipline in Discipline
            ]
        for measure in table.layout.measures:
            known = [table.published(model, column, measure) for column in columns]
            texts = [_percent(run, measure) + _beside(figure) for run, figure in zip(runs, known, strict=True)]
            rows.append((model, "all" if table.layout.rows == "disciplines" else MEASURES[measure], *texts))
        rows.append((model, "n", *(NONE if run is None else f"{run.metrics.n:,}" for run in runs)))
    headers = ("Model", "", *(table.heading(column) for column in columns))
    return Table(table.title, headers, tuple(rows), text_columns=2)


def legend(table: PaperTable) -> str:
    """How the table is read, and which figures are the paper's."""
    text = "Percent of n."
    if "exam_score" in table.layout.measures:
        text += " Exam score: (right - wrong / 3) / n."
    beside = [
        table.published(model, column, measure) for model, column in table.cells for measure in table.layout.measures
    ]
    if any(figure is not None for figure in beside):
        text += f" In brackets: the figures of the paper (arXiv {table.paper.arxiv})."
    if not all(run.complete for run in table.cells.values()):
        text += " *: questions of the run are pending."
    return text


def build_paper_tables(tables: Sequence[PaperTable], width: int) -> list[TerminalTable]:
    """The tables, ready for `Console.print` in a terminal of `width` characters.

    A table that is wider is cut into several that each begin with the model.
    """
    built = []
    for table in tables:
        *first, last = _cut(paper_table(table), width)
        built += [*(TerminalTable(part) for part in first), TerminalTable(last, legend(table))]
    return built


def render_paper_report(tables: Sequence[PaperTable], notes: Sequence[str] = ()) -> str:
    """The tables and `notes` on them as Markdown."""
    parts = []
    for table in tables:
        words = paper_table(table)
        parts.append(f"## {words.title}\n\n{render_table(words)}\n\n{legend(table)}")
    return "\n\n".join([*parts, *notes]) + "\n"


def paper_document(tables: Sequence[PaperTable]) -> list[dict[str, Any]]:
    """What `--json` prints, JSON-ready: the rows of each table, with a value of its own for each cell.

    Values are fractions of 1, None where there is none; `cells` holds nothing for an empty cell.
    """
    return [
        {
            "dataset": table.dataset,
            "table": table.layout.number,
            "title": table.layout.title,
            "arxiv": table.paper.arxiv,
            "headers": list(words.headers),
            "rows": [list(row) for row in words.rows],
            "cells": [
                {
                    "model": None if model == NO_MODEL else model,
                    "strategy": column[0],
                    "language": column[1],
                    "run_id": run.record.run_id,
                    "n": run.metrics.n,
                    "status": run.status,
                    "mixed": run.mixed,
                    **{measure: getattr(run.metrics, measure) for measure in table.layout.measures},
                    "published": {
                        measure: table.published(model, column, measure) for measure in table.layout.measures
                    },
                }
                for (model, column), run in table.cells.items()
            ],
        }
        for table in tables
        for words in [paper_table(table)]
    ]


def _cut(table: Table, width: int) -> list[Table]:
    """The table's columns in parts that fit, each behind the text columns, without models that have nothing there.

    A model's name runs down its rows.
    """
    texts = table.text_columns
    headers = [header.replace("-", "-\n").replace(" ", "\n") for header in table.headers]
    blocks = []
    for model, group in groupby(table.rows, lambda row: row[0]):
        rows = list(group)
        blocks.append([(name, *row[1:]) for name, row in zip(_down(model, len(rows)), rows, strict=True)])
    broad = [
        GUTTER + max(map(len, [*header.split("\n"), *(row[column] for rows in blocks for row in rows)]))
        for column, header in enumerate(headers)
    ]
    parts: list[list[int]] = [[]]
    for column in range(texts, len(headers)):
        if parts[-1] and sum(broad[:texts]) + sum(broad[each] for each in (*parts[-1], column)) > width:
            parts.append([])
        parts[-1].append(column)
    return [
        Table(
            table.title,
            (*headers[:texts], *(headers[column] for column in part)),
            tuple((*row[:texts], *(row[column] for column in part)) for rows in _told(blocks, part) for row in rows),
            text_columns=texts,
        )
        for part in parts
    ]


def _told(blocks: Sequence[list[tuple[str, ...]]], part: Sequence[int]) -> list[list[tuple[str, ...]]]:
    """The models that have something in these columns; all of them where none has."""
    told = [rows for rows in blocks if any(row[column] != NONE for row in rows for column in part)]
    return told or list(blocks)


def _down(name: str, rows: int) -> list[str]:
    """The name in one line a row, as many as there are rows."""
    lines = textwrap.wrap(name, LONG_NAME)
    return [*lines[: rows - 1], "".join(lines[rows - 1 :]), *[""] * (rows - len(lines))][:rows]


def _put(cells: dict[tuple[str, Column], ExamRun], run: ExamRun, paper: Paper) -> None:
    strategies = [strategy for table in paper.tables for strategy in table.strategies]
    name = next((strategy.id for strategy in strategies if run.program in strategy.programs), run.program)
    place = (run.model or NO_MODEL, (name, str(run.record.cell.dataset.language)))
    other = cells.setdefault(place, run)
    if other is not run:
        raise SpecError(
            f"runs {other.folder.path} and {run.folder.path} would stand in one cell of the paper's tables "
            f"({place[0]}, {name} {place[1][1]}); name one of them, or leave --layout out to see both"
        )


def _percent(run: ExamRun | None, measure: Measure, discipline: Discipline | None = None) -> str:
    """Of all questions or of one discipline's; marked if questions of the run are pending."""
    if run is None:
        return NONE
    scores: Scores | None = run.metrics if discipline is None else run.metrics.by_discipline.get(discipline)
    value: float | None = None if scores is None else getattr(scores, measure)
    if value is None:
        return NONE
    return f"{100 * value:.2f}{'' if run.complete else '*'}".replace("-0.00", "0.00")


def _beside(figure: float | None) -> str:
    return "" if figure is None else f" ({100 * figure:.2f})"
