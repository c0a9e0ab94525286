"""One look for all pictures of runs: colours, markers, intervals, headings and legends.

The colours are those of Okabe and Ito, which colour blind readers can tell apart; markers tell runs apart without them.
"""

import base64
import io
import textwrap
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medexam.errors import MedExamError
from medexam.experiments.compare.ranking import describe_difference
from medexam.experiments.compare.runs import run_names
from medexam.experiments.report.shown import user_file
from medexam.experiments.store.stored_run import StoredRun
from medexam.measures.results import Interval
from medexam.process import errors_only
from medexam.text import visible

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The palette of Okabe and Ito, without its yellow, which is too pale on white."""
GREY = "#737373"
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
LINES = ("-", "--", "-.", ":")
WIDTH = 9.5
"""Inches of a picture."""
CHANCE: dict[str, Any] = {"color": GREY, "linestyle": (0, (1, 1.5)), "linewidth": 1.4}
"""How the chance level is drawn."""
BARS: dict[str, Any] = {"markersize": 5, "capsize": 2, "elinewidth": 0.9, "linewidth": 1.5}
"""How points with intervals are drawn."""


@dataclass(frozen=True)
class Plot:
    """A picture that is not drawn yet."""

    name: str
    """Name of the file, without its ending."""
    caption: str
    """One or two sentences: what is drawn, of how many questions, and what the intervals are."""
    size: tuple[float, float]
    """Width and height in inches."""
    draw: Callable[[Any], None]
    """Draws on an empty matplotlib figure."""


@dataclass(frozen=True, eq=False)
class RunStyle:
    """One run as it looks in all pictures."""

    run: StoredRun
    name: str
    """What tells the run from the others."""
    line: Mapping[str, Any]
    """Its colour, marker and line style, in matplotlib's words."""

    @property
    def n(self) -> int:
        """How many questions are scored."""
        return self.run.metrics.n


def looks(runs: Sequence[StoredRun]) -> list[RunStyle]:
    """Return the look of each run, in their order.

    Among runs of several models a colour is a model and a marker a strategy, unless two runs would look alike.
    """
    models, programs = [*dict.fromkeys(run.model for run in runs)], [*dict.fromkeys(run.program for run in runs)]
    styles = [(models.index(run.model), programs.index(run.program), 0) for run in runs]
    if len({*models} - {None}) < 2 or len(set(styles)) < len(runs):
        styles = [(at, at, at // len(PALETTE)) for at in range(len(runs))]
    cycles = (("color", PALETTE), ("marker", MARKERS), ("linestyle", LINES))
    lines = [{key: cycle[at % len(cycle)] for (key, cycle), at in zip(cycles, style, strict=True)} for style in styles]
    return [RunStyle(run, name, line) for run, name, line in zip(runs, run_names(runs), lines, strict=True)]


def plan(
    name: str,
    title: str,
    caption: str,
    size: tuple[float, float],
    run_looks: Collection[RunStyle],
    draw: Callable[[Any], None],
    legend: Sequence[tuple[Mapping[str, Any], str]] = (),
) -> Plot:
    """Plan a picture between a heading, with what all runs share, and a legend of lines with their labels.

    The heading says how the questions of the runs differ.
    """
    width, height = size
    labels = [wrap(label, 64) for _, label in legend]
    longest = max((len(line) for label in labels for line in label.split("\n")), default=0)
    columns = max(1, min(len(labels), int(118 // (longest + 9)), 4))
    runs = [look.run for look in run_looks]
    cells = [(run.model, run.record.cell.dataset.name, run.record.cell.dataset.language) for run in runs]
    shared = " ".join(str(value) for value, *others in zip(*cells, strict=True) if value and {*others} <= {value})

    def draw_all(figure: Any) -> None:
        from matplotlib.lines import Line2D

        draw(figure)
        heading = [f"{title} · {shared}" if shared else title]
        if (difference := describe_difference(runs)) is not None:
            heading.append(f"Not ranked: the runs asked {difference}.")
        figure.suptitle("\n".join(wrap(line, int(9 * width)) for line in heading))
        samples = [Line2D([], [], **line) for line, _ in legend]
        if samples:
            figure.legend(samples, labels, loc="outside lower center", ncols=columns, frameon=False, handlelength=3)

    lines = sum(label.count("\n") + 1 for label in labels)
    return Plot(name, caption, (width, height + 0.2 * -(-lines // columns)), draw_all)


def wrap(text: str, width: int) -> str:
    """Break `text` into lines of at most `width` characters, at blanks and hyphens first."""
    return "\n".join(textwrap.wrap(text, width)) or text


def span(counts: Collection[int]) -> str:
    """Write the counts as `6,765`, or as the range `1,020 to 6,765`."""
    low, high = min(counts), max(counts)
    return f"{high:,}" if low == high else f"{low:,} to {high:,}"


def describe_n(counts: Collection[int]) -> str:
    """Describe the scored questions of each run as `n = 6,765 questions a run`."""
    return f"n = {span(counts)} questions{' a run' * (len(counts) > 1)}"


def with_bars(points: Sequence[tuple[float, Interval | None]]) -> tuple[list[float], list[list[float]]]:
    """Return fractions of 1 in percent, and how far the ends of their intervals are below and above."""
    ends = [(100 * value, *(100 * end for end in interval or (value, value))) for value, interval in points]
    bars = [[max(0.0, value - low) for value, low, _ in ends], [max(0.0, high - value) for value, _, high in ends]]
    return [value for value, _, _ in ends], bars


def split_panels(figure: Any, count: int, columns: int) -> Any:
    """Split the figure into `count` panels of the same axes, `columns` side by side."""
    grid = figure.subplots(-(-count // columns), columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in grid[count:]:
        axes.set_visible(False)
    for axes in grid[:count]:
        axes.xaxis.set_tick_params(labelbottom=True)
    return grid[:count]


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
        # Letters of formats without dots are measured at their own 72 points an inch.
        figure: Any = matplotlib.figure.Figure(figsize=plot.size, dpi=150 if ending == ".png" else 72)
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
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
        picture = render_plot(plot, path.suffix.lower())
        with user_file(path, option) as draft:
            draft.write_bytes(picture)
    return list(files)
