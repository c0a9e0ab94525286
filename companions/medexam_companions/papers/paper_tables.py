"""`medexam report --layout PAPER`: stored runs in the tables of a paper, as its data file declares them.

Below a run's figures stand those that the paper prints for the same strategy, model, language and data set, and the
difference. Runs of different data sets never share a table.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from medexam.errors import SpecError
from medexam.experiments import Block, StoredRun, ranking_notes, render_latex, render_markdown
from medexam.measures import Scores
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


Figure = dict[str, Any]
"""A run's figure and the paper's, percent or points, rounded as in the paper's table: `value`, its 95 % `interval`,
`published`, the `difference` of both, and whether the interval holds the paper's (`within`); None for what is not
known or cannot be compared."""


class _PaperTable:
    """One table of one data set, filled with the runs that stand in it.

    A table of models has a row for each strategy and model and a block of columns for each language; one of runs has a
    row for each run and a single nameless block.
    """

    def __init__(self, dataset: str, layout: TableLayout, paper: Paper, runs: Sequence[StoredRun]) -> None:
        self.dataset, self.layout, self.paper = dataset, layout, paper
        self.of_models = layout.rows == "models"
        self.by_exam = not self.of_models and bool(paper.exams)
        printed = paper.figures if dataset == paper.dataset else {}
        self.grid = printed.get(layout.number or 0, Grid(columns=(), rows={}))
        self.headings: dict[str, tuple[str | None, str]]
        """Heading of each figure of a run -> its part, an exam or None for all, and its measure."""
        self.headings = {paper.measures[measure].heading: (None, measure) for measure in layout.measures}
        if self.by_exam:
            parts = {exam: exam for exam in paper.exams} | ({layout.whole: None} if layout.whole else {})
            self.headings = {heading: (part, layout.measures[0]) for heading, part in parts.items()}
        self.runs = sorted(runs, key=self._place)
        self.figures = {id(run): {heading: self._figure(run, heading) for heading in self.headings} for run in runs}
        languages = [*paper.languages, *map(_language, self.runs)]
        self.blocks = list(dict.fromkeys(languages)) if self.of_models else [""]
        rows, best = self._rows()
        names = ("Strategy", "Model") if self.of_models else ("Solver",)
        headers = [f"{block} {column}".strip() for block in self.blocks for column in (*self.headings, "n")]
        title = f"{layout.name} · {dataset}"
        table = Table(title, (*names, *headers), tuple(rows), best=frozenset(best), text_columns=len(names))
        self.table = replace(table, caption=self._legend(has_best=bool(best)))

    def document(self) -> dict[str, Any]:
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
                    "strategy": self._strategy(run),
                    "model": run.model,
                    "language": _language(run),
                    "mixed": run.mixed,
                    "status": run.status,
                    "n": self._scored(run),
                    "figures": self.figures[id(run)],
                }
                for run in self.runs
            ],
        }

    def _place(self, run: StoredRun) -> tuple[int, str, int]:
        """Order runs as the paper does its strategies and models; others stand behind, controls last."""
        strategies, models = [strategy.id for strategy in self.layout.strategies], self.paper.models
        name, model = self._strategy(run), run.model or NO_MODEL
        own = "" if name in strategies or not self.of_models else name
        number = models.index(model) if model in models else len(models) + (model == NO_MODEL)
        return strategies.index(name) if name in strategies else len(strategies), own, number * self.of_models

    def _strategy(self, run: StoredRun) -> str:
        """Return the id of the paper's strategy that the run's program is, or the program's label."""
        strategy = self.layout.strategy(run.program)
        return run.program if strategy is None else strategy.id

    def _figure(self, run: StoredRun, heading: str) -> Figure | None:
        """Compute a run's figure in the unit of the paper; None if the run has scored nothing there."""
        part, measure = self.headings[heading]
        if self.by_exam:
            exams = self._exams(run, part)
            value, interval = EXAM_AVERAGES[measure](exams), printed_interval(exams, measure)
        else:
            mean = run.metrics.measure(measure)
            value = None if mean.value is None else round(100 * mean.value, self.paper.decimals) + 0.0
            interval = mean.interval and (100 * mean.interval[0], 100 * mean.interval[1])
        if value is None:
            return None
        row = " ".join([*([str(run.model)] if self.of_models else []), self._strategy(run), _language(run)])
        published = self.grid.figure(row, heading if self.by_exam else measure)
        difference = within = None
        if published is not None and self.paper.measures[measure].comparable:
            # A zero is added so that what rounds to -0 has no minus.
            difference = round(value - published, 6) + 0.0
            within = None if interval is None else interval[0] <= published <= interval[1]
        figure = {"value": value, "interval": interval, "published": published, "difference": difference}
        return figure | {"within": within}

    def _named(self) -> list[tuple[tuple[str, ...], list[StoredRun | None]]]:
        """List what names each row, and the run in each of its blocks."""
        if not self.of_models:
            strategies = {run.program: self.layout.strategy(run.program) for run in self.runs}
            # The paper's name of the solver if it is the same; else what stands for it.
            solvers = {
                name: one.id if one is not None and not one.stand_in else name for name, one in strategies.items()
            }
            parts = [(run, (solvers[run.program], run.model, _language(run))) for run in self.runs]
            return [((" ".join(filter(None, names)),), [run]) for run, names in parts]
        headings = {strategy.id: strategy.heading or strategy.id for strategy in self.layout.strategies}
        cells: dict[tuple[str, ...], dict[str, StoredRun]] = {}
        for run in self.runs:
            name, model, language = self._strategy(run), run.model or NO_MODEL, _language(run)
            other = cells.setdefault((headings.get(name, name), model), {}).setdefault(language, run)
            if other is not run:
                raise SpecError(
                    f"runs {other.folder.path} and {run.folder.path} would be in the same cell of the paper's tables "
                    f"({model}, {name} {language}); name one of them, or leave --layout out to see both"
                )
        return [(names, [row.get(language) for language in self.blocks]) for names, row in cells.items()]

    def _rows(self) -> tuple[list[tuple[str, ...]], set[tuple[int, int]]]:
        """Build the rows in words, with n, and find the best figure of each column."""
        lines, rows = self._named(), list[tuple[str, ...]]()
        best, own_rows = set[tuple[int, int]](), []
        for names, runs in lines:
            own_rows.append(len(rows))
            own, paper, difference = zip(*(texts for run in runs for texts in self._texts(run)), strict=True)
            rows.append((*names, *own))
            below = {PAPER: paper, DIFFERENCE: difference}
            rows += [(*names[:-1], f"  {label}", *line) for label, line in below.items() if {*line} - {NONE, ""}]
        for block in range(len(self.blocks)):
            runs = [in_blocks[block] for _, in_blocks in lines]
            for number, heading in enumerate(self.headings):
                column = 1 + self.of_models + block * (len(self.headings) + 1) + number
                best |= {(own_rows[row], column) for row in self._best_rows(runs, heading)}
        for name in (name for name in self.layout.references if name in self.grid.rows):
            rows.append((name, *(self._print(self.grid.figure(name, heading)) for heading in self.headings), ""))
        return rows, best

    def _best_rows(self, runs: Sequence[StoredRun | None], heading: str) -> list[int]:
        """List the rows with the best figure of runs of the same questions; none if all are the same, or one is
        pending.
        """
        present = [run for run in runs if run is not None]
        figures = [None if run is None else self.figures[id(run)][heading] for run in runs]
        values = [None if figure is None else figure["value"] for figure in figures]
        is_same = len({frozenset(run.record.questions) for run in present}) == 1
        if not is_same or not all(run.complete for run in present) or len({*values} - {None}) < 2:
            return []
        best = min if self.headings[heading][1] == LOWER_IS_BETTER else max
        top = best(value for value in values if value is not None)
        return [row for row, value in enumerate(values) if value == top]

    def _texts(self, run: StoredRun | None) -> Iterator[tuple[str, str, str]]:
        """Yield a run's own figure, the paper's and the difference for each column, n last."""
        for figure in [None] * len(self.headings) if run is None else self.figures[id(run)].values():
            if run is None or figure is None:
                yield NONE, NONE, NONE
                continue
            difference, sign = figure["difference"], f"{WITHIN} " if figure["within"] else ""
            yield (
                f"{self._print(figure['value'])}{'' if run.complete else '*'}",
                self._print(figure["published"]),
                NONE if difference is None else f"{sign}{difference:+.{self.paper.decimals}f}" if difference else EQUAL,
            )
        filler = NONE if self.of_models else ""
        yield NONE if run is None else f"{self._scored(run):,}", filler, filler

    def _print(self, value: float | None) -> str:
        return NONE if value is None else f"{value:.{self.paper.decimals}f}"

    def _legend(self, *, has_best: bool) -> str:
        """Say how the table is read, and which figures are the paper's."""
        figures = [figure for row in self.figures.values() for figure in row.values() if figure is not None]
        lines = [self.paper.legend, *(self.paper.measures[measure].legend for measure in self.layout.measures)]
        if any(figure["published"] is not None for figure in figures) or self.layout.references:
            lines.append(f"{PAPER.capitalize()}: the figures of the paper (arXiv {self.paper.arxiv}).")
        if any(figure["within"] for figure in figures):
            lines.append(f"{EQUAL}: the same. {WITHIN}: the paper's figure lies within our 95 % interval.")
        names = set(map(self._strategy, self.runs))
        lines += [strategy.stand_in for strategy in self.layout.strategies if strategy.id in names]
        if any(run.record.cell.dataset.limit is not None for run in self.runs):
            lines.append(self.paper.limited)
        if not all(run.complete for run in self.runs):
            lines.append("*: questions of the run are pending.")
        return " ".join(filter(None, [*lines, "Bold: the best figure of the column." if has_best else ""]))

    def _scored(self, run: StoredRun) -> int:
        """Count the questions of a run that are scored here."""
        return sum(exam.n for exam in self._exams(run, None)) if self.by_exam else run.metrics.n

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
        return [*(each.table for each in self.tables), *ranking_notes(self._runs)]

    def markdown(self) -> str:
        """Render the tables and notes on them as Markdown."""
        return render_markdown("Tables of the paper", self.blocks())

    def latex(self) -> str:
        """Render the tables in LaTeX, the best of each column bold; notes are comments."""
        return render_latex(self.blocks())


headqa_v1 = partial(PaperReport, "headqa-v1")
headqa_v2 = partial(PaperReport, "headqa-v2")


def _fill(paper: Paper, runs: Sequence[StoredRun]) -> Iterator[_PaperTable]:
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
                yield _PaperTable(name, layout, paper, table_runs)


def _language(run: StoredRun) -> str:
    return str(run.record.cell.dataset.language)


def _split(run: StoredRun) -> str | None:
    """Return the split whose questions the run asked; None if they were narrowed further."""
    dataset = run.record.cell.dataset
    narrowed = dataset.years or dataset.disciplines or dataset.option_counts or dataset.images != "all"
    return None if narrowed else dataset.split
