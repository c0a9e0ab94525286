"""`medexam report --layout headqa-v1`: stored runs in the layout of the HEAD-QA v1 paper's tables of results.

Solvers are rows and the six exams are columns, by their acronyms and in the paper's order. There is a table for each
setting, language and measure; figures are averaged and rounded as the paper's are (`medexam.metrics.headqa_v1`). A run
of all exams stands in both settings, for the exams of the test split are among them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

import yaml

from medexam.errors import SpecError
from medexam.experiments.report.markdown_parts import render_table
from medexam.experiments.report.tables import TerminalTable
from medexam.experiments.store.stored_run import ExamRun
from medexam.formatting import NONE
from medexam.frozen_model import FrozenModel
from medexam.metrics.counting import Tally
from medexam.metrics.headqa_v1 import headqa_v1_accuracy, headqa_v1_points
from medexam.questions import Language
from medexam.specs import DatasetSpec
from medexam.tables import Table

FILE = resources.files("medexam") / "experiments" / "published" / "headqa_v1_paper.yaml"
EXAMS = ("BIR", "FIR", "PIR", "QIR", "MIR", "EIR")
"""Biology, pharmacology, psychology, chemistry, medicine and nursing: the columns from left to right."""
TEST_YEARS = (2016, 2017)
_EXAM = re.compile(r"Cuaderno_(?P<year>\d{4})_\d_(?P<letter>[BFPQME])")
"""A booklet's name, which ends in the first letter of the exam's acronym."""
AVERAGE = "Avg"
Setting = Literal["unsupervised", "supervised", "other selection"]
Measure = Literal["accuracy", "points"]
SETTINGS: dict[Setting, str] = {
    "unsupervised": "unsupervised setting (all exams)",
    "supervised": "supervised setting (test: 2016 and 2017)",
    "other selection": "another selection than the paper's",
}
MEASURES: tuple[Measure, ...] = ("accuracy", "points")


class PublishedFigure(FrozenModel):
    """One figure as the paper prints it."""

    setting: Setting
    language: Language
    program: str
    """The label of the program that answers as the paper's solver did."""
    measure: Measure
    column: str
    value: float
    """Percent, or points of an exam."""


class HeadQAV1Paper(FrozenModel):
    """What is known of the paper's figures."""

    paper: str
    arxiv: str
    dataset: str
    figures: tuple[PublishedFigure, ...]


@dataclass(frozen=True)
class HeadQAV1Table:
    """One table: the runs of one setting and language under one measure."""

    setting: Setting
    language: Language
    measure: Measure
    runs: tuple[ExamRun, ...]

    @property
    def title(self) -> str:
        """Measure, setting and language."""
        return f"HEAD-QA v1 · {self.measure} · {SETTINGS[self.setting]} · {self.language}"

    def value(self, run: ExamRun, column: str) -> float | None:
        """Percent, or points of an exam; None where the run has scored nothing there."""
        exams = self._exams(run, column)
        return headqa_v1_accuracy(exams) if self.measure == "accuracy" else headqa_v1_points(exams)

    def scored(self, run: ExamRun) -> int:
        """Questions of a run that are scored here."""
        return sum(exam.n for exam in self._exams(run, AVERAGE))

    def _exams(self, run: ExamRun, column: str) -> list[Tally]:
        """What came of each exam of a column that has a scored question."""
        found = []
        for name, scores in run.metrics.by_exam.items():
            known = _EXAM.fullmatch(name)
            if known is None or not scores.n or (self.setting == "supervised" and int(known["year"]) not in TEST_YEARS):
                continue
            if column in (AVERAGE, f"{known['letter']}IR"):
                found.append(Tally(right=scores.right, wrong=scores.wrong, unanswered=scores.unanswered))
        return found

    def published(self, run: ExamRun, column: str) -> float | None:
        """The paper's figure beside a cell; None where none is known."""
        wanted = (self.setting, self.language, run.program, self.measure, column)
        for known in load_headqa_v1_paper().figures:
            if (known.setting, known.language, known.program, known.measure, known.column) == wanted:
                return known.value
        return None


@cache
def load_headqa_v1_paper() -> HeadQAV1Paper:
    """The figures of the data file."""
    return HeadQAV1Paper.model_validate(yaml.safe_load(FILE.read_text(encoding="utf-8")))


def headqa_v1_tables(runs: Sequence[ExamRun]) -> list[HeadQAV1Table]:
    """A table for each setting, language and measure that `runs` have something for.

    Raises `SpecError` if a run asked another data set than HEAD-QA v1.
    """
    others = [run for run in runs if run.record.cell.dataset.name != load_headqa_v1_paper().dataset]
    if others:
        raise SpecError(
            f"--layout headqa-v1 prints tables of headqa_v1, and run {others[0].record.run_id} asked "
            f"{others[0].record.cell.dataset.name}: name runs of headqa_v1 alone, or leave --layout out"
        )
    tables = []
    for setting in SETTINGS:
        inside = [run for run in runs if setting in _settings(run.record.cell.dataset)]
        for language in dict.fromkeys(run.record.cell.dataset.language for run in inside):
            own = tuple(run for run in inside if run.record.cell.dataset.language == language)
            tables += [HeadQAV1Table(setting, language, measure, own) for measure in MEASURES]
    return tables


def headqa_v1_table(table: HeadQAV1Table) -> Table:
    """The table in words, with one decimal as the paper has it; behind each run's figures the paper's, where known."""
    columns = (*EXAMS, AVERAGE)
    rows = []
    for run in table.runs:
        name = run.program if run.model is None else f"{run.program} · {run.model}"
        rows.append((name, *(_text(table, run, column) for column in columns), f"{table.scored(run):,}"))
    return Table(table.title, ("Solver", *columns, "n"), tuple(rows))


def headqa_v1_legend(table: HeadQAV1Table) -> str:
    """How the table is read."""
    if table.measure == "accuracy":
        text = "Percent: the mean of the exams' accuracies, each rounded to three decimals."
    else:
        text = "3 right - wrong of an exam, averaged over the exams."
    text += " Avg: over all exams."
    if any(table.published(run, column) is not None for run in table.runs for column in (*EXAMS, AVERAGE)):
        text += f" In brackets: the figures of the paper (arXiv {load_headqa_v1_paper().arxiv})."
    if any(run.record.cell.dataset.limit is not None for run in table.runs):
        text += " Runs of fewer questions than the exams have (n) cannot be compared in points."
    if not all(run.complete for run in table.runs):
        text += " *: questions of the run are pending."
    return text


def build_headqa_v1_tables(tables: Sequence[HeadQAV1Table]) -> list[TerminalTable]:
    """The tables, ready for `Console.print`."""
    return [TerminalTable(headqa_v1_table(table), headqa_v1_legend(table)) for table in tables]


def render_headqa_v1_report(tables: Sequence[HeadQAV1Table], notes: Sequence[str] = ()) -> str:
    """The tables and `notes` on them as Markdown."""
    parts = [
        f"## {table.title}\n\n{render_table(headqa_v1_table(table))}\n\n{headqa_v1_legend(table)}" for table in tables
    ]
    return "\n\n".join([*parts, *notes]) + "\n"


def headqa_v1_document(tables: Sequence[HeadQAV1Table]) -> list[dict[str, Any]]:
    """What `--json` prints, JSON-ready: a value and the paper's for each cell, None where there is none."""
    return [
        {
            "setting": table.setting,
            "language": table.language,
            "measure": table.measure,
            "arxiv": load_headqa_v1_paper().arxiv,
            "rows": [
                {
                    "run_id": run.record.run_id,
                    "program": run.program,
                    "model": run.model,
                    "mixed": run.mixed,
                    "n": table.scored(run),
                    "values": {column: table.value(run, column) for column in (*EXAMS, AVERAGE)},
                    "published": {column: table.published(run, column) for column in (*EXAMS, AVERAGE)},
                }
                for run in table.runs
            ],
        }
        for table in tables
    ]


def _settings(dataset: DatasetSpec) -> tuple[Setting, ...]:
    """In which of the paper's settings a run of these questions stands."""
    narrowed = dataset.years or dataset.disciplines or dataset.option_counts or dataset.images != "all"
    if narrowed or dataset.split not in ("all", "test"):
        return ("other selection",)
    return ("unsupervised", "supervised") if dataset.split == "all" else ("supervised",)


def _text(table: HeadQAV1Table, run: ExamRun, column: str) -> str:
    value, known = table.value(run, column), table.published(run, column)
    if value is None:
        return NONE
    return f"{value:.1f}{'' if run.complete else '*'}" + ("" if known is None else f" ({known:.1f})")
