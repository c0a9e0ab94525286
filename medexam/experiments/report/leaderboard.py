"""Models over benchmarks: one score each, ranked only where all answered the same questions, and what is missing.

A column is a data set, its language and the questions that were asked: runs on other questions have a column of their
own. A row is a model; it is a program and a model if a model answered the same questions by several programs.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from medexam.experiments.compare.protocols import read_protocol
from medexam.experiments.report.markdown import render_latex, render_markdown
from medexam.experiments.report.shown import Block, Displayed
from medexam.experiments.store.stored_run import StoredRun, tell_models_apart
from medexam.measures.results import Measure
from medexam.measures.shown import name_measure
from medexam.specs.identity import digest
from medexam.tables import NONE, Table, decimal, percent, with_interval

_CAPTION = (
    "Accuracy, or the measure that a benchmark is known by, percent, in brackets 95 % intervals. Mean rank: over all "
    "columns, among the rows that have a whole score in each; it does not show whether two rows differ: `medexam "
    "compare` tests that. *: pending questions or mixed models, so not ranked."
)
_NUMBERS_CAPTION = (
    "Protocol: digest of all that can change the number, the model and the harness's version apart; equal digests "
    "mean equal protocols. `medexam report RUN --protocol` shows its lines. Date: when the run was last asked."
)


@dataclass(frozen=True, repr=False)
class Leaderboard(Displayed):
    """The rows, the best mean rank first, those without one last."""

    columns: list[str]
    rows: list[dict[str, Any]]
    """`name`, `mean_rank` (1 is the best; None without a whole score in every column), the `missing` columns, and
    `scores` by column; a column is left out if the row has none. Scores are fractions of 1."""
    notes: list[str]
    """What a reader should know, such as runs that are left out."""

    @property
    def tables(self) -> list[Table]:
        """The board, and a table of its numbers with their dates and protocols."""
        texts: list[list[str]] = []
        best, numbers = set[tuple[int, int]](), list[tuple[str, ...]]()
        for at, row in enumerate(self.rows):
            texts.append([row["name"], decimal(row["mean_rank"])])
            for place, column in enumerate(self.columns, 2):
                score = row["scores"].get(column)
                is_whole = column not in row["missing"]
                mark = "" if is_whole or score is None or score["value"] is None else "*"
                text = NONE if score is None else with_interval(f"{percent(score['value'])}{mark}", score["interval"])
                texts[-1].append(text)
                peers = [each["scores"][column]["value"] for each in self.rows if column not in each["missing"]]
                if is_whole and len(peers) > 1 and score["value"] == max(peers) > 0:
                    best.add((at, place))
                if score is not None:
                    words = (score[name] for name in ("program", "measure", "protocol", "date"))
                    numbers.append((row["name"], column, *words, f"{score['n']:,}", text))
        headers = ("Model", "Mean rank", *self.columns)
        board = Table("Leaderboard", headers, tuple(map(tuple, texts)), frozenset(best), caption=_CAPTION)
        headers = ("Model", "Benchmark", "Program", "Measure", "Protocol", "Date", "n", "Score")
        return [board, Table("Numbers", headers, tuple(numbers), text_columns=6, caption=_NUMBERS_CAPTION)]

    @property
    def lines(self) -> list[str]:
        """Which scores are missing, and the notes."""
        rows = (row for row in self.rows if row["missing"])
        return [*(f"{row['name']} has no whole score in {', '.join(row['missing'])}." for row in rows), *self.notes]

    def blocks(self) -> list[Block]:
        """Show the board and its sentences; the table of its numbers is in the files."""
        return [self.tables[0], *self.lines]

    def markdown(self) -> str:
        """Render everything as Markdown."""
        return render_markdown("Leaderboard", [*self.tables, *self.lines])

    def latex(self) -> str:
        """Render the board in LaTeX; its sentences are comments."""
        return render_latex([*self.lines, self.tables[0]])

    def document(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return asdict(self)


def make_leaderboard(runs: Sequence[StoredRun]) -> Leaderboard:
    """Set stored runs of any benchmarks into one board; of runs that would share a cell, the last that is whole."""
    runs, differences = tell_models_apart(runs)
    notes = [f"{note[0].upper()}{note[1:]}." for note in differences]
    names_by_run = _name_columns(runs)
    columns = list(dict.fromkeys(names_by_run))
    cells: dict[str, dict[str, list[StoredRun]]] = {}
    for run, name, column in zip(runs, _name_rows(runs, names_by_run), names_by_run, strict=True):
        cells.setdefault(name, {}).setdefault(column, []).append(run)
    rows: list[dict[str, Any]] = []
    for name, by_column in cells.items():
        row: dict[str, Any] = {"name": name, "mean_rank": None, "missing": [], "scores": {}}
        for column in columns:
            several = by_column.get(column, [])
            last = max(several, key=lambda run: (_is_whole(run), _date(run), run.record.run_id), default=None)
            if last is not None:
                row["scores"][column] = _score(last)
            if last is None or not _is_whole(last):
                row["missing"].append(column)
            if last is not None and len(several) > 1:
                others = ", ".join(run.record.run_id for run in several if run is not last)
                first = f"{name}, {column}: {last.record.run_id} is shown, the last whole run"
                notes.append(f"{first}; left out: {others}.")
        rows.append(row)
    ranked = [row for row in rows if not row["missing"]]
    if len(ranked) > 1:
        values = np.array([[row["scores"][column]["value"] for column in columns] for row in ranked])
        ties = (values == values[:, None]).sum(axis=1)
        ranks = (values > values[:, None]).sum(axis=1) + (ties + 1) / 2
        for row, mean in zip(ranked, ranks.mean(axis=1).tolist(), strict=True):
            row["mean_rank"] = mean
    rows.sort(key=lambda row: (row["mean_rank"] is None, row["mean_rank"] or 0.0, row["name"]))
    return Leaderboard(columns, rows, notes)


def _is_whole(run: StoredRun) -> bool:
    return run.score is not None and run.complete and not run.mixed


def _date(run: StoredRun) -> str:
    return str(run.environment.get("ended_at") or run.environment.get("started_at") or "")


def _score(run: StoredRun) -> dict[str, Any]:
    """Return a score with how it came about: `protocol` digests that, apart from the model and medexam's version."""
    name, measure = next(((name_measure(name), each) for name, each in run.metrics.measures.items()), (NONE, Measure()))
    protocol = dict(read_protocol(run.record, run.environment))
    del protocol["model"], protocol["harness"]
    return {
        "run_id": run.record.run_id,
        "program": run.program,
        "measure": name,
        "value": measure.value,
        "interval": measure.interval,
        "n": run.metrics.n,
        "status": run.status,
        "protocol": digest(protocol),
        "date": _date(run),
    }


def _name_columns(runs: Sequence[StoredRun]) -> list[str]:
    """Name the column of each run: data set and language, and how many questions, or which, where these differ."""
    keys = [(run.record.cell.dataset.label, frozenset(run.record.questions)) for run in runs]
    names: dict[tuple[str, frozenset[str]], str] = {}
    for label, questions in dict.fromkeys(keys):
        others = {other for other_label, other in keys if other_label == label} - {questions}
        short_digest = f", {digest(sorted(questions))[:6]}" if len(questions) in map(len, others) else ""
        names[label, questions] = f"{label} ({len(questions):,}{short_digest})" if others else label
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
