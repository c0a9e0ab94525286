"""Boards: runs by the weighted mean of their groups of questions, for `medexam report --weight`."""

from collections.abc import Mapping, Sequence
from typing import Any

from medexam.errors import SpecError
from medexam.experiments.compare.ranking import rivals, why_unranked
from medexam.experiments.compare.runs import run_names
from medexam.experiments.store.stored_run import AnyRun
from medexam.metrics.board import Board, weigh
from medexam.tables import Table, percent


def make_boards(runs: Sequence[AnyRun], weights: Mapping[str, float]) -> dict[str, Board]:
    """Rank the runs of one benchmark by the weighted mean of their groups, on a board by measure; empty without
    weights.

    Raises `SpecError` for weights that fit no group, and for runs that asked different questions.
    """
    if not weights:
        return {}
    benchmark = runs[0].benchmark
    if not benchmark.board:
        raise SpecError("--weight ranks runs that answer in words; these answer exams: leave it out")
    if reason := why_unranked(runs):
        raise SpecError(f"--weight ranks runs of the same questions: leave it out, or name such runs. {reason}")
    names = run_names(runs)
    unranked = {name for name, rival in zip(names, rivals(runs), strict=True) if not rival}
    return {
        measure: weigh(
            {name: benchmark.group_scores(run.metrics, measure) for name, run in zip(names, runs, strict=True)},
            weights,
            unranked,
        )
        for measure in benchmark.board
    }


def board_tables(runs: Sequence[AnyRun], boards: Mapping[str, Board], weights: Mapping[str, float]) -> list[Table]:
    """Build a table for each board, under its measure."""
    name = runs[0].benchmark.name_measure
    return [_board_table(name(measure), board, weights) for measure, board in boards.items()]


def standings(runs: Sequence[AnyRun], boards: Mapping[str, Board]) -> list[dict[str, Any]]:
    """List what `--json` says of each run on boards: `{"board": {measure: weighted mean}}`; nothing without boards."""
    if not boards:
        return [{} for _ in runs]
    weighted = {measure: {row.run: row.weighted for row in board.rows} for measure, board in boards.items()}
    return [{"board": {measure: means[name] for measure, means in weighted.items()}} for name in run_names(runs)]


def _board_table(name: str, board: Board, weights: Mapping[str, float]) -> Table:
    groups = list(board.rows[0].scores)
    rows = [(row.run, percent(row.weighted), *(percent(row.scores[group]) for group in groups)) for row in board.rows]
    if len(rows) > 1:
        rows.append(("Mean of the runs", percent(board.mean), *("" for _ in groups)))
    headers = ("Run", "Weighted", *(f"{group} ({weights[group]:g})" for group in groups))
    return Table(f"Board: {name}", headers, tuple(rows))
