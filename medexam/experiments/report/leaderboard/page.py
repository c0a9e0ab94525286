"""The leaderboard as one HTML file that opens from the disk: static, dated, and sorted by a click on a header."""

from datetime import UTC, datetime
from pathlib import Path

from medexam.experiments.report.leaderboard.board import Leaderboard
from medexam.experiments.report.page.document import fill_template
from medexam.experiments.report.shown import write_report

SCRIPTS = ("folds.js", "tables.js", "copying.js")


def write_leaderboard(board: Leaderboard, path: Path) -> None:
    """Write the page; raises `RunFolderError` if that fails."""
    write_report(render_leaderboard(board, datetime.now(UTC).date().isoformat()), path, "--html")


def render_leaderboard(board: Leaderboard, date: str) -> str:
    """Render the page as of `date`."""
    pieces = fill_template(
        "board.html",
        SCRIPTS,
        kind="leaderboard",
        title="Leaderboard",
        about=f"{len(board.rows)} {board.unit} · {len(board.columns)} benchmarks · {date}",
        tables=board.tables,
        lines=board.lines,
    )
    return "".join(pieces)
