"""The corpus map: an index's passages on a plane, and where an exam's questions fall among them.

It draws figures 9 to 11 of HEAD-QA v2 with UMAP and matplotlib, which come with the extra `companions`.
"""

import importlib
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from medexam import MedExamError
from medexam.datasets import load_exam_set
from medexam.experiments import Plot
from medexam.questions import Discipline
from medexam.retrievers import open_index
from medexam.specs import DatasetSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Places = NDArray[np.float32]
    Density = NDArray[np.float64]
    Groups = dict[str, Places]

MapPart = Literal["sources", "density", "questions"]
"""A picture: passages by source, the density of all passages, or questions by discipline over that density."""
UMAP_SETTINGS: dict[str, Any] = {"n_neighbors": 15, "min_dist": 0.1, "metric": "cosine"}
"""UMAP's own defaults, with the cosine."""
LEAST = UMAP_SETTINGS["n_neighbors"] + 1
"""The fewest vectors that can be fitted."""
SEED = 0
"""Fixes the projection and the order of points."""
JUDGED = 2_000
"""Rows among which the trustworthiness is measured; its memory grows with their square."""
DISCIPLINE_COLORS = {
    Discipline.BIOLOGY: "#009E73",
    Discipline.CHEMISTRY: "#E69F00",
    Discipline.MEDICINE: "#D55E00",
    Discipline.NURSING: "#56B4E9",
    Discipline.PHARMACOLOGY: "#CC79A7",
    Discipline.PSYCHOLOGY: "#0072B2",
}
"""The palette of Okabe and Ito, which colour blind readers can tell apart."""
SOURCE_COLORS = ("#332288", "#AA8800", "#882255", "#117733", "#666666")
"""Dark hues of Paul Tol's `muted` palette; with `SOURCE_LINES` they tell 25 sources apart."""
SOURCE_LINES = ("solid", "dashed", "dashdot", "dotted", (0, (1, 3)))
SHARES = (0.9, 0.5)
"""Shares of a group's points that lie within its contours, outermost first."""
GRID = 300
"""Square cells of the density's grid along the longer side of the view."""
SMOOTHING = 0.4
"""The kernel's width as a part of what Scott's rule would take, which is for a single hill."""
PANEL = 7.0
"""Inches of the width; the height follows from the map's shape and its legend."""
CHARACTER, HANDLE, LEGEND_ROW = 0.068, 0.7, 0.2
"""Inches of an entry of a legend: a character of its text, what stands before the text, and its height."""


def make_map(folder: Path, spec: DatasetSpec, part: MapPart, say: Callable[[str], None]) -> tuple[Plot, dict[str, Any]]:
    """Place an index's passages and an exam's questions on one plane; return a picture, and what it shows.

    UMAP is fitted to the passages. The stem of each question that `spec` selects goes through the query side of the
    index's own encoder and is projected among them. The same index and questions give the same map. `say` gets a line
    for each step.

    Raises `MedExamError` without umap-learn or with fewer passages than UMAP's neighbourhoods, `IndexStaleError` where
    the index or its encoder cannot be used, and `DatasetError` where the questions cannot.
    """
    retriever = open_index(folder)
    rows = np.arange(len(retriever))
    if len(rows) < LEAST:
        raise MedExamError(
            f"{folder}: {len(rows)} passages are too few for a map, which needs {LEAST}; index a larger corpus"
        )
    exam, manifest = load_exam_set(spec), retriever.manifest
    stems = [question.stem for question in exam.questions]
    say(f"encode {len(stems):,} questions with {manifest.encoder.label} ...")
    queries = retriever.encoder.encode_queries(stems)
    say(f"fit {len(rows):,} passages ...")
    vectors = retriever.vectors[rows]
    umap = fit_projection(vectors, SEED)
    passages = _group(umap.embedding_, [passage.source for passage in retriever.passages_of(rows)])
    questions = _group(umap.transform(queries), [question.exam.discipline for question in exam.questions])
    trust = measure_trust(vectors, umap.embedding_, SEED)
    by_source, by_discipline = ({name: len(each) for name, each in side.items()} for side in (passages, questions))
    document = {
        "index": {"folder": str(folder.resolve()), "digest": manifest.digest},
        "corpus": manifest.corpus.name,
        "encoder": manifest.encoder.label,
        "passages": {"drawn": len(rows), "by_source": by_source},
        "dataset": exam.name,
        "language": exam.language,
        "questions": {"drawn": len(stems), "by_discipline": by_discipline},
        "umap": {**UMAP_SETTINGS, "seed": SEED},
        "trustworthiness": trust,
    }
    caption = (
        f"{manifest.corpus.count:,} passages of {manifest.corpus.name} and {len(stems):,} questions of {exam.name} "
        f"({exam.language}) as {manifest.encoder.label} places them; UMAP by cosine, trustworthiness "
        f"{trust:.2f}; contours hold 50 % and 90 % of a group."
    )
    return Plot(f"map_{part}", caption, (PANEL, PANEL), partial(_draw, _View(passages, questions), part)), document


def _group(places: "Places", names: Sequence[str]) -> "Groups":
    """Map each group to the places of its points, `[m, 2]`; the largest group first, equal ones by name."""
    counts, labels = Counter(names), np.array(names, dtype=object)
    return {name: places[labels == name] for name in sorted(counts, key=lambda name: (-counts[name], name))}


def fit_projection(vectors: "NDArray[np.float32]", seed: int) -> Any:
    """Fit UMAP to vectors `[n, dimension]`, at least `LEAST`; the same vectors and seed give the same places.

    Nearness is the cosine. An inner product of vectors of many lengths, such as MedCPT's, is no distance, so the map
    shows their directions. The places begin at the two principal components, and one thread is used, because threads
    finish in any order. Raises `MedExamError` with the install line without umap-learn.
    """
    try:
        with warnings.catch_warnings():
            # It tells everyone that its neural variant, which is not used here, would need TensorFlow.
            warnings.simplefilter("ignore", ImportWarning)
            module = importlib.import_module("umap")
    except ImportError as error:
        raise MedExamError(f"the corpus map needs umap-learn ({error}): pip install 'medexam[companions]'") from None
    umap = module.UMAP(**UMAP_SETTINGS, init="pca", random_state=seed, transform_seed=seed, n_jobs=1)
    return umap.fit(np.ascontiguousarray(vectors, dtype=np.float32))


def measure_trust(vectors: "NDArray[np.float32]", places: "Places", seed: int) -> float:
    """Measure how far neighbours on the plane are neighbours among the vectors too: from 0 to 1, which is best."""
    count = len(vectors)
    rows = np.random.default_rng(seed).choice(count, JUDGED, replace=False) if count > JUDGED else np.arange(count)
    near, metric = min(UMAP_SETTINGS["n_neighbors"], (len(rows) - 1) // 2), UMAP_SETTINGS["metric"]
    score = importlib.import_module("sklearn.manifold").trustworthiness
    return float(score(vectors[rows], places[rows], n_neighbors=near, metric=metric))


class _View:
    """What a picture shows: passages by source and questions by discipline, over a grid of square cells."""

    def __init__(self, passages: "Groups", questions: "Groups") -> None:
        self.passages, self.questions = passages, questions
        every_passage = np.concatenate([*passages.values()])
        places = np.concatenate([every_passage, *questions.values()])
        margin = 0.04 * (places.max(axis=0) - places.min(axis=0)).max()
        self.low, self.high = places.min(axis=0) - margin, places.max(axis=0) + margin
        sides = self.high - self.low
        counts = np.ceil(GRID * sides / sides.max()).astype(int)
        ends = zip(self.low.tolist(), self.high.tolist(), counts.tolist(), strict=True)
        self.edges = [np.linspace(low, high, count + 1) for low, high, count in ends]
        self.centres = [(edges[1:] + edges[:-1]) / 2 for edges in self.edges]
        self.ratio = float(sides[1] / sides[0])
        self.whole = self.density(every_passage)

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


def _draw(view: _View, part: MapPart, figure: Any) -> None:
    """Draw a picture on an empty figure, with its legend below, where it hides no point."""
    axes, (title, paint) = figure.subplots(), _PICTURES[part]
    paint(axes, view)
    axes.set(xlim=(view.low[0], view.high[0]), ylim=(view.low[1], view.high[1]), xticks=[], yticks=[])
    axes.set_aspect("equal", anchor="N")
    axes.set_title(title, loc="left")
    labels = axes.get_legend_handles_labels()[1]
    columns = max(1, min(len(labels), int(PANEL // (HANDLE + CHARACTER * max(map(len, labels))))))
    look = {"fontsize": "small", "frameon": False, "handlelength": 3}
    figure.legend(loc="outside lower center", ncols=columns, **look)
    figure.set_size_inches(PANEL, PANEL * view.ratio + LEGEND_ROW * -(-len(labels) // columns) + 0.5)


def _draw_sources(axes: Any, view: _View) -> None:
    """Draw each source as a filled density between its contours; looks repeat behind 25 of them."""
    hues = len(SOURCE_COLORS)
    for place, (name, places) in enumerate(view.passages.items()):
        color, line = SOURCE_COLORS[place % hues], SOURCE_LINES[(place + place // hues) % len(SOURCE_LINES)]
        density = view.density(places)
        levels = _levels(density)
        for level in levels:
            axes.contourf(*view.centres, density, [level, density.max()], colors=[color], alpha=0.2)
        axes.contour(*view.centres, density, levels, colors=color, linestyles=[line], linewidths=1.2)
        axes.plot([], [], color=color, linestyle=line, linewidth=2, label=f"{name} ({len(places):,})")


def _draw_density(axes: Any, view: _View) -> None:
    """Draw the density of all passages as a shade, with its contours."""
    _shade(axes, view)
    axes.contour(*view.centres, view.whole, _levels(view.whole), colors="0.3", linewidths=0.8)
    axes.plot([], [], color="0.3", linewidth=0.8, label=f"50 % and 90 % of {sum(map(len, view.passages.values())):,}")


def _draw_questions(axes: Any, view: _View) -> None:
    """Draw every question as a point over the density of all passages, in an order that hides no discipline."""
    _shade(axes, view)
    places = np.concatenate([*view.questions.values()])
    colors = np.array([DISCIPLINE_COLORS[Discipline(name)] for name, own in view.questions.items() for _ in own])
    order = np.random.default_rng(SEED).permutation(len(places))
    size = min(max(12_000 / max(len(order), 1), 3.0), 20.0)
    axes.scatter(*places[order].T, s=size, c=colors[order], alpha=0.7, linewidths=0)
    for discipline in (each for each in Discipline if each.value in view.questions):
        label = f"{discipline.value} ({len(view.questions[discipline.value]):,})"
        axes.scatter([], [], s=36, color=DISCIPLINE_COLORS[discipline], label=label)


_PICTURES: dict[MapPart, tuple[str, Callable[[Any, _View], None]]] = {
    "sources": ("passages by source", _draw_sources),
    "density": ("all passages", _draw_density),
    "questions": ("questions by discipline", _draw_questions),
}


def _shade(axes: Any, view: _View) -> None:
    shade = np.sqrt(view.whole)
    extent = (view.low[0], view.high[0], view.low[1], view.high[1])
    axes.imshow(shade, extent=extent, origin="lower", cmap="Greys", vmin=0, vmax=1.4 * float(shade.max()))


def _levels(density: "Density") -> list[float]:
    """Find the densities along the contours that hold `SHARES` of the whole, ascending."""
    steep = np.sort(density.ravel())[::-1]
    mass = np.cumsum(steep)
    return sorted({float(steep[np.searchsorted(mass, share)]) for share in SHARES})
