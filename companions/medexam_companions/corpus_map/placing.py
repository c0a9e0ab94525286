"""The corpus map: an index's passages on a plane, and where an exam's questions fall among them.

It gathers vectors, sources and disciplines; `corpus_map_plot` draws them.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from medexam import MedExamError
from medexam.datasets import load_exam_set
from medexam.questions import ExamSet
from medexam.retrievers import IndexManifest, open_index
from medexam.specs import DatasetSpec
from medexam_companions.corpus_map.projection import (
    LEAST,
    METRIC,
    MIN_DIST,
    NEIGHBOURS,
    Places,
    draw_rows,
    fit_projection,
    load_umap,
)

Watch = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is; first with nothing done."""


@dataclass(frozen=True)
class PlacedGroups:
    """Points of the map and the group of each."""

    places: Places
    """`[n, 2]`; row i is point i."""
    groups: tuple[str, ...]
    """Item i is the group of point i."""

    @property
    def counts(self) -> dict[str, int]:
        """Group -> its points; the largest group first, equal ones by name."""
        return dict(sorted(Counter(self.groups).items(), key=lambda item: (-item[1], item[0])))

    def of(self, *names: str) -> Places:
        """Return the places of some groups' points, `[m, 2]`."""
        return self.places[np.isin(np.array(self.groups, dtype=object), names)]


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
    seed: int

    def document(self) -> dict[str, Any]:
        """Return what the map shows and how it was made, JSON-ready."""
        return {
            "index": {"folder": str(self.folder.resolve()), "digest": self.manifest.digest},
            "corpus": self.manifest.corpus.name,
            "encoder": self.manifest.encoder.label,
            "passages": {
                "in_index": self.manifest.corpus.count,
                "drawn": len(self.passages.groups),
                "by_source": self.passages.counts,
            },
            "dataset": self.exam.name,
            "language": self.exam.language,
            "questions": {"drawn": len(self.questions.groups), "by_discipline": self.questions.counts},
            "umap": {"neighbours": NEIGHBOURS, "min_dist": MIN_DIST, "metric": METRIC, "seed": self.seed},
            "trustworthiness": self.trustworthiness,
        }


def make_map(folder: Path, spec: DatasetSpec, *, sample: int, seed: int, watch: Watch) -> CorpusMap:
    """Place an index's passages and an exam's questions on one plane.

    UMAP is fitted to at most `sample` passages, drawn by `seed`. The stem of each question that `spec` selects goes
    through the query side of the index's own encoder and is projected among them. The same index, questions, sample
    and seed give the same map.

    Raises `MedExamError` without umap-learn or with fewer passages than UMAP's neighbourhoods, `IndexStaleError` where
    the index or its encoder cannot be used, and `DatasetError` where the questions cannot.
    """
    retriever = open_index(folder)
    rows = draw_rows(len(retriever), sample, seed)
    if len(rows) < LEAST:
        raise MedExamError(
            f"{folder}: {len(rows)} passages are too few for a map, which needs {LEAST}; "
            "index a larger corpus, or draw more with --sample"
        )
    exam = load_exam_set(spec)
    watch("load UMAP", 0, 1)
    load_umap()
    watch("load UMAP", 1, 1)
    stems = [question.stem for question in exam.questions]
    encoding = f"encode {len(stems):,} questions with {retriever.manifest.encoder.label}"
    watch(encoding, 0, len(stems))
    queries = retriever.encoder.encode_queries(stems, lambda count: watch(encoding, count, len(stems)))
    fitting = f"fit {len(rows):,} of {len(retriever):,} passages"
    watch(fitting, 0, len(rows))
    vectors = retriever.vectors_of(rows)
    projection = fit_projection(vectors, seed)
    watch(fitting, len(rows), len(rows))
    placing = f"place {len(stems):,} questions"
    watch(placing, 0, len(stems))
    places = projection.project(queries)
    watch(placing, len(stems), len(stems))
    return CorpusMap(
        folder,
        retriever.manifest,
        exam,
        PlacedGroups(projection.places, tuple(passage.source for passage in retriever.passages_of(rows))),
        PlacedGroups(places, tuple(question.exam.discipline for question in exam.questions)),
        projection.trustworthiness(vectors),
        seed,
    )
