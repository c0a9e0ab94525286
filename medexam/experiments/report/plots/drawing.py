"""Drawing a plot: as a file in the format of its ending, or as an image of the page. Needs the extra `plots`."""

import base64
import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medexam.errors import MedExamError
from medexam.experiments.report.plots.style import Plot
from medexam.files import write_whole
from medexam.process import errors_only
from medexam.text import visible

ENDINGS = (".png", ".pdf", ".svg")
"""Of the formats that are written."""
STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": "medium",
    "figure.titlesize": "large",
    "font.size": 10,
    "legend.fontsize": "small",
    # Fonts of type 42, since journals refuse those of type 3.
    "pdf.fonttype": 42,
    # Names may hold dollar signs, between which matplotlib would read formulas.
    "text.parse_math": False,
}


@errors_only("matplotlib")
def render_plot(plot: Plot, ending: str = ".png", **settings: Any) -> bytes:
    """Draw the plot in the format of one of `ENDINGS`; raises `MedExamError` without matplotlib."""
    try:
        import matplotlib.figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError:
        raise MedExamError("plots need matplotlib: pip install 'medexam[plots]'") from None
    # No date, so that equal runs give equal files.
    metadata: dict[str, dict[str, str | None]] = {
        ".png": {"Description": plot.caption},
        ".pdf": {"Subject": plot.caption, "CreationDate": None},
        ".svg": {"Description": plot.caption, "Date": None},
    }
    style: Any = {**STYLE, "svg.hashsalt": plot.name, **settings}
    buffer = io.BytesIO()
    # Of signs that its fonts lack, it names them.
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")
        figure: Any = matplotlib.figure.Figure(figsize=plot.size, dpi=150)
        plot.draw(figure)
        # A figure that has a layout engine is drawn three times.
        ConstrainedLayoutEngine().execute(figure)
        figure.savefig(buffer, format=ending[1:], metadata=metadata[ending])
    return buffer.getvalue()


def render_svg(plot: Plot) -> str:
    """Draw the plot as the address of an image, for a page that loads nothing."""
    # A name may hold characters that XML does not take.
    svg = visible(render_plot(plot, ".svg", **{"svg.fonttype": "none"}).decode())
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def write_plots(plots: Sequence[Plot], target: Path, option: str) -> list[Path]:
    """Write plots and return their paths: into the folder `target` as PNG, or in the format of a file's ending.

    A file named as a plot gets that plot alone; for any other name each plot's is added to it. Raises `MedExamError`
    naming `option` if a file cannot be written, or for a format that is not offered.
    """
    ending = target.suffix.lower()
    if ending in (".eps", ".pgf", ".ps", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".gif"):
        raise MedExamError(f"{option} {target}: give a folder, or a file that ends in {', '.join(ENDINGS)}")
    files = {target.with_stem(f"{target.stem}-{plot.name}"): plot for plot in plots}
    if ending not in ENDINGS:
        files = {target / f"{plot.name}.png": plot for plot in plots}
    elif alone := [plot for plot in plots if plot.name == target.stem]:
        files = {target: alone[0]}
    for path, plot in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, render_plot(plot, path.suffix.lower()))
        except OSError as error:
            reason = error.strerror or error
            raise MedExamError(f"cannot write {path}: {reason}; choose another folder with {option}") from None
    return list(files)
