"""The map of a corpus with an exam's questions: an index of the corpus, made if it is not there, and its projection."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from medexam.errors import SpecError
from medexam.experiments import Plot, PlotPicture, render_plot
from medexam.files import cache_dir
from medexam.retrievers import DenseRetriever, PlannedRetriever, plan_retriever
from medexam.specs import DatasetSpec, RetrieverSpec, validate
from medexam.tables import Captioned, Table
from medexam_companions.corpus_map.drawing import draw_map_part
from medexam_companions.corpus_map.placing import CorpusMap, make_map
from medexam_companions.papers.catalogue import PaperEntry

SIZE = (12.0, 8.0)
"""Inches, until the map's own shape is known."""


@dataclass(frozen=True)
class Mapped:
    """An entry, the corpus and the questions that it shows."""

    entry: PaperEntry
    dataset: DatasetSpec
    retriever: PlannedRetriever

    @property
    def source(self) -> str:
        """What is drawn, in words."""
        spec = self.retriever.spec
        return f"the questions of {self.dataset.label}, and {self.retriever.size:,} passages of {spec.corpus}"

    def make(self, say: Callable[[str], None]) -> tuple[Sequence[Captioned], Any, Sequence[PlotPicture]]:
        """Make what is drawn in numbers, the same JSON-ready, and the map."""
        say(f"Encoding {self.retriever.size:,} passages, unless their index is there ...")
        dense_retriever = cast(DenseRetriever, self.retriever.open(cache_dir()))

        def watch(step: str, count: int, _: int) -> None:
            if not count:
                say(f"{step} ...")

        corpus_map = make_map(dense_retriever.folder, self.dataset, sample=self.retriever.size, seed=0, watch=watch)
        return [_counts(self.entry.heading, corpus_map)], corpus_map.document(), [_picture(self.entry, corpus_map)]


def plan_map(entry: PaperEntry, overrides: Mapping[str, Any]) -> Mapped:
    """Return the entry with its corpus; raises `DatasetError` if that is missing and `SpecError` for an unknown key."""
    parts: dict[str, dict[str, Any]] = {"dataset": dict(entry.item.dataset), "retriever": dict(entry.item.retriever)}
    for key, value in overrides.items():
        part, _, name = key.partition(".")
        if part not in parts or not name:
            raise SpecError(f"--set {key}: {entry.name} is a map, so only keys of `dataset` and `retriever` can be set")
        parts[part][name] = value
    dataset, retriever = validate(DatasetSpec, parts["dataset"]), validate(RetrieverSpec, parts["retriever"])
    if not retriever.uses_vectors or retriever.uses_words:
        raise SpecError(f"--set retriever.kind: {entry.name} draws vectors: take medcpt or dense")
    return Mapped(entry, dataset, plan_retriever(retriever))


def _counts(title: str, corpus_map: CorpusMap) -> Captioned:
    rows = [("passages", source, f"{count:,}") for source, count in corpus_map.passages.counts.items()]
    rows += [("questions", discipline, f"{count:,}") for discipline, count in corpus_map.questions.counts.items()]
    caption = f"Trustworthiness of the map, from 0 to 1: {corpus_map.trustworthiness:.3f}."
    return Table(title, ("Drawn", "Of", "n"), tuple(rows), text_columns=2), caption


def _picture(entry: PaperEntry, corpus_map: CorpusMap) -> PlotPicture:
    corpus, exam = corpus_map.manifest.corpus.name, corpus_map.exam.name
    caption = f"{entry.heading}: passages of {corpus}, questions of {exam}."
    draw = partial(draw_map_part, corpus_map=corpus_map, part=entry.item.part)
    return render_plot(Plot(f"map_{entry.item.part}", caption, SIZE, draw))
