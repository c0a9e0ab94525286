"""Pictures of stored runs, drawn in memory: what a report, a page and `--plots` show, in the format of a file's ending.

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
from medexam.experiments.report.plots.models_by_year import models_by_year_plot
from medexam.experiments.report.plots.option_scores import reliability_plot, thresholds_plot
from medexam.experiments.report.plots.relevance import relevance_plot
from medexam.experiments.report.plots.strategies import strategies_plot
from medexam.experiments.report.plots.style import Draw, Plot, RunStyle, looks
from medexam.experiments.report.plots.years import years_plot
from medexam.experiments.store.stored_run import ExamRun
from medexam.files import write_whole
from medexam.library_logging import quiet_matplotlib

DPI = 150
ENDINGS = (".png", ".pdf", ".svg")
"""Of the formats that are written."""
_OTHER_ENDINGS = (".eps", ".pgf", ".ps", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".gif")
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
    "models_by_year": models_by_year_plot,
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
    plot: Plot
    """What draws it in another format."""

    def render(self, ending: str) -> bytes:
        """Render it in the format of one of `ENDINGS`."""
        plot = self.plot
        return self.png if ending == ".png" else render_figure(plot.draw, plot.size, plot.caption, ending)


def build_pictures(runs: Sequence[ExamRun]) -> list[PlotPicture]:
    """Build the pictures that `runs`, one or more of one benchmark, have data for.

    Raises `MedExamError` without matplotlib.
    """
    run_looks = looks(runs)
    return [render_plot(plot) for name in runs[0].benchmark.plots if (plot := PLOTS[name](run_looks)) is not None]


def write_pictures(pictures: Iterable[PlotPicture], target: Path, option: str) -> list[Path]:
    """Write pictures and return their paths: into the folder `target` as PNG, or in the format of a file's ending.

    A file named as a picture gets that picture alone; for any other name each picture's is added to it. Raises
    `MedExamError` naming `option` if a file cannot be written, or for a format that is not offered.
    """
    paths = []
    for path, picture in _place(list(pictures), target, option):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, picture.render(path.suffix.lower()))
        except OSError as error:
            raise MedExamError(
                f"cannot write {path}: {error.strerror or error}; choose another folder with {option}"
            ) from None
        paths.append(path)
    return paths


def _place(pictures: Sequence[PlotPicture], target: Path, option: str) -> list[tuple[Path, PlotPicture]]:
    """Return the file of each picture that is written."""
    ending = target.suffix.lower()
    if ending in _OTHER_ENDINGS:
        raise MedExamError(f"{option} {target}: give a folder, or a file that ends in {', '.join(ENDINGS)}")
    if ending not in ENDINGS:
        return [(target / f"{picture.name}.png", picture) for picture in pictures]
    named = [(target, picture) for picture in pictures if picture.name == target.stem]
    return named or [(target.with_stem(f"{target.stem}-{picture.name}"), picture) for picture in pictures]


def render_plot(plot: Plot) -> PlotPicture:
    """Draw the plot; raises `MedExamError` without matplotlib."""
    return PlotPicture(plot.name, plot.caption, render_figure(plot.draw, plot.size, plot.caption), plot)


def render_figure(draw: Draw, size: tuple[float, float], caption: str = "", ending: str = ".png") -> bytes:
    """Render what `draw` draws on an empty figure, in the format of `ending`; `size` is width and height in inches.

    `caption` goes into the file's metadata. Raises `MedExamError` without matplotlib.
    """
    try:
        with quiet_matplotlib():
            import matplotlib.figure
    except ImportError:
        raise MedExamError("plots need matplotlib: pip install 'medexam[plots]'") from None
    # Fonts of type 42, since journals refuse those of type 3; no date, so that equal runs give equal files.
    settings = {**STYLE, "pdf.fonttype": 42, "svg.hashsalt": "medexam"}
    metadata: dict[str, Any] = {"Description": caption} if caption else {}
    if ending == ".pdf":
        metadata = {"Subject": caption, "CreationDate": None}
    elif ending == ".svg":
        metadata["Date"] = None
    with matplotlib.rc_context(settings), quiet_matplotlib():
        figure: Any = matplotlib.figure.Figure(figsize=size, dpi=DPI, layout="constrained")
        draw(figure)
        buffer = io.BytesIO()
        figure.savefig(buffer, format=ending.removeprefix("."), metadata=metadata or None)
    return buffer.getvalue()
