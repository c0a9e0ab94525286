"""The HEAD-QA v2 paper's tables of results: how they are laid out, and the figures in them that have a known source.

It reads the data file that ships with the package and knows nothing of stored runs.
"""

from functools import cache
from importlib import resources
from typing import Literal, Self

import yaml
from pydantic import Field, model_validator

from medexam.frozen_model import FrozenModel
from medexam.questions import Language

Measure = Literal["accuracy", "exam_score", "unanswered_ratio"]
FILE = resources.files("medexam") / "experiments" / "published" / "headqa_v2_paper.yaml"


class Strategy(FrozenModel):
    """A strategy that the paper evaluates."""

    id: str
    heading: str
    """The paper's short name, for a column."""
    programs: tuple[str, ...]
    """Labels of the programs that ask as the paper did."""


class TableLayout(FrozenModel):
    """One of the paper's tables."""

    id: str
    number: int | None = None
    """The paper's number; None where it is not known for certain."""
    title: str
    rows: Literal["measures", "disciplines"] = "measures"
    """What each model's rows are; strategies and languages stand side by side."""
    kinds: tuple[str, ...] = ()
    """Kinds of programs that stand here; without any, all that no other table names, and with disciplines all."""
    strategies: tuple[Strategy, ...] = ()
    """Those of the paper, its columns from left to right."""
    measures: tuple[Measure, ...]
    """Rows of each model, from the top down; below its disciplines, of all of them."""


class Figure(FrozenModel):
    """One figure as the paper prints it."""

    table: int
    """The number of the table that prints it."""
    model: str
    strategy: str
    """The id of a strategy."""
    language: Language
    measure: Measure
    percent: float = Field(ge=-100 / 3, le=100)


class Paper(FrozenModel):
    """The paper, its tables and what is known of their figures."""

    paper: str
    arxiv: str
    dataset: str
    """Runs on another data set stand beside no figure."""
    languages: tuple[Language, ...]
    models: tuple[str, ...]
    """The rows, from the top down."""
    tables: tuple[TableLayout, ...]
    figures: tuple[Figure, ...] = ()

    @model_validator(mode="after")
    def _figures_have_a_place(self) -> Self:
        places = {(table.number, strategy.id) for table in self.tables for strategy in table.strategies}
        for figure in self.figures:
            if (figure.table, figure.strategy) not in places:
                raise ValueError(f"no table {figure.table} has a strategy {figure.strategy!r}")
        return self

    def published(self, model: str | None, strategy: str | None, language: str, measure: Measure) -> float | None:
        """The paper's figure as a fraction of 1; None where none is known."""
        wanted = (model, strategy, language, measure)
        for figure in self.figures:
            if (figure.model, figure.strategy, figure.language, figure.measure) == wanted:
                return figure.percent / 100
        return None


@cache
def load_paper() -> Paper:
    """The paper of the data file."""
    return Paper.model_validate(yaml.safe_load(FILE.read_text(encoding="utf-8")))
