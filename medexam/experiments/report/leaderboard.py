"""Models over benchmarks: one score each, ranked only where all answered the same questions, and what is missing.

A column is a data set, its language and the questions that were asked: runs on other questions have a column of their
own. A row is a model; it is a program and a model if a model answered the same questions by several programs.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from medexam.experiments.report.latex import render_latex
from medexam.experiments.report.markdown import render_markdown
from medexam.experiments.report.shown import Block, Displayed, write_report
from medexam.experiments.store.protocol import digest_of, read_protocol
from medexam.experiments.store.stored_run import StoredRun, tell_models_apart
from medexam.measures.results import Measure
from medexam.measures.shown import name_measure
from medexam.tables import NONE, Table, decimal, percent, with_interval
from medexam.text import count_of

_CAPTION = (
    "Accuracy, or the measure that a benchmark is known by, percent, in brackets 95 % intervals. Mean rank: over all "
    "columns, among the rows that have a whole score in each; it does not show whether two rows differ: `medexam "
    "compare` tests that. *: pending questions or mixed models, so not ranked."
)
_NUMBERS_CAPTION = (
    "Protocol: digest of all that can change the number, the model and the harness's version apart; equal digests "
    "mean equal protocols. `medexam report RUN --protocol` shows its lines. Date: when the run was last asked."
)


_NUMBERS = ("measure", "protocol", "date")


@dataclass(frozen=True)
class BoardRow:
    """One model, or one program and model."""

    name: str
    runs: Mapping[str, StoredRun]
    """Column -> the run that its score is of; a column is left out if it has none."""
    mean_rank: float | None
    """1 is the best; None for a row without a whole score in every column."""
    missing: tuple[str, ...]
    """Columns without a whole score."""


@dataclass(frozen=True, repr=False)
class Leaderboard(Displayed):
    """The rows, the best mean rank first, those without one last."""

    columns: tuple[str, ...]
    rows: tuple[BoardRow, ...]
    notes: tuple[str, ...]
    """What a reader should know, such as runs that are left out."""

    @property
    def tables(self) -> list[Table]:
        """The board, and a table of its numbers with their dates and protocols."""
        headers = ("Model", "Mean rank", *self.columns)
        rows, best = [], set[tuple[int, int]]()
        for row in self.rows:
            scores = (_write(row.runs[column]) if column in row.runs else NONE for column in self.columns)
            rows.append((row.name, decimal(row.mean_rank), *scores))
        for place, column in enumerate(self.columns, 2):
            whole = {at: row.runs[column].score for at, row in enumerate(self.rows) if column not in row.missing}
            highest = max(filter(None, whole.values()), default=None)
            best |= {(at, place) for at, score in whole.items() if score == highest and len(whole) > 1}
        board = Table("Leaderboard", headers, tuple(rows), frozenset(best), caption=_CAPTION)
        headers = ("Model", "Benchmark", "Program", *(name.capitalize() for name in _NUMBERS), "n", "Score")
        numbers = tuple(
            (row.name, column, run.program, *(str(score[name]) for name in _NUMBERS), f"{score['n']:,}", _write(run))
            for row in self.rows
            for column, run in row.runs.items()
            for score in [_score_document(run)]
        )
        return [board, Table("Numbers", headers, numbers, text_columns=6, caption=_NUMBERS_CAPTION)]

    @property
    def lines(self) -> list[str]:
        """Which scores are missing, and the notes."""
        missing = (f"{row.name} has no whole score in {', '.join(row.missing)}." for row in self.rows if row.missing)
        return [*missing, *self.notes]

    def blocks(self) -> list[Block]:
        """Show the board and its sentences; the table of its numbers is on the page and in the files."""
        return [self.tables[0], *self.lines]

    def markdown(self) -> str:
        """Render everything as Markdown."""
        return render_markdown("Leaderboard", [*self.tables, *self.lines])

    def latex(self) -> str:
        """Render the board in LaTeX; its sentences are comments."""
        return render_latex([*self.lines, self.tables[0]])

    def write_page(self, path: Path) -> None:
        """Write the page, of today; raises `RunFolderError` if that fails."""
        from medexam.experiments.report.page.document import fill_template

        rows = count_of(len(self.rows), "row")
        about = f"{rows} · {count_of(len(self.columns), 'benchmark')} · {datetime.now(UTC).date().isoformat()}"
        head = {"kind": "leaderboard", "title": "Leaderboard", "about": about, "findings": ()}
        write_report("".join(fill_template(**head, tables=self.tables, lines=self.lines)), path, "--html")

    def document(self) -> dict[str, Any]:
        """Return what `--json` prints; scores are fractions of 1."""
        return {
            "columns": list(self.columns),
            "rows": [
                {
                    "name": row.name,
                    "mean_rank": row.mean_rank,
                    "missing": list(row.missing),
                    "scores": {column: _score_document(run) for column, run in row.runs.items()},
                }
                for row in self.rows
            ],
            "notes": list(self.notes),
        }


def make_leaderboard(runs: Sequence[StoredRun]) -> Leaderboard:
    """Set stored runs of any benchmarks into one board; of runs that would share a cell, the last that is whole."""
    runs, differences = tell_models_apart(runs)
    notes = [f"{note[0].upper()}{note[1:]}." for note in differences]
    names_by_run = _name_columns(runs)
    columns = tuple(dict.fromkeys(names_by_run))
    cells: dict[str, dict[str, list[StoredRun]]] = {}
    for run, name, column in zip(runs, _name_rows(runs, names_by_run), names_by_run, strict=True):
        cells.setdefault(name, {}).setdefault(column, []).append(run)
    chosen: dict[str, dict[str, StoredRun]] = {}
    for name, by_column in cells.items():
        for column in filter(by_column.__contains__, columns):
            last = max(by_column[column], key=lambda run: (_is_whole(run), _date(run), run.record.run_id))
            chosen.setdefault(name, {})[column] = last
            if others := ", ".join(run.record.run_id for run in by_column[column] if run is not last):
                notes.append(
                    f"{name}, {column}: {last.record.run_id} is shown, the last whole run; left out: {others}."
                )
    return Leaderboard(columns, tuple(_rank(chosen, columns)), tuple(notes))


def _rank(runs_by_row: Mapping[str, Mapping[str, StoredRun]], columns: Sequence[str]) -> list[BoardRow]:
    """Rank the rows that have a whole score in every column among each other."""
    missing = {
        name: tuple(column for column in columns if column not in runs or not _is_whole(runs[column]))
        for name, runs in runs_by_row.items()
    }
    ranked = [name for name in runs_by_row if not missing[name]]
    ranks: dict[str, list[float]] = {name: [] for name in runs_by_row}
    for column in columns if len(ranked) > 1 else ():
        scores = {name: runs_by_row[name][column].score or 0.0 for name in ranked}
        for name, score in scores.items():
            better = sum(other > score for other in scores.values())
            ranks[name].append(better + (sum(other == score for other in scores.values()) + 1) / 2)
    rows = [
        BoardRow(name, runs, statistics.fmean(ranks[name]) if ranks[name] else None, missing[name])
        for name, runs in runs_by_row.items()
    ]
    return sorted(rows, key=lambda row: (row.mean_rank is None, row.mean_rank or 0.0, row.name))


def _is_whole(run: StoredRun) -> bool:
    """Return whether the run's score is one model's, on all of its questions."""
    return run.score is not None and run.complete and not run.mixed


def _measure(run: StoredRun) -> tuple[str, Measure]:
    """Return what the run is known by."""
    return next(((name_measure(name), measure) for name, measure in run.metrics.measures.items()), (NONE, Measure()))


def _write(run: StoredRun) -> str:
    measure = _measure(run)[1]
    text = percent(measure.value)
    if measure.value is None or _is_whole(run):
        return with_interval(text, measure.interval)
    return f"{text}* {with_interval('', measure.interval)}".strip()


def _date(run: StoredRun) -> str:
    return str(run.environment.get("ended_at") or run.environment.get("started_at") or "")


def _score_document(run: StoredRun) -> dict[str, Any]:
    """Return a score with how it came about: `protocol` digests that, apart from the model and medexam's version."""
    name, measure = _measure(run)
    protocol = dict(read_protocol(run.record, run.environment))
    del protocol["model"], protocol["harness"]
    return {
        "run_id": run.record.run_id,
        "measure": name,
        "value": measure.value,
        "interval": measure.interval,
        "n": run.metrics.n,
        "status": run.status,
        "protocol": digest_of(protocol),
        "date": _date(run),
    }


def _name_columns(runs: Sequence[StoredRun]) -> list[str]:
    """Name the column of each run: data set and language, and how many questions, or which, where these differ."""
    keys = [(run.record.cell.dataset.label, frozenset(run.record.questions)) for run in runs]
    names: dict[tuple[str, frozenset[str]], str] = {}
    for label, questions in dict.fromkeys(keys):
        others = {other for other_label, other in keys if other_label == label} - {questions}
        digest = f", {digest_of(sorted(questions))[:6]}" if len(questions) in map(len, others) else ""
        names[label, questions] = f"{label} ({len(questions):,}{digest})" if others else label
    return [names[key] for key in keys]


def _name_rows(runs: Sequence[StoredRun], columns: Sequence[str]) -> list[str]:
    """Name the row of each run: its model, or program and model if a model answered a column by several programs."""
    programs: dict[tuple[str | None, str], set[str]] = {}
    for run, column in zip(runs, columns, strict=True):
        programs.setdefault((run.model, column), set()).add(run.program)
    by_model = all(len(several) == 1 for (model, _), several in programs.items() if model is not None)
    return [
        run.program if run.model is None else run.model if by_model else f"{run.program} {run.model}" for run in runs
    ]
