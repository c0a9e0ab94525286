"""The tables and figures of a paper, as a data file declares them, and what the paper prints there.

It reads the files that ship with the package and knows nothing of stored runs. Another paper is another file.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field

from medexam.errors import SpecError
from medexam.frozen_model import FrozenModel
from medexam.questions import Language
from medexam.text import nearest

PUBLISHED, EXPERIMENTS = (Path(__file__).with_name(name) for name in ("published", "experiments"))

About = Literal[
    "questions", "question_lengths", "question_lengths_by_discipline", "splits", "tokens", "documents", "sentences"
]
"""What an item says of a data set."""


class PaperMeasure(FrozenModel):
    """A measure of the paper's tables."""

    heading: str
    legend: str = ""
    """What a reader should know of it, in sentences."""
    comparable: bool = True
    """Whether the paper's column follows its own definition; else no difference from it is shown."""


class Strategy(FrozenModel):
    """A strategy or system that the paper evaluates."""

    id: str
    """What the rows of `figures` call it."""
    heading: str = ""
    """The paper's short name, for a column; empty takes the id."""
    programs: tuple[str, ...]
    """Labels of the programs that ask as the paper did; `*` stands for any end."""
    stand_in: str = ""
    """What of today stands for the paper's system, in a sentence; empty if it is the same."""


class TableLayout(FrozenModel):
    """One of the paper's tables.

    It takes the runs of the named `kinds` or `splits`, and all runs if it names none.
    """

    number: int | None = None
    """The paper's number; None is a table of what the paper's own do not take."""
    title: str
    """What the table holds, in a few words."""
    kinds: tuple[str, ...] = ()
    """Kinds of programs."""
    splits: tuple[str, ...] = ()
    """Splits of the data set; a run of selected questions is of none."""
    others: bool = False
    """Takes the runs that no table names."""
    exams: str = ".*"
    """Pattern of the exams that count here, by the names of their booklets."""
    rows: Literal["models", "runs"] = "models"
    """`models` has a row for each model and measure, and strategies by languages as columns; `runs` has a row for each
    run, and the paper's exams as columns."""
    whole: str = "Avg"
    """Heading of the figure of all exams behind those of each; empty has none."""
    strategies: tuple[Strategy, ...] = ()
    """Those of the paper, its columns from left to right or its rows from the top down."""
    references: tuple[str, ...] = ()
    """Rows of the paper that no run can have, such as those of people."""
    measures: tuple[str, ...]
    """In the order of the figures; a table of runs has one."""

    @property
    def name(self) -> str:
        """The table's number as the paper has it, and its title."""
        return self.title if self.number is None else f"Table {self.number}: {self.title}"

    def strategy(self, program: str) -> Strategy | None:
        """Find the paper's strategy that a program, by its label, is; None if it is none of them."""
        for strategy in self.strategies:
            if any(fnmatchcase(program, label) for label in strategy.programs):
                return strategy
        return None


class Grid(FrozenModel):
    """The figures of one table, in percent or points."""

    columns: tuple[str, ...]
    rows: dict[str, tuple[float | None, ...]]
    """Name of the row -> a figure for each column; None where the paper prints none."""

    def figure(self, row: str, column: str) -> float | None:
        """Return the figure that stands there; None if none does."""
        if row not in self.rows or column not in self.columns:
            return None
        return self.rows[row][self.columns.index(column)]


class PaperItem(FrozenModel):
    """One table or figure of the paper, made anew or listed with its obstacle."""

    title: str
    """What it holds, in a few words."""
    shows: Literal["runs", "years", "correlation", "map", "trained", "round_trip"] | About = "runs"
    """`runs`: the scores of runs, in the paper's layout where it has one. `years`: their accuracy over exam years,
    on one axis. `correlation`: of the best passage's score with being right. All others describe data sets."""
    specs: tuple[str, ...] = ()
    """Shipped specs of the runs."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Keys of these specs that are set unless the user sets them."""
    dataset: dict[str, str | bool] = Field(default_factory=dict)
    """The `dataset` part of a spec, for what describes one."""
    retriever: dict[str, str] = Field(default_factory=dict)
    """The `retriever` part of a spec, for a map of its corpus."""
    part: Literal["sources", "density", "questions"] = "sources"
    """The picture of a map."""
    encoders: tuple[str, ...] = ()
    """Those of the shipped matrix of fine-tuned encoders that are shown."""
    trainings: tuple[str, ...] = ()
    """Those of the matrix that are shown; empty shows all."""
    variants: tuple[str, ...] = ()
    """Those of the matrix that are shown; empty shows all."""
    measure: Literal["f1", "exact_match", "outcomes"] = "f1"
    """`outcomes` counts kinds of predictions."""
    averages: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """A column for each corpus, the mean over the trainings, instead of one for each training: its heading -> the
    matrix's keys that differ there."""
    note: str = ""
    """What a reader should know before making it, in sentences."""
    printed: Grid | None = None
    """What the paper prints of something that has no table's number."""
    obstacle: str = ""
    """Why it cannot be made, or what shows it instead, in a line; empty if `medexam reproduce` makes it."""


class Paper(FrozenModel):
    """A paper, its tables and their figures."""

    layout: str
    """What `--layout` and `medexam reproduce` call it."""
    paper: str
    arxiv: str
    dataset: str
    """Runs on another data set stand beside no figure."""
    only: bool = False
    """Whether runs on another data set are refused."""
    legend: str = ""
    """What a reader should know of all its tables, in sentences."""
    limited: str = ""
    """What a reader should know of runs with a limit, in a sentence."""
    decimals: int = 2
    """Of every figure of a run."""
    languages: tuple[Language, ...] = ()
    models: tuple[str, ...] = ()
    """The rows, from the top down."""
    exams: dict[str, str] = Field(default_factory=dict)
    """Heading -> pattern of the names of its booklets, in the order of the columns."""
    measures: dict[str, PaperMeasure] = Field(default_factory=dict)
    tables: tuple[TableLayout, ...] = ()
    """Those of runs; a paper without any has no layout."""
    figures: dict[int, Grid] = Field(default_factory=dict)
    """Number of a table -> its figures. A row is `MODEL STRATEGY LANGUAGE`, in a table of runs `STRATEGY LANGUAGE`."""
    reproduce: dict[str, PaperItem] = Field(default_factory=dict)
    """What `medexam reproduce` makes or lists: `table-2` and the like, in the order of the list."""

    def takes(self, table: TableLayout, kind: str, split: str | None) -> bool:
        """Return whether a run of this kind of program and split, None for selected questions, stands in `table`."""

        def is_named(layout: TableLayout) -> bool:
            return (not layout.kinds or kind in layout.kinds) and (not layout.splits or split in layout.splits)

        if table.others:
            return not any(is_named(other) for other in self.tables if other.kinds or other.splits)
        return is_named(table)


@dataclass(frozen=True)
class PaperEntry:
    """One table or figure of a paper."""

    paper: Paper
    id: str
    """`table-2` within its paper; empty if the paper has this one alone."""
    item: PaperItem

    @property
    def name(self) -> str:
        """What the command line calls it, such as `PAPER/table-2`."""
        return "/".join(filter(None, (self.paper.layout, self.id)))

    @property
    def number(self) -> int | None:
        """The number of the table; None for a figure."""
        kind, _, number = self.id.partition("-")
        return int(number) if kind == "table" else None

    @property
    def figures(self) -> Grid | None:
        """What the paper prints there; None if it prints no numbers."""
        return self.item.printed if self.number is None else self.paper.figures.get(self.number)

    @property
    def heading(self) -> str:
        """What stands above the table."""
        label = self.id.replace("-", " ").capitalize()
        return f"{label}: {self.item.title}" if label else self.item.title


@cache
def all_papers() -> dict[str, Paper]:
    """Load the papers that ship with the package, by their names."""
    files = sorted(PUBLISHED.glob("*_paper.yaml"))
    papers = [Paper.model_validate(yaml.safe_load(file.read_text(encoding="utf-8"))) for file in files]
    return {paper.layout: paper for paper in papers}


def list_entries() -> list[PaperEntry]:
    """List every table and figure, paper by paper; one with an `obstacle` cannot be made."""
    return [PaperEntry(paper, name, item) for paper in all_papers().values() for name, item in paper.reproduce.items()]


def find_paper_entry(name: str) -> PaperEntry:
    """Find the entry of that name; raises `SpecError` naming the nearest ones if there is none."""
    entries = {entry.name: entry for entry in list_entries()}
    if name not in entries:
        near = nearest(name, entries, most=3)
        hint = f"did you mean {near}? " if near else ""
        raise SpecError(f"nothing is called {name!r}: {hint}`medexam reproduce --list` names all tables and figures")
    return entries[name]
