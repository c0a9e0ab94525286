"""The picture of a corpus map: passages by source, questions by discipline, and each discipline over the passages.

Needs matplotlib; it draws the places that it is given and computes nothing but densities. Two sets of hues that colour
blind readers can tell apart keep sources and disciplines apart, and sources differ by their lines as well.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from medexam import MedExamError
from medexam.files import whole_file
from medexam.library_logging import quiet_matplotlib
from medexam.questions import Discipline
from medexam_companions.corpus_map.placing import CorpusMap, PlacedGroups

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from medexam_companions.corpus_map.projection import Places

    Density = NDArray[np.float64]

DISCIPLINE_COLORS = {
    Discipline.BIOLOGY: "#009E73",
    Discipline.CHEMISTRY: "#E69F00",
    Discipline.MEDICINE: "#D55E00",
    Discipline.NURSING: "#56B4E9",
    Discipline.PHARMACOLOGY: "#CC79A7",
    Discipline.PSYCHOLOGY: "#0072B2",
}
"""The palette of Okabe and Ito."""
SOURCE_COLORS = ("#332288", "#AA8800", "#882255", "#117733", "#666666")
"""Dark hues of Paul Tol's `muted` palette; with `SOURCE_LINES` they tell 25 sources apart."""
SOURCE_LINES = ("solid", "dashed", "dashdot", "dotted", (0, (1, 3)))
SHARES = (0.9, 0.5)
"""Shares of a group's points that lie within its contours, outermost first."""
GRID = 300
"""Square cells of the density's grid along the longer side of the view."""
SMOOTHING = 0.4
"""The kernel's width as a part of what Scott's rule would take, which is for a single hill."""
WIDTH = 12.0
"""Inches; the height follows from the map's shape."""
COLUMNS = 3
"""Disciplines side by side."""
DPI = 150


MapPart = Literal["sources", "questions", "each_discipline"]
"""One picture of a map."""


@dataclass(frozen=True)
class _View:
    """The part of the plane that every panel shows."""

    low: "NDArray[np.float64]"
    high: "NDArray[np.float64]"

    @classmethod
    def around(cls, places: "Places") -> "_View":
        """Return the view of all of the places, with a margin."""
        margin = 0.04 * (places.max(axis=0) - places.min(axis=0)).max()
        return cls(places.min(axis=0) - margin, places.max(axis=0) + margin)

    @property
    def ratio(self) -> float:
        """Height over width."""
        width, height = self.high - self.low
        return float(height / width)

    @property
    def edges(self) -> "list[NDArray[np.float64]]":
        """The x and the y between the grid's cells."""
        sides = self.high - self.low
        counts = np.ceil(GRID * sides / sides.max()).astype(int)
        return [
            np.linspace(float(low), float(high), int(count) + 1)
            for low, high, count in zip(self.low, self.high, counts, strict=True)
        ]

    @property
    def centres(self) -> "list[NDArray[np.float64]]":
        """The x and the y of the cells' centres."""
        return [(edges[1:] + edges[:-1]) / 2 for edges in self.edges]

    def density(self, places: "Places") -> "Density":
        """Compute a round Gaussian kernel density of places on the grid, `[y, x]`, which sums to 1."""
        from scipy.ndimage import gaussian_filter

        counts, _, _ = np.histogram2d(places[:, 0], places[:, 1], bins=self.edges)
        spread = float(np.sqrt(places.var(axis=0).mean()))
        cell = float((self.high - self.low).max()) / GRID
        width = max(1.0, SMOOTHING * len(places) ** (-1 / 6) * spread / cell)
        smooth = gaussian_filter(counts, width, mode="constant").T
        density: Density = smooth / smooth.sum()
        return density


def new_figure() -> Any:
    """Make an empty matplotlib figure for `write_map`; raises `MedExamError` without matplotlib."""
    try:
        with quiet_matplotlib():
            from matplotlib.figure import Figure
    except ImportError:
        raise MedExamError("the corpus map needs matplotlib: pip install 'medexam[maps]'") from None
    return Figure(dpi=DPI, layout="constrained")


def check_place(path: Path) -> None:
    """Raise `MedExamError` where a picture cannot be written, before hours of work are lost for it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() or not os.access(path.parent, os.W_OK):
            raise PermissionError("it is a folder" if path.is_dir() else f"no permission to write in {path.parent}")
    except OSError as error:
        raise _unwritten(path, error) from None


def write_map(figure: Any, corpus_map: CorpusMap, path: Path) -> None:
    """Draw a map on an empty figure and write it to `path` as a PNG, whole or not at all.

    Raises `MedExamError` where it cannot be written.
    """
    draw_map(figure, corpus_map)
    try:
        with whole_file(path) as draft, quiet_matplotlib():
            figure.savefig(draft, format="png")
    except OSError as error:
        raise _unwritten(path, error) from None


def draw_map(figure: Any, corpus_map: CorpusMap) -> None:
    """Draw a map on an empty figure: two large panels, and a small one for each discipline that has questions."""
    view = _View.around(np.concatenate([corpus_map.passages.places, corpus_map.questions.places]))
    disciplines = [discipline for discipline in Discipline if discipline.value in corpus_map.questions.counts]
    columns = min(COLUMNS, len(disciplines))
    lines = -(-len(disciplines) // columns)
    # Panels as high as their width asks for, and inches for what is written around them.
    heights = [WIDTH / 2 * view.ratio + 1.1, lines * (WIDTH / COLUMNS * view.ratio + 0.3) + 0.4]
    figure.set_size_inches(WIDTH, sum(heights) + 0.5)
    rows = figure.subfigures(2, 1, height_ratios=heights)
    large = rows[0].subplots(1, 2)
    _draw_sources(large[0], corpus_map, view)
    _draw_disciplines(large[1], corpus_map, view, disciplines)
    small = rows[1].subplots(lines, columns, squeeze=False).ravel()
    rows[1].suptitle("c  each discipline's questions over all passages (shaded by density)", x=0.005, ha="left")
    everything = view.density(corpus_map.passages.places)
    for axes in small[len(disciplines) :]:
        axes.remove()
    small = small[: len(disciplines)]
    for axes, discipline in zip(small, disciplines, strict=True):
        _draw_discipline(axes, corpus_map.questions.of(discipline.value), view, everything, discipline)
    for axes in (*large, *small):
        axes.set_xlim(view.low[0], view.high[0])
        axes.set_ylim(view.low[1], view.high[1])
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_aspect("equal")
    corpus, encoder = corpus_map.manifest.corpus, corpus_map.manifest.encoder
    passage_count = len(corpus_map.passages.groups)
    passage_note = (
        f"all {passage_count:,} passages"
        if passage_count == corpus.count
        else f"{passage_count:,} of {corpus.count:,} passages"
    )
    figure.suptitle(
        f"{passage_note} of the corpus '{corpus.name}' and {len(corpus_map.questions.groups):,} questions of "
        f"{corpus_map.exam.name} ({corpus_map.exam.language}), as {encoder.label} sees them\n"
        f"UMAP by cosine, trustworthiness {corpus_map.trustworthiness:.2f}; contours hold 50 % and 90 % of a "
        "group",
        fontsize="medium",
    )


def draw_map_part(figure: Any, corpus_map: CorpusMap, part: MapPart) -> None:
    """Draw one part of a map on an empty figure: passages by source, questions by discipline, or each discipline."""
    view = _View.around(np.concatenate([corpus_map.passages.places, corpus_map.questions.places]))
    disciplines = [discipline for discipline in Discipline if discipline.value in corpus_map.questions.counts]
    columns = min(COLUMNS, len(disciplines)) if part == "each_discipline" else 1
    lines = -(-len(disciplines) // columns) if part == "each_discipline" else 1
    figure.set_size_inches(WIDTH, lines * (WIDTH / columns * view.ratio + 0.3) + 1.1)
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    if part == "sources":
        _draw_sources(panels[0], corpus_map, view)
    elif part == "questions":
        _draw_disciplines(panels[0], corpus_map, view, disciplines)
    else:
        everything = view.density(corpus_map.passages.places)
        for axes in panels[len(disciplines) :]:
            axes.remove()
        panels = panels[: len(disciplines)]
        for axes, discipline in zip(panels, disciplines, strict=True):
            _draw_discipline(axes, corpus_map.questions.of(discipline.value), view, everything, discipline)
    if part != "each_discipline":
        panels[0].set_title(panels[0].get_title(loc="left")[1:].strip(), loc="left")
    for axes in panels:
        axes.set_xlim(view.low[0], view.high[0])
        axes.set_ylim(view.low[1], view.high[1])
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_aspect("equal")


def _draw_sources(axes: Any, corpus_map: CorpusMap, view: _View) -> None:
    """Draw panel a: each source as a filled density between its contours."""
    for name, places, color, line in _sources(corpus_map.passages):
        density = view.density(places)
        levels = _levels(density)
        for level in levels:
            axes.contourf(*view.centres, density, [level, density.max()], colors=[color], alpha=0.2)
        axes.contour(*view.centres, density, levels, colors=color, linestyles=[line], linewidths=1.2)
        axes.plot([], [], color=color, linestyle=line, linewidth=2, label=f"{name} (n = {len(places):,})")
    axes.set_title("a  passages by source", loc="left")
    _put_legend(axes, columns=2)


def _draw_disciplines(axes: Any, corpus_map: CorpusMap, view: _View, disciplines: Sequence[Discipline]) -> None:
    """Draw panel b: every question as a point, in an order that hides no discipline, over the sources' contours."""
    for name, places, _, line in _sources(corpus_map.passages):
        density = view.density(places)
        outermost = _levels(density)[0]
        axes.contourf(*view.centres, density, [outermost, density.max()], colors=["0.5"], alpha=0.12)
        axes.contour(*view.centres, density, [outermost], colors="0.45", linestyles=[line], linewidths=1.0)
        axes.plot([], [], color="0.45", linestyle=line, label=f"90 % of {name}")
    places = corpus_map.questions.places
    order = np.random.default_rng(corpus_map.seed).permutation(len(places))
    colors = np.array([DISCIPLINE_COLORS[Discipline(group)] for group in corpus_map.questions.groups])
    size = _point_size(len(places), largest=20)
    axes.scatter(places[order, 0], places[order, 1], s=size, c=colors[order], alpha=0.7, linewidths=0)
    for discipline in disciplines:
        label = f"{discipline.value} (n = {corpus_map.questions.counts[discipline.value]:,})"
        axes.scatter([], [], s=36, color=DISCIPLINE_COLORS[discipline], label=label)
    axes.set_title("b  questions by discipline", loc="left")
    _put_legend(axes, columns=3)


def _draw_discipline(axes: Any, places: "Places", view: _View, everything: "Density", discipline: Discipline) -> None:
    """Draw a panel of its own: one discipline's points and contours over the shaded density of all passages."""
    shade = np.sqrt(everything)
    extent = (view.low[0], view.high[0], view.low[1], view.high[1])
    axes.imshow(shade, extent=extent, origin="lower", cmap="Greys", vmin=0, vmax=1.4 * float(shade.max()))
    color = DISCIPLINE_COLORS[discipline]
    size = _point_size(2 * len(places), largest=12)
    axes.scatter(places[:, 0], places[:, 1], s=size, color=color, alpha=0.6, linewidths=0)
    density = view.density(places)
    axes.contour(*view.centres, density, _levels(density), colors=color, linewidths=1.1)
    axes.set_title(f"{discipline.value} (n = {len(places):,})", fontsize="small")


def _point_size(count: int, largest: float) -> float:
    """Return the area of each of `count` points, in points squared."""
    return min(max(12_000 / count, 3.0), largest)


def _put_legend(axes: Any, columns: int) -> None:
    """Put a legend below the panel, where it hides no point."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=columns, fontsize="small", frameon=False)


def _sources(passages: PlacedGroups) -> "list[tuple[str, Places, str, Any]]":
    """List name, places, colour and line of each source, the largest first; those that no look is left for are one."""
    names, hues = list(passages.counts), len(SOURCE_COLORS)
    most = hues * len(SOURCE_LINES)
    own = names if len(names) <= most else names[: most - 1]
    sources = [
        (name, passages.of(name), SOURCE_COLORS[place % hues], SOURCE_LINES[(place + place // hues) % hues])
        for place, name in enumerate(own)
    ]
    if others := names[len(own) :]:
        sources.append((f"{len(others):,} other sources", passages.of(*others), SOURCE_COLORS[-1], SOURCE_LINES[-1]))
    return sources


def _levels(density: "Density") -> list[float]:
    """Find the densities along the contours that hold `SHARES` of the whole, ascending."""
    steep = np.sort(density.ravel())[::-1]
    mass = np.cumsum(steep)
    return sorted({float(steep[np.searchsorted(mass, share)]) for share in SHARES})


def _unwritten(path: Path, error: OSError) -> MedExamError:
    return MedExamError(f"cannot write {path}: {error.strerror or error}; choose another place with --out")
