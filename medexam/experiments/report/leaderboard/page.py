"""The leaderboard as one HTML file that opens from the disk: static, dated, and sorted by a click on a header."""

from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from medexam.experiments.report.leaderboard.board import Leaderboard
from medexam.experiments.report.page.document import ASSETS, STYLE, policy_hash, read_asset
from medexam.experiments.report.shown import write_report
from medexam.version import __version__

SCRIPT = "tables.js"


def write_leaderboard(board: Leaderboard, path: Path) -> None:
    """Write the page; raises `RunFolderError` if that fails."""
    write_report(render_leaderboard(board, datetime.now(UTC).date().isoformat()), path, "--html")


def render_leaderboard(board: Leaderboard, date: str) -> str:
    """Render the page as of `date`."""
    style, script = read_asset(STYLE), read_asset(SCRIPT)
    templates = Environment(
        loader=PackageLoader("medexam.experiments.report.page", ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template("board.html").render(
        date=date,
        version=__version__,
        policy=(
            f"default-src 'none'; style-src {policy_hash(style)}; script-src {policy_hash(script)}; base-uri 'none'; "
            "form-action 'none'"
        ),
        style=Markup(style),  # noqa: S704 - the package's own file
        script=Markup(script),  # noqa: S704 - the package's own file
        about=f"{len(board.rows)} models · {len(board.columns)} benchmarks · {date}",
        tables=board.tables,
        lines=board.lines,
    )
