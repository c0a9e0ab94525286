"""Pictures of stored runs, drawn in memory: what a report, a page and the folder of `--plots` show.

Needs matplotlib, which comes with the extra `plots`.
"""

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medexam.errors import MedExamError
from medexam.experiments.report.plots.disciplines import disciplines_plot
from medexam.experiments.report.plots.flips import flips_plot
from medexam.experiments.report.plots.option_scores import reliability_plot, thresholds_plot
from medexam.experiments.report.plots.relevance import relevance_plot
from medexam.experiments.report.plots.strategies import strategies_plot
from medexam.experiments.report.plots.style import Draw, Plot, RunStyle, looks
from medexam.experiments.report.plots.years import years_plot
from medexam.experiments.store.stored_run import ExamRun
from medexam.files import write_whole
from medexam.library_logging import quiet_matplotlib

DPI = 150
STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": "medium",
    "figure.titlesize": "large",
    "font.size": 10,
    "legend.fontsize": "small",
    # Names may hold dollar signs, between which matplotlib would read formulas.
    "text.parse_math": False,
}
PLOTS: dict[str, Callable[[Sequence[RunStyle]], Plot | None]] = {
    "strategies": strategies_plot,
    "years": years_plot,
    "disciplines": disciplines_plot,
    "flips": flips_plot,
    "reliability": reliability_plot,
    "thresholds": thresholds_plot,
    "relevance": relevance_plot,
}
"""By the names that a benchmark lists."""


@dataclass(frozen=True)
class PlotPicture:
    """One picture and what it shows."""

    name: str
    """Name of the file, without its ending."""
    caption: str
    """One or two sentences: what is drawn, of how many questions, and what the intervals are."""
    png: bytes


def build_pictures(runs: Sequence[ExamRun]) -> list[PlotPicture]:
    """Build the pictures that `runs`, one or more of one benchmark, have data for.

    Raises `MedExamError` without matplotlib.
    """
    run_looks = looks(runs)
    return [render_plot(plot) for name in runs[0].benchmark.plots if (plot := PLOTS[name](run_looks)) is not None]


def write_pictures(pictures: Iterable[PlotPicture], folder: Path, option: str) -> list[Path]:
    """Write pictures into `folder` and return their paths. Raises `MedExamError` naming `option` if it cannot be
    written.
    """
    paths = []
    for picture in pictures:
        path = folder / f"{picture.name}.png"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, picture.png)
        except OSError as error:
            raise MedExamError(f"cannot write {path}: {error}; choose another folder with {option}") from None
        paths.append(path)
    return paths


def render_plot(plot: Plot) -> PlotPicture:
    """Draw the plot; raises `MedExamError` without matplotlib."""
    return PlotPicture(plot.name, plot.caption, render_figure(plot.draw, plot.size, plot.caption))


def render_png(draw: Draw, size: tuple[float, float], caption: str = "") -> bytes:
    """Render the PNG of what `draw` draws on a single pair of axes, as `render_figure` makes it."""
    return render_figure(lambda figure: draw(figure.add_subplot()), size, caption)


def render_figure(draw: Draw, size: tuple[float, float], caption: str = "") -> bytes:
    """Render the PNG of what `draw` draws on an empty figure; `size` is its width and height in inches.

    `caption` goes into the file's metadata. Raises `MedExamError` without matplotlib.
    """
    try:
        with quiet_matplotlib():
            from matplotlib import rc_context
            from matplotlib.figure import Figure
    except ImportError:
        raise MedExamError("plots need matplotlib: pip install 'medexam[plots]'") from None
    buffer = io.BytesIO()
    with rc_context(STYLE), quiet_matplotlib():
        figure: Any = Figure(figsize=size, dpi=DPI, layout="constrained")
        draw(figure)
        figure.savefig(buffer, format="png", metadata={"Description": caption} if caption else None)
    return buffer.getvalue()
