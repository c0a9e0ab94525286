"""`medexam report --layout`: stored runs in the tables of a paper, as its data file declares them.

Below a run's figures stand those that the paper prints for the same strategy, model, language and data set, and the
difference. Runs of different data sets never share a table.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from medexam.errors import SpecError
from medexam.experiments import ExamRun, captioned, join_markdown, render_latex
from medexam.metrics import AVERAGES, Interval, Tally
from medexam.tables import NONE, Table
from medexam_companions.papers.paper import Paper, TableLayout
from medexam_companions.papers.printed_averages import printed_accuracy, printed_interval

NO_MODEL = "no model"
"""The row of controls."""
PAPER, DIFFERENCE = "paper", "difference"
"""Rows below a run's figures."""
EQUAL, WITHIN = "=", "≈"
"""A figure that is the paper's, and one whose interval holds the paper's."""
_COUNT = "n"
BEST = "Bold: the best figure of the column."
LOWER_IS_BETTER = frozenset({"unanswered_ratio"})
EXAM_AVERAGES = {"accuracy": printed_accuracy, "points": AVERAGES["headqa_v1_points"].of}

Column = tuple[str, str] | None
"""A strategy's id, or the label of a program that is none of the paper's, and a language; None in a table of runs."""


@dataclass(frozen=True)
class Figure:
    """One of the figures that a table has of each run."""

    heading: str
    part: str | None
    """An exam; None is all of them."""
    measure: str


@dataclass(frozen=True)
class FigureCell:
    """A run's figure and the paper's, both as the paper's table has them: percent or points, rounded."""

    value: float
    interval: Interval | None
    """95 %, not rounded; None if there is none."""
    published: float | None
    """None if the paper prints none, or none that can be compared."""
    comparable: bool

    @property
    def difference(self) -> float | None:
        """`value - published`; None if there is nothing to compare."""
        if self.published is None or not self.comparable:
            return None
        # A zero is added so that what rounds to -0 has no minus.
        return round(self.value - self.published, 6) + 0.0

    @property
    def within(self) -> bool | None:
        """Whether the paper's figure lies within the interval; None if that cannot be said."""
        if self.difference is None or self.interval is None or self.published is None:
            return None
        return self.interval[0] <= self.published <= self.interval[1]

    def document(self) -> dict[str, Any]:
        """Return it as a JSON-ready dictionary."""
        return {
            "value": self.value,
            "interval": self.interval,
            "published": self.published,
            "difference": self.difference,
            "within": self.within,
        }


@dataclass(frozen=True)
class PaperTable:
    """One table of one data set, filled with what there is."""

    dataset: str
    layout: TableLayout
    paper: Paper
    cells: Mapping[tuple[str, Column], ExamRun]
    """(model or run folder, column) -> the run that stands there."""

    @property
    def title(self) -> str:
        """What stands above the table."""
        return f"{self.layout.name} · {self.dataset}"

    @property
    def columns(self) -> list[tuple[str, Figure | None]]:
        """A language and a figure of each column of a table of models, None being n; the paper's languages first."""
        languages = [*self.paper.languages, *(str(run.record.cell.dataset.language) for run in self.cells.values())]
        return [(language, figure) for language in dict.fromkeys(languages) for figure in (*self.figures, None)]

    @property
    def rows(self) -> list[str]:
        """Models of the runs in the paper's order, then others, then the controls."""
        models = dict.fromkeys(row for row, _ in self.cells)
        paper_models = [model for model in self.paper.models if model in models]
        return sorted(
            models,
            key=lambda row: (row == NO_MODEL, paper_models.index(row) if row in paper_models else len(paper_models)),
        )

    @property
    def runs(self) -> list[ExamRun]:
        """In the paper's order of strategies, those that are none of its strategies last."""
        order = [strategy.id for strategy in self.layout.strategies]
        places = {id(run): order.index(name) for run in self.cells.values() if (name := self._strategy(run)) in order}
        return sorted(self.cells.values(), key=lambda run: places.get(id(run), len(order)))

    @property
    def figures(self) -> list[Figure]:
        """What stands of each run, in order."""
        measures = self.layout.measures
        if not self._by_exam:
            return [Figure(self.paper.measures[measure].heading, None, measure) for measure in measures]
        exam_figures = [Figure(exam, exam, measures[0]) for exam in self.paper.exams]
        return [*exam_figures, *([Figure(self.layout.whole, None, measures[0])] if self.layout.whole else [])]

    def cell(self, run: ExamRun, figure: Figure) -> FigureCell | None:
        """Return a figure of a run beside the paper's; None if the run has scored nothing there."""
        if self._by_exam:
            exams = self._exams(run, figure.part)
            value = EXAM_AVERAGES[figure.measure](exams)
            interval = printed_interval(exams, cast(Literal["accuracy", "points"], figure.measure))
        else:
            fraction = getattr(run.metrics, figure.measure)
            value = None if fraction is None else round(100 * fraction, self.paper.decimals) + 0.0
            ends = getattr(run.metrics, f"{figure.measure}_interval")
            interval = None if ends is None else (100 * ends[0], 100 * ends[1])
        if value is None:
            return None
        return FigureCell(value, interval, self.published(run, figure), self.paper.measures[figure.measure].comparable)

    def scored(self, run: ExamRun) -> int:
        """Count the questions of a run that are scored here."""
        return sum(exam.n for exam in self._exams(run, None)) if self._by_exam else run.metrics.n

    def published(self, run: ExamRun, figure: Figure) -> float | None:
        """Return the paper's figure beside that of a run; None if it prints none."""
        grid = self.paper.figures.get(self.layout.number or 0)
        if grid is None or self.dataset != self.paper.dataset:
            return None
        row = f"{self._strategy(run)} {run.record.cell.dataset.language}"
        if self.layout.rows == "runs":
            return grid.figure(row, figure.heading if self._by_exam else figure.measure)
        return grid.figure(f"{run.model} {row}", figure.measure)

    @property
    def legend(self) -> str:
        """How the table is read, and which figures are the paper's."""
        runs = self.runs
        cells = [cell for run in runs for figure in self.figures if (cell := self.cell(run, figure)) is not None]
        lines = [self.paper.legend, *(self.paper.measures[measure].legend for measure in self.layout.measures)]
        if any(cell.published is not None for cell in cells) or self.layout.references:
            lines.append(f"{PAPER.capitalize()}: the figures of the paper (arXiv {self.paper.arxiv}).")
        if any(cell.within for cell in cells):
            lines.append(f"{EQUAL}: the same. {WITHIN}: the paper's figure lies within our 95 % interval.")
        stands = {self._strategy(run) for run in runs}
        lines += [strategy.stand_in for strategy in self.layout.strategies if strategy.id in stands]
        if any(run.record.cell.dataset.limit is not None for run in runs):
            lines.append(self.paper.limited)
        if not all(run.complete for run in runs):
            lines.append("*: questions of the run are pending.")
        if self.table.best:
            lines.append(BEST)
        return " ".join(filter(None, lines))

    @property
    def table(self) -> Table:
        """The table in words, with n; the best figure of each column is stressed."""
        table = self._table_of_runs() if self.layout.rows == "runs" else self._table_of_models()
        best = {
            (row, column)
            for column in range(table.text_columns, len(table.headers))
            if not table.headers[column].endswith(_COUNT) and self._one_exam_of(column - table.text_columns)
            for row in self._best_rows(table, column)
        }
        return replace(table, best=frozenset(best))

    @property
    def in_print(self) -> Table:
        """The table as it is printed: languages above their figures."""
        table = self.table
        spans = ("",) * table.text_columns + tuple(language for language, _ in self.columns)
        return replace(table, spans=spans if self.layout.rows == "models" else ())

    def _one_exam_of(self, place: int) -> bool:
        """Return whether all runs of a column asked the same questions, so that one of them is the best."""
        runs = self.runs
        if self.layout.rows == "models":
            language = self.columns[place][0]
            runs = [run for run in runs if run.record.cell.dataset.language == language]
        return len({frozenset(run.record.questions) for run in runs}) == 1

    def _best_rows(self, table: Table, column: int) -> list[int]:
        """List the rows with the best of the runs' own figures; none if all are the same, or a run is pending."""
        references = self.layout.references
        texts = {
            place: row[column]
            for place, row in enumerate(table.rows)
            if not (name := row[table.text_columns - 1]).startswith("  ") and name not in references
        }
        if len(set(texts.values()) - {NONE}) < 2 or any(text.endswith("*") for text in texts.values()):
            return []
        values = {row: float(text) for row, text in texts.items() if text != NONE}
        lowest = tuple(measure.heading for name, measure in self.paper.measures.items() if name in LOWER_IS_BETTER)
        top = (min if lowest and table.headers[column].endswith(lowest) else max)(values.values())
        return [row for row, value in values.items() if value == top]

    def document(self) -> dict[str, Any]:
        """Return what `--json` prints, JSON-ready: each run's figures in the unit of the paper's table, and the
        paper's.
        """
        table = self.table
        return {
            "dataset": self.dataset,
            "table": self.layout.number,
            "title": self.layout.title,
            "arxiv": self.paper.arxiv,
            "headers": list(table.headers),
            "rows": [list(row) for row in table.rows],
            "runs": [self._run_document(run) for run in self.runs],
        }

    @property
    def _by_exam(self) -> bool:
        """Whether the columns are the paper's exams."""
        return self.layout.rows == "runs" and bool(self.paper.exams)

    def _table_of_runs(self) -> Table:
        figures, rows = self.figures, []
        for run in self.runs:
            rows.append((self._solver(run), *(self._text(run, figure) for figure in figures), f"{self.scored(run):,}"))
            rows += [(f"  {label}", *texts, "") for label, texts in self._below([(run, figure) for figure in figures])]
        grid = self.paper.figures.get(self.layout.number or 0)
        for name in self.layout.references if grid is not None and self.dataset == self.paper.dataset else ():
            references = [grid.figure(name, figure.heading) if grid else None for figure in figures]
            rows.append(
                (name, *(NONE if reference is None else self._print(reference) for reference in references), "")
            )
        return Table(self.title, ("Solver", *(figure.heading for figure in figures), "n"), tuple(rows))

    def _table_of_models(self) -> Table:
        rows: list[tuple[str, ...]] = []
        headings = {strategy.id: strategy.heading or strategy.id for strategy in self.layout.strategies}
        strategies = dict.fromkeys([*headings, *(column[0] for _, column in self.cells if column is not None)])
        for strategy in strategies:
            heading = headings.get(strategy, strategy)
            for model in self.rows:
                pairs = [(self.cells.get((model, (strategy, language))), figure) for language, figure in self.columns]
                if all(run is None for run, _ in pairs):
                    continue
                rows.append((heading, model, *(self._text(run, figure) for run, figure in pairs)))
                rows += [(heading, f"  {name}", *texts) for name, texts in self._below(pairs)]
        headers = (f"{language} {figure.heading if figure else _COUNT}" for language, figure in self.columns)
        return Table(self.title, ("Strategy", "Model", *headers), tuple(rows), text_columns=2)

    def _solver(self, run: ExamRun) -> str:
        """Return the paper's name of the solver if it is the same; else what stands for it."""
        strategy = self.layout.strategy(run.program)
        solver = strategy.id if strategy is not None and not strategy.stand_in else run.program
        return " ".join(filter(None, (solver, run.model, run.record.cell.dataset.language)))

    def _text(self, run: ExamRun | None, figure: Figure | None) -> str:
        """Format a run's own figure, marked if questions are pending; None is n."""
        if run is not None and figure is None:
            return f"{self.scored(run):,}"
        cell = None if run is None or figure is None else self.cell(run, figure)
        if run is None or cell is None:
            return NONE
        return f"{self._print(cell.value)}{'' if run.complete else '*'}"

    def _below(self, row: Sequence[tuple[ExamRun | None, Figure | None]]) -> list[tuple[str, list[str]]]:
        """Return the paper's figures of a row and the differences; empty where the paper has none."""
        cells = [None if run is None or figure is None else self.cell(run, figure) for run, figure in row]
        if all(cell is None or cell.published is None for cell in cells):
            return []
        figures = [NONE if cell is None or cell.published is None else self._print(cell.published) for cell in cells]
        if all(cell is None or cell.difference is None for cell in cells):
            return [(PAPER, figures)]
        return [(PAPER, figures), (DIFFERENCE, [self._difference(cell) for cell in cells])]

    def _difference(self, cell: FigureCell | None) -> str:
        if cell is None or cell.difference is None:
            return NONE
        if cell.difference == 0:
            return EQUAL
        return f"{f'{WITHIN} ' if cell.within else ''}{cell.difference:+.{self.paper.decimals}f}"

    def _run_document(self, run: ExamRun) -> dict[str, Any]:
        cells = {figure.heading: self.cell(run, figure) for figure in self.figures}
        return {
            "run_id": run.record.run_id,
            "program": run.program,
            "strategy": self._strategy(run),
            "model": run.model,
            "language": run.record.cell.dataset.language,
            "mixed": run.mixed,
            "status": run.status,
            "n": self.scored(run),
            "figures": {heading: None if cell is None else cell.document() for heading, cell in cells.items()},
        }

    def _print(self, value: float) -> str:
        return f"{value:.{self.paper.decimals}f}"

    def _strategy(self, run: ExamRun) -> str:
        return _strategy(self.layout, run)

    def _exams(self, run: ExamRun, part: str | None) -> list[Tally]:
        """Count what came of each exam of a part that counts here and has a scored question."""
        patterns = self.paper.exams.values() if part is None else [self.paper.exams[part]]
        return [
            Tally(right=scores.right, wrong=scores.wrong, unanswered=scores.unanswered)
            for name, scores in run.metrics.by_exam.items()
            if scores.n
            and re.fullmatch(self.layout.exams, name)
            and any(re.fullmatch(pattern, name) for pattern in patterns)
        ]


def paper_tables(runs: Sequence[ExamRun], paper: Paper) -> list[PaperTable]:
    """Build the tables that `runs` have something for, data set by data set.

    Raises `SpecError` if two runs would stand in one cell, or if a run asked a data set that the paper refuses.
    """
    tables = []
    for dataset in dict.fromkeys(run.record.cell.dataset.name for run in runs):
        dataset_runs = [run for run in runs if run.record.cell.dataset.name == dataset]
        if paper.only and dataset != paper.dataset:
            raise SpecError(
                f"--layout {paper.layout} prints tables of {paper.dataset}, and run {dataset_runs[0].record.run_id} "
                f"asked {dataset}: name runs of {paper.dataset} alone, or leave --layout out"
            )
        for layout in paper.tables:
            cells: dict[tuple[str, Column], ExamRun] = {}
            for run in dataset_runs:
                if paper.takes(layout, run.record.cell.program.kind, _split(run)):
                    _put(cells, run, layout)
            if cells:
                tables.append(PaperTable(dataset, layout, paper, cells))
    return tables


def render_paper_latex(tables: Sequence[PaperTable], notes: Sequence[str] = ()) -> str:
    """Render the tables in LaTeX, the best of each column bold; `notes` are comments."""
    return render_latex([(table.in_print, table.legend) for table in tables], notes)


def render_paper_report(tables: Sequence[PaperTable], notes: Sequence[str] = ()) -> str:
    """Render the tables and `notes` on them as Markdown."""
    return join_markdown([*captioned((table.table, table.legend) for table in tables), *notes])


def _strategy(layout: TableLayout, run: ExamRun) -> str:
    """Return the id of the strategy that the run's program is, or the program's label."""
    strategy = layout.strategy(run.program)
    return run.program if strategy is None else strategy.id


def _split(run: ExamRun) -> str | None:
    """Return the split whose questions the run asked; None if they were narrowed further."""
    dataset = run.record.cell.dataset
    narrowed = dataset.years or dataset.disciplines or dataset.option_counts or dataset.images != "all"
    return None if narrowed else dataset.split


def _put(cells: dict[tuple[str, Column], ExamRun], run: ExamRun, layout: TableLayout) -> None:
    if layout.rows == "runs":
        cells[str(run.folder.path), None] = run
        return
    model, name, language = run.model or NO_MODEL, _strategy(layout, run), str(run.record.cell.dataset.language)
    other = cells.setdefault((model, (name, language)), run)
    if other is not run:
        raise SpecError(
            f"runs {other.folder.path} and {run.folder.path} would be in the same cell of the paper's tables "
            f"({model}, {name} {language}); name one of them, or leave --layout out to see both"
        )
