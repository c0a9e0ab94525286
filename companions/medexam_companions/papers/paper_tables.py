"""`medexam report --layout PAPER`: stored runs in the tables of a paper, as its data file declares them.

Below a run's figures stand those that the paper prints for the same strategy, model, language and data set, and the
difference. Runs of different data sets never share a table.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from medexam.errors import SpecError
from medexam.experiments import Block, StoredRun, ranking_notes, render_latex, render_markdown
from medexam.measures import Interval, Scores
from medexam.tables import NONE, Table
from medexam_companions.papers.paper import Grid, Paper, TableLayout, all_papers
from medexam_companions.papers.printed_averages import printed_accuracy, printed_interval, printed_points

PAPER, DIFFERENCE = "paper", "difference"
"""Rows below a run's figures."""
EQUAL, WITHIN = "=", "≈"
"""A figure that is the paper's, and one whose interval holds the paper's."""
NO_MODEL = "no model"
"""The row of controls."""
LOWER_IS_BETTER = "unanswered_ratio"
EXAM_AVERAGES = {"accuracy": printed_accuracy, "points": printed_points}


FigureCell = dict[str, Any]
"""A run's figure and the paper's, percent or points, rounded as in the paper's table: `value`, its 95 % `interval`,
`published`, the `difference` of both, and whether the interval holds the paper's (`within`); None for what is not
known or cannot be compared."""


@dataclass(frozen=True)
class PaperTable:
    """One table of one data set, filled with the runs that stand in it.

    A table of models has a row for each strategy and model and a block of columns for each language; one of runs has a
    row for each run and a single block.
    """

    dataset: str
    layout: TableLayout
    paper: Paper
    all_runs: Sequence[StoredRun]

    @property
    def of_models(self) -> bool:
        """Whether its rows are models."""
        return self.layout.rows == "models"

    @cached_property
    def runs(self) -> list[StoredRun]:
        """In the paper's order of strategies and models; others stand behind, controls last."""
        strategies, models = [strategy.id for strategy in self.layout.strategies], self.paper.models

        def place(run: StoredRun) -> tuple[int, str, int]:
            name, model = self.strategy(run), run.model or NO_MODEL
            own = "" if name in strategies or not self.of_models else name
            number = models.index(model) if model in models else len(models) + (model == NO_MODEL)
            return strategies.index(name) if name in strategies else len(strategies), own, number * self.of_models

        return sorted(self.all_runs, key=place)

    @property
    def blocks(self) -> list[str]:
        """The languages of a table of models, the paper's first; a single nameless block of one of runs."""
        languages = [*self.paper.languages, *map(_language, self.runs)]
        return list(dict.fromkeys(languages)) if self.of_models else [""]

    @cached_property
    def rows(self) -> list[tuple[tuple[str, ...], list[StoredRun | None]]]:
        """What names each row, and the run in each of its blocks."""
        if not self.of_models:
            return [((self._solver(run),), [run]) for run in self.runs]
        headings = {strategy.id: strategy.heading or strategy.id for strategy in self.layout.strategies}
        cells: dict[tuple[str, ...], dict[str, StoredRun]] = {}
        for run in self.runs:
            name, model, language = self.strategy(run), run.model or NO_MODEL, _language(run)
            other = cells.setdefault((headings.get(name, name), model), {}).setdefault(language, run)
            if other is not run:
                raise SpecError(
                    f"runs {other.folder.path} and {run.folder.path} would be in the same cell of the paper's tables "
                    f"({model}, {name} {language}); name one of them, or leave --layout out to see both"
                )
        return [(names, [row.get(language) for language in self.blocks]) for names, row in cells.items()]

    @cached_property
    def figures(self) -> dict[str, tuple[str | None, str]]:
        """Heading of each figure of a run -> its part, an exam or None for all, and its measure."""
        measures = self.layout.measures
        if not self._by_exam:
            return {self.paper.measures[measure].heading: (None, measure) for measure in measures}
        parts: dict[str, str | None] = {exam: exam for exam in self.paper.exams}
        parts |= {self.layout.whole: None} if self.layout.whole else {}
        return {heading: (part, measures[0]) for heading, part in parts.items()}

    @cached_property
    def cells(self) -> dict[int, dict[str, FigureCell | None]]:
        """`id` of a run -> heading -> its figure beside the paper's; None if the run has scored nothing there."""
        grid = self._grid
        cells: dict[int, dict[str, FigureCell | None]] = {}
        for run in self.runs:
            row = f"{self.strategy(run)} {_language(run)}"
            row = f"{run.model} {row}" if self.of_models else row
            for heading, (part, measure) in self.figures.items():
                value, interval = self._value(run, part, measure)
                published = grid.figure(row, heading if self._by_exam else measure)
                difference = within = None
                if value is not None and published is not None and self.paper.measures[measure].comparable:
                    # A zero is added so that what rounds to -0 has no minus.
                    difference = round(value - published, 6) + 0.0
                    within = None if interval is None else interval[0] <= published <= interval[1]
                cell = {"value": value, "interval": interval, "published": published, "difference": difference}
                cells.setdefault(id(run), {})[heading] = None if value is None else cell | {"within": within}
        return cells

    def _value(self, run: StoredRun, part: str | None, measure: str) -> tuple[float | None, Interval | None]:
        """Compute a run's figure in the unit of the paper, rounded as it is there, and its interval."""
        if self._by_exam:
            exams = self._exams(run, part)
            return EXAM_AVERAGES[measure](exams), printed_interval(exams, measure)
        found = run.metrics.measure(measure)
        fraction, ends = found.value, found.interval
        value = None if fraction is None else round(100 * fraction, self.paper.decimals) + 0.0
        return value, None if ends is None else (100 * ends[0], 100 * ends[1])

    @property
    def _grid(self) -> Grid:
        """What the paper prints in this table; empty of another data set."""
        figures = self.paper.figures if self.dataset == self.paper.dataset else {}
        return figures.get(self.layout.number or 0, Grid(columns=(), rows={}))

    @property
    def legend(self) -> str:
        """How the table is read, and which figures are the paper's."""
        cells = [cell for row in self.cells.values() for cell in row.values() if cell is not None]
        lines = [self.paper.legend, *(self.paper.measures[measure].legend for measure in self.layout.measures)]
        if any(cell["published"] is not None for cell in cells) or self.layout.references:
            lines.append(f"{PAPER.capitalize()}: the figures of the paper (arXiv {self.paper.arxiv}).")
        if any(cell["within"] for cell in cells):
            lines.append(f"{EQUAL}: the same. {WITHIN}: the paper's figure lies within our 95 % interval.")
        names = {self.strategy(run) for run in self.runs}
        lines += [strategy.stand_in for strategy in self.layout.strategies if strategy.id in names]
        if any(run.record.cell.dataset.limit is not None for run in self.runs):
            lines.append(self.paper.limited)
        if not all(run.complete for run in self.runs):
            lines.append("*: questions of the run are pending.")
        if self.table.best:
            lines.append("Bold: the best figure of the column.")
        return " ".join(filter(None, lines))

    @cached_property
    def table(self) -> Table:
        """The table in words, with n; the best figure of each column is stressed."""
        rows: list[tuple[str, ...]] = []
        best: set[tuple[int, int]] = set()
        own_rows: list[int] = []
        for names, block_runs in self.rows:
            own_rows.append(len(rows))
            own, paper, difference = zip(*(texts for run in block_runs for texts in self._texts(run)), strict=True)
            rows.append((*names, *own))
            below = {PAPER: paper, DIFFERENCE: difference}
            rows += [(*names[:-1], f"  {label}", *line) for label, line in below.items() if {*line} - {NONE, ""}]
        columns = [*self.figures, "n"]
        for place in range(len(self.blocks)):
            runs = [block_runs[place] for _, block_runs in self.rows]
            for number, heading in enumerate(self.figures):
                column = 1 + self.of_models + place * len(columns) + number
                best |= {(own_rows[row], column) for row in self._best_rows(runs, heading)}
        headers = [f"{block} {column}".strip() for block in self.blocks for column in columns]
        names = ("Strategy", "Model") if self.of_models else ("Solver",)
        for name in (name for name in self.layout.references if name in self._grid.rows):
            figures = [self._grid.figure(name, heading) for heading in self.figures]
            rows.append((name, *(NONE if figure is None else self._print(figure) for figure in figures), ""))
        title = f"{self.layout.name} · {self.dataset}"
        return Table(title, (*names, *headers), tuple(rows), best=frozenset(best), text_columns=len(names))

    def document(self) -> dict[str, Any]:
        """Return what `--json` prints: each run's figures in the unit of the paper's table, and the paper's."""
        return {
            "dataset": self.dataset,
            "table": self.layout.number,
            "title": self.layout.title,
            "arxiv": self.paper.arxiv,
            "headers": list(self.table.headers),
            "rows": [list(row) for row in self.table.rows],
            "runs": [
                {
                    "run_id": run.record.run_id,
                    "program": run.program,
                    "strategy": self.strategy(run),
                    "model": run.model,
                    "language": _language(run),
                    "mixed": run.mixed,
                    "status": run.status,
                    "n": self._scored(run),
                    "figures": self.cells[id(run)],
                }
                for run in self.runs
            ],
        }

    def strategy(self, run: StoredRun) -> str:
        """Return the id of the paper's strategy that the run's program is, or the program's label."""
        strategy = self.layout.strategy(run.program)
        return run.program if strategy is None else strategy.id

    def _best_rows(self, runs: Sequence[StoredRun | None], heading: str) -> list[int]:
        """List the rows with the best figure of runs of the same questions; none if all are the same, or one is
        pending.
        """
        present = [run for run in runs if run is not None]
        cells = [None if run is None else self.cells[id(run)][heading] for run in runs]
        values = [None if cell is None else cell["value"] for cell in cells]
        is_same = len({frozenset(run.record.questions) for run in present}) == 1
        if not is_same or not all(run.complete for run in present) or len({*values} - {None}) < 2:
            return []
        best = min if self.figures[heading][1] == LOWER_IS_BETTER else max
        top = best(value for value in values if value is not None)
        return [row for row, value in enumerate(values) if value == top]

    @property
    def _by_exam(self) -> bool:
        """Whether the columns are the paper's exams."""
        return not self.of_models and bool(self.paper.exams)

    def _solver(self, run: StoredRun) -> str:
        """Return the paper's name of the solver if it is the same; else what stands for it."""
        strategy = self.layout.strategy(run.program)
        solver = strategy.id if strategy is not None and not strategy.stand_in else run.program
        return " ".join(filter(None, (solver, run.model, _language(run))))

    def _texts(self, run: StoredRun | None) -> Iterator[tuple[str, str, str]]:
        """Yield a run's own figure, the paper's and the difference for each column, n last."""
        for cell in [None] * len(self.figures) if run is None else self.cells[id(run)].values():
            if run is None or cell is None:
                yield NONE, NONE, NONE
                continue
            difference, published = cell["difference"], cell["published"]
            sign = f"{WITHIN} " if cell["within"] else ""
            yield (
                f"{self._print(cell['value'])}{'' if run.complete else '*'}",
                NONE if published is None else self._print(published),
                NONE if difference is None else f"{sign}{difference:+.{self.paper.decimals}f}" if difference else EQUAL,
            )
        filler = NONE if self.of_models else ""
        yield NONE if run is None else f"{self._scored(run):,}", filler, filler

    def _print(self, value: float) -> str:
        return f"{value:.{self.paper.decimals}f}"

    def _scored(self, run: StoredRun) -> int:
        """Count the questions of a run that are scored here."""
        return sum(exam.n for exam in self._exams(run, None)) if self._by_exam else run.metrics.n

    def _exams(self, run: StoredRun, part: str | None) -> list[Scores]:
        """Count what came of each exam of a part that counts here and has a scored question."""
        patterns = self.paper.exams.values() if part is None else [self.paper.exams[part]]
        return [
            scores
            for name, scores in run.metrics.by.get("exam", {}).items()
            if scores.n
            and re.fullmatch(self.layout.exams, name)
            and any(re.fullmatch(pattern, name) for pattern in patterns)
        ]


class PaperReport:
    """Runs in the tables of a paper, as `medexam report` shows a layout."""

    def __init__(self, paper: str | Paper, runs: Sequence[StoredRun]) -> None:
        """Fill the tables that `runs` have something for, data set by data set.

        Raises `SpecError` if two runs would stand in one cell, or for runs that the paper's tables do not take.
        """
        self._runs = runs
        self.tables = list(_fill(all_papers()[paper] if isinstance(paper, str) else paper, runs))

    def document(self) -> list[dict[str, Any]]:
        """Return what `--json` prints."""
        return [table.document() for table in self.tables]

    def blocks(self) -> list[Block]:
        """Return what the terminal shows."""
        return [*(replace(each.table, caption=each.legend) for each in self.tables), *ranking_notes(self._runs)]

    def markdown(self) -> str:
        """Render the tables and notes on them as Markdown."""
        return render_markdown("Tables of the paper", self.blocks())

    def latex(self) -> str:
        """Render the tables in LaTeX, the best of each column bold; notes are comments."""
        return render_latex(self.blocks())


headqa_v1 = partial(PaperReport, "headqa-v1")
headqa_v2 = partial(PaperReport, "headqa-v2")


def _fill(paper: Paper, runs: Sequence[StoredRun]) -> Iterator[PaperTable]:
    for run in runs:
        dataset = run.record.cell.dataset
        if dataset.alter is not None or not run.benchmark.right_or_wrong:
            what = "asked altered questions" if dataset.alter is not None else "answers in words"
            raise SpecError(
                f"--layout {paper.layout} sets exams beside a paper's, and run {run.record.run_id} {what}: leave that "
                "run or --layout out"
            )
        if paper.only and dataset.name != paper.dataset:
            raise SpecError(
                f"--layout {paper.layout} prints tables of {paper.dataset}, and run {run.record.run_id} "
                f"asked {dataset.name}: name runs of {paper.dataset} alone, or leave --layout out"
            )
    by_dataset: dict[str, list[StoredRun]] = {}
    for run in runs:
        by_dataset.setdefault(run.record.cell.dataset.name, []).append(run)
    for name, exam_runs in by_dataset.items():
        for layout in paper.tables:
            table_runs = [run for run in exam_runs if paper.takes(layout, run.record.cell.program.kind, _split(run))]
            if table_runs:
                yield PaperTable(name, layout, paper, table_runs)


def _language(run: StoredRun) -> str:
    return str(run.record.cell.dataset.language)


def _split(run: StoredRun) -> str | None:
    """Return the split whose questions the run asked; None if they were narrowed further."""
    dataset = run.record.cell.dataset
    narrowed = dataset.years or dataset.disciplines or dataset.option_counts or dataset.images != "all"
    return None if narrowed else dataset.split
