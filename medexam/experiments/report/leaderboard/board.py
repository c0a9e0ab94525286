"""Models over benchmarks: one score each, ranked only where all answered the same questions, and what is missing.

A column is a data set, its language and the questions that were asked: runs on other questions have a column of their
own. A row is a model; it is a program and a model if a model answered the same questions by several programs.
"""

import hashlib
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from medexam.experiments.report.escaping import heading
from medexam.experiments.report.latex import render_latex
from medexam.experiments.report.markdown import captioned, join_markdown
from medexam.experiments.report.shown import Block, Displayed
from medexam.experiments.store.protocol import digest_of, read_protocol
from medexam.experiments.store.stored_run import AnyRun, tell_models_apart
from medexam.metrics.results import Interval
from medexam.tables import NONE, Captioned, Table, decimal, percent, with_interval

_CAPTION = (
    "Accuracy, or the measure that a benchmark is known by, percent, in brackets 95 % intervals. Mean rank and mean "
    "z: over all columns, among the rows that have a whole score in each; z is the distance from their mean in "
    "standard deviations. They do not show whether two rows differ: `medexam compare` tests that. *: pending "
    "questions or mixed models, so not ranked."
)
_NUMBERS_CAPTION = (
    "Protocol: digest of all that can change the number, the model and the harness's version apart; equal digests "
    "mean equal protocols. `medexam report RUN --protocol` shows its lines. Date: when the run was last asked."
)
NAMED = 4
"""Rows that a sentence names."""
_NOT_IN_PROTOCOL = frozenset({"model", "harness"})


@dataclass(frozen=True)
class BoardScore:
    """One number of the board."""

    run: AnyRun
    measure: str
    value: float | None
    """A fraction of 1; None if nothing is scored."""
    interval: Interval | None
    """95 %; None if there is none."""
    protocol: str
    """Digest of how it came about."""
    date: str
    """When the run was last asked, in ISO 8601; empty if that is unknown."""

    @property
    def is_whole(self) -> bool:
        """Whether it is one model's, on all of its questions."""
        return self.value is not None and self.run.complete and not self.run.mixed

    @property
    def text(self) -> str:
        """The number as tables show it."""
        if self.value is None:
            return NONE
        return with_interval(percent(self.value) + ("" if self.is_whole else "*"), self.interval)


@dataclass(frozen=True)
class LeaderboardRow:
    """One model, or one program and model."""

    name: str
    scores: Mapping[str, BoardScore]
    """Column -> its score; a column is left out if it has none."""
    mean_rank: float | None
    """1 is the best; None for a row without a whole score in every column."""
    mean_z: float | None
    """None for such a row, and if no column tells two rows apart."""
    missing: tuple[str, ...]
    """Columns without a whole score."""


@dataclass(frozen=True, repr=False)
class Leaderboard(Displayed):
    """The rows, the best mean rank first, those without one last."""

    columns: tuple[str, ...]
    rows: tuple[LeaderboardRow, ...]
    notes: tuple[str, ...]
    """What a reader should know, such as runs that are left out."""

    @cached_property
    def tables(self) -> list[Captioned]:
        """The board, and a table of its numbers with their dates and protocols."""
        return [(self._board(), _CAPTION), (self._numbers(), _NUMBERS_CAPTION)]

    @property
    def lines(self) -> list[str]:
        """Which scores are missing, a sentence for the rows that miss the same, and the notes."""
        names_by_missing: dict[tuple[str, ...], list[str]] = {}
        for row in self.rows:
            if row.missing:
                names_by_missing.setdefault(row.missing, []).append(row.name)
        missing = [
            f"{self._subject(names)} no whole score in {', '.join(columns)}."
            for columns, names in names_by_missing.items()
        ]
        return [*missing, *self.notes]

    @property
    def unit(self) -> str:
        """What a row is, in the plural."""
        by_program = any(score.run.program in row.name for row in self.rows for score in row.scores.values())
        return "ways of asking" if by_program else "models"

    def _subject(self, names: Sequence[str]) -> str:
        """Name rows with their verb; of more than `NAMED` give the number."""
        if len(names) == 1:
            return f"{names[0]} has"
        if len(names) > NAMED:
            return f"{len(names)} of {len(self.rows)} rows have"
        return f"{', '.join(names[:-1])} and {names[-1]} have"

    def blocks(self) -> list[Block]:
        """Show the board and its sentences; the table of its numbers is on the page and in the files."""
        return [self.tables[0], *self.lines]

    def markdown(self) -> str:
        """Render everything as Markdown."""
        return join_markdown([heading(1, "Leaderboard"), *captioned(self.tables), *self.lines])

    def latex(self) -> str:
        """Render the board in LaTeX; its sentences are comments."""
        return render_latex(self.tables[:1], self.lines)

    def document(self) -> dict[str, Any]:
        """Return what `--json` prints; scores are fractions of 1."""
        return {
            "columns": list(self.columns),
            "rows": [
                {
                    "name": row.name,
                    "mean_rank": row.mean_rank,
                    "mean_z": row.mean_z,
                    "missing": list(row.missing),
                    "scores": {
                        column: {
                            "run_id": score.run.record.run_id,
                            "measure": score.measure,
                            "value": score.value,
                            "interval": score.interval,
                            "n": score.run.metrics.n,
                            "status": score.run.status,
                            "protocol": score.protocol,
                            "date": score.date,
                        }
                        for column, score in row.scores.items()
                    },
                }
                for row in self.rows
            ],
            "notes": list(self.notes),
        }

    def _board(self) -> Table:
        rows, best = [], set[tuple[int, int]]()
        for row in self.rows:
            scores = (row.scores[column].text if column in row.scores else NONE for column in self.columns)
            z = NONE if row.mean_z is None else f"{round(row.mean_z, 2) + 0.0:+.2f}"
            rows.append((row.name, decimal(row.mean_rank), z, *scores))
        for place, column in enumerate(self.columns, 3):
            values = {
                at: row.scores[column].value or 0.0 for at, row in enumerate(self.rows) if column not in row.missing
            }
            if len(values) > 1:
                best |= {(at, place) for at, value in values.items() if value == max(values.values())}
        return Table("Leaderboard", ("Model", "Mean rank", "Mean z", *self.columns), tuple(rows), frozenset(best))

    def _numbers(self) -> Table:
        headers = ("Model", "Benchmark", "Program", "Measure", "Protocol", "Date", "n", "Score")
        rows = tuple(
            (
                *(row.name, column, score.run.program, score.measure, score.protocol, score.date[:10] or NONE),
                *(f"{score.run.metrics.n:,}", score.text),
            )
            for row in self.rows
            for column, score in row.scores.items()
        )
        return Table("Numbers", headers, rows, text_columns=6)


def make_leaderboard(runs: Sequence[AnyRun]) -> Leaderboard:
    """Set stored runs of any benchmarks into one board; of runs that would share a cell, the last that is whole."""
    runs, differences = tell_models_apart(runs)
    notes = [f"{note[0].upper()}{note[1:]}." for note in differences]
    columns = _name_columns(runs)
    cells: dict[tuple[str, str], list[BoardScore]] = {}
    for run, name in zip(runs, _name_rows(runs, columns), strict=True):
        cells.setdefault((name, columns[run.folder.path]), []).append(_score(run))
    names = list(dict.fromkeys(name for name, _ in cells))
    column_names = tuple(dict.fromkeys(columns.values()))
    chosen: dict[str, dict[str, BoardScore]] = {name: {} for name in names}
    for (name, column), scores in cells.items():
        last = max(scores, key=lambda score: (score.is_whole, score.date, score.run.record.run_id))
        chosen[name][column] = last
        if len(scores) > 1:
            others = ", ".join(score.run.record.run_id for score in scores if score is not last)
            notes.append(
                f"{name}, {column}: {last.run.record.run_id} is shown, the last whole run; left out: {others}."
            )
    ordered = {
        name: {column: chosen[name][column] for column in column_names if column in chosen[name]} for name in names
    }
    return Leaderboard(column_names, tuple(_rank(ordered, column_names)), tuple(notes))


def _rank(scores_by_row: Mapping[str, Mapping[str, BoardScore]], columns: Sequence[str]) -> Iterable[LeaderboardRow]:
    """Rank the rows that have a whole score in every column among each other."""
    missing = {
        name: tuple(column for column in columns if column not in scores or not scores[column].is_whole)
        for name, scores in scores_by_row.items()
    }
    ranked = [name for name in scores_by_row if not missing[name]]
    ranks: dict[str, list[float]] = {name: [] for name in ranked}
    distances: dict[str, list[float]] = {name: [] for name in ranked}
    for column in columns:
        values = {name: scores_by_row[name][column].value or 0.0 for name in ranked}
        deviation = statistics.stdev(values.values()) if len(values) > 1 else 0.0
        for name, value in values.items():
            better = sum(other > value for other in values.values())
            equal = sum(other == value for other in values.values())
            ranks[name].append(better + (equal + 1) / 2)
            if deviation:
                distances[name].append((value - statistics.fmean(values.values())) / deviation)
    rows = [
        LeaderboardRow(
            name,
            scores,
            statistics.fmean(ranks[name]) if len(ranked) > 1 and name in ranks else None,
            statistics.fmean(distances[name]) if distances.get(name) else None,
            missing[name],
        )
        for name, scores in scores_by_row.items()
    ]
    return sorted(rows, key=lambda row: (row.mean_rank is None, row.mean_rank or 0.0, row.name))


def _score(run: AnyRun) -> BoardScore:
    metrics = run.metrics
    if run.benchmark.right_or_wrong:
        measure, value, interval = "accuracy", metrics.accuracy, metrics.accuracy_interval
    else:
        name, first = next(iter(metrics.measures.items()), ("none", None))
        measure = run.benchmark.name_measure(name)
        value, interval = (None, None) if first is None else (first.value, first.interval)
    protocol = {
        name: line for name, line in read_protocol(run.record, run.environment).items() if name not in _NOT_IN_PROTOCOL
    }
    date = str(run.environment.get("ended_at") or run.environment.get("started_at") or "")
    return BoardScore(run, measure, value, interval, digest_of(protocol), date)


def _name_columns(runs: Sequence[AnyRun]) -> dict[Any, str]:
    """Name the column of each run, by its folder: data set and language, and the questions where these differ."""
    keys = {run.folder.path: (run.record.cell.dataset.label, frozenset(run.record.questions)) for run in runs}
    sets_by_label: dict[str, list[frozenset[str]]] = {}
    for label, questions in keys.values():
        if questions not in sets_by_label.setdefault(label, []):
            sets_by_label[label].append(questions)

    def name(label: str, questions: frozenset[str]) -> str:
        others = [other for other in sets_by_label[label] if other != questions]
        if not others:
            return label
        if all(len(other) != len(questions) for other in others):
            return f"{label} ({len(questions):,})"
        digest = hashlib.sha256("\n".join(sorted(questions)).encode()).hexdigest()[:6]
        return f"{label} ({len(questions):,}, {digest})"

    return {path: name(*key) for path, key in keys.items()}


def _name_rows(runs: Sequence[AnyRun], columns: Mapping[Any, str]) -> list[str]:
    """Name the row of each run: its model, or program and model if a model answered a column by several programs."""
    programs: dict[tuple[str | None, str], set[str]] = {}
    for run in runs:
        programs.setdefault((run.model, columns[run.folder.path]), set()).add(run.program)
    by_model = all(len(several) == 1 for (model, _), several in programs.items() if model is not None)
    return [
        run.program if run.model is None else run.model if by_model else f"{run.program} {run.model}" for run in runs
    ]
