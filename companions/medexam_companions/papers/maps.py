"""The corpus map: an index's passages on a plane, and where an exam's questions fall among them.

It draws figures 9 to 11 of HEAD-QA v2 with UMAP and matplotlib, which come with the extra `companions`.
"""

import importlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from medexam import MedExamError
from medexam.datasets import load_exam_set
from medexam.experiments import Plot
from medexam.questions import Discipline, ExamSet
from medexam.retrievers import IndexManifest, open_index
from medexam.specs import DatasetSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Places = NDArray[np.float32]
    Density = NDArray[np.float64]

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


@dataclass(frozen=True)
class PlacedGroups:
    """Points of the map and the group of each."""

    places: "Places"
    """`[n, 2]`; row i is point i."""
    groups: tuple[str, ...]
    """Item i is the group of point i."""

    @property
    def counts(self) -> dict[str, int]:
        """Group -> its points; the largest group first, equal ones by name."""
        return dict(sorted(Counter(self.groups).items(), key=lambda item: (-item[1], item[0])))

    def of(self, name: str) -> "Places":
        """Return the places of a group's points, `[m, 2]`."""
        places: Places = self.places[np.array(self.groups, dtype=object) == name]
        return places


@dataclass(frozen=True)
class CorpusMap:
    """Passages by source and questions by discipline, on one plane."""

    folder: Path
    """The index folder."""
    manifest: IndexManifest
    exam: ExamSet
    passages: PlacedGroups
    """Those that the projection was fitted to, by source."""
    questions: PlacedGroups
    """By discipline."""
    trustworthiness: float
    """Of the passages' places, from 0 to 1, which is best."""

    def document(self) -> dict[str, Any]:
        """Return what the map shows and how it was made, JSON-ready."""
        return {
            "index": {"folder": str(self.folder.resolve()), "digest": self.manifest.digest},
            "corpus": self.manifest.corpus.name,
            "encoder": self.manifest.encoder.label,
            "passages": {"drawn": len(self.passages.groups), "by_source": self.passages.counts},
            "dataset": self.exam.name,
            "language": self.exam.language,
            "questions": {"drawn": len(self.questions.groups), "by_discipline": self.questions.counts},
            "umap": {**UMAP_SETTINGS, "seed": SEED},
            "trustworthiness": self.trustworthiness,
        }

    @property
    def caption(self) -> str:
        """What is drawn, in a sentence."""
        corpus, exam = self.manifest.corpus, self.exam
        return (
            f"{corpus.count:,} passages of {corpus.name} and {len(self.questions.groups):,} questions of {exam.name} "
            f"({exam.language}) as {self.manifest.encoder.label} places them; UMAP by cosine, trustworthiness "
            f"{self.trustworthiness:.2f}; contours hold 50 % and 90 % of a group."
        )

    def plot(self, part: MapPart) -> Plot:
        """Return one of the pictures."""
        return Plot(f"map_{part}", self.caption, (PANEL, PANEL), partial(_draw, corpus_map=self, part=part))


def make_map(folder: Path, spec: DatasetSpec, say: Callable[[str], None]) -> CorpusMap:
    """Place an index's passages and an exam's questions on one plane.

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
    exam = load_exam_set(spec)
    stems = [question.stem for question in exam.questions]
    say(f"encode {len(stems):,} questions with {retriever.manifest.encoder.label} ...")
    queries = retriever.encoder.encode_queries(stems)
    say(f"fit {len(rows):,} passages ...")
    vectors = retriever.vectors_of(rows)
    umap = fit_projection(vectors, SEED)
    return CorpusMap(
        folder,
        retriever.manifest,
        exam,
        PlacedGroups(umap.embedding_, tuple(passage.source for passage in retriever.passages_of(rows))),
        PlacedGroups(umap.transform(queries), tuple(question.exam.discipline for question in exam.questions)),
        measure_trust(vectors, umap.embedding_, SEED),
    )


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
    """The part of the plane that every picture shows, as a grid of square cells."""

    def __init__(self, corpus_map: CorpusMap) -> None:
        places = np.concatenate([corpus_map.passages.places, corpus_map.questions.places])
        margin = 0.04 * (places.max(axis=0) - places.min(axis=0)).max()
        self.low, self.high = places.min(axis=0) - margin, places.max(axis=0) + margin
        sides = self.high - self.low
        counts = np.ceil(GRID * sides / sides.max()).astype(int)
        ends = zip(self.low.tolist(), self.high.tolist(), counts.tolist(), strict=True)
        self.edges = [np.linspace(low, high, count + 1) for low, high, count in ends]
        self.centres = [(edges[1:] + edges[:-1]) / 2 for edges in self.edges]
        self.ratio = float(sides[1] / sides[0])
        self.passages = self.density(corpus_map.passages.places)

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


def _draw(figure: Any, corpus_map: CorpusMap, part: MapPart) -> None:
    """Draw a picture on an empty figure, with its legend below, where it hides no point."""
    view, axes = _View(corpus_map), figure.subplots()
    _PICTURES[part](axes, corpus_map, view)
    axes.set(xlim=(view.low[0], view.high[0]), ylim=(view.low[1], view.high[1]), xticks=[], yticks=[])
    axes.set_aspect("equal", anchor="N")
    title = {"sources": "passages by source", "density": "all passages", "questions": "questions by discipline"}
    axes.set_title(title[part], loc="left")
    labels = axes.get_legend_handles_labels()[1]
    columns = max(1, min(len(labels), int(PANEL // (HANDLE + CHARACTER * max(map(len, labels))))))
    look = {"fontsize": "small", "frameon": False, "handlelength": 3}
    figure.legend(loc="outside lower center", ncols=columns, **look)
    figure.set_size_inches(PANEL, PANEL * view.ratio + LEGEND_ROW * -(-len(labels) // columns) + 0.5)


def _draw_sources(axes: Any, corpus_map: CorpusMap, view: _View) -> None:
    """Draw each source as a filled density between its contours."""
    for name, places, color, line in _sources(corpus_map.passages):
        density = view.density(places)
        levels = _levels(density)
        for level in levels:
            axes.contourf(*view.centres, density, [level, density.max()], colors=[color], alpha=0.2)
        axes.contour(*view.centres, density, levels, colors=color, linestyles=[line], linewidths=1.2)
        axes.plot([], [], color=color, linestyle=line, linewidth=2, label=f"{name} ({len(places):,})")


def _draw_density(axes: Any, corpus_map: CorpusMap, view: _View) -> None:
    """Draw the density of all passages as a shade, with its contours."""
    _shade(axes, view)
    axes.contour(*view.centres, view.passages, _levels(view.passages), colors="0.3", linewidths=0.8)
    axes.plot([], [], color="0.3", linewidth=0.8, label=f"50 % and 90 % of {len(corpus_map.passages.groups):,}")


def _draw_questions(axes: Any, corpus_map: CorpusMap, view: _View) -> None:
    """Draw every question as a point over the density of all passages, in an order that hides no discipline."""
    _shade(axes, view)
    questions = corpus_map.questions
    order = np.random.default_rng(SEED).permutation(len(questions.groups))
    colors = np.array([DISCIPLINE_COLORS[Discipline(group)] for group in questions.groups])
    size = min(max(12_000 / max(len(order), 1), 3.0), 20.0)
    axes.scatter(*questions.places[order].T, s=size, c=colors[order], alpha=0.7, linewidths=0)
    counts = questions.counts
    for discipline in Discipline:
        if discipline.value in counts:
            label = f"{discipline.value} ({counts[discipline.value]:,})"
            axes.scatter([], [], s=36, color=DISCIPLINE_COLORS[discipline], label=label)


_PICTURES: dict[MapPart, Callable[[Any, CorpusMap, _View], None]] = {
    "sources": _draw_sources,
    "density": _draw_density,
    "questions": _draw_questions,
}


def _shade(axes: Any, view: _View) -> None:
    shade = np.sqrt(view.passages)
    extent = (view.low[0], view.high[0], view.low[1], view.high[1])
    axes.imshow(shade, extent=extent, origin="lower", cmap="Greys", vmin=0, vmax=1.4 * float(shade.max()))


def _sources(passages: PlacedGroups) -> "Iterator[tuple[str, Places, str, Any]]":
    """Yield name, places, colour and line of each source, the largest first; looks repeat behind 25 of them."""
    hues = len(SOURCE_COLORS)
    for place, name in enumerate(passages.counts):
        color, line = SOURCE_COLORS[place % hues], SOURCE_LINES[(place + place // hues) % len(SOURCE_LINES)]
        yield name, passages.of(name), color, line


def _levels(density: "Density") -> list[float]:
    """Find the densities along the contours that hold `SHARES` of the whole, ascending."""
    steep = np.sort(density.ravel())[::-1]
    mass = np.cumsum(steep)
    return sorted({float(steep[np.searchsorted(mass, share)]) for share in SHARES})
