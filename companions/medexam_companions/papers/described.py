"""Tables and figures that describe a data set: counted from its files, without a model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from medexam.benchmarks import find_benchmark
from medexam.errors import SpecError
from medexam.experiments import (
    PlotPicture,
    Statistics,
    compute_statistics,
    length_tables,
    render_plot,
    statistics_plots,
)
from medexam.questions import Discipline
from medexam.specs import DatasetSpec, validate
from medexam.tables import Captioned, Table
from medexam_companions.casimedicos.statistics import compute_explanation_statistics
from medexam_companions.papers.beside import Beside
from medexam_companions.papers.catalogue import PaperEntry
from medexam_companions.papers.paper import Grid

ACRONYMS = {
    "BIR": Discipline.BIOLOGY,
    "QIR": Discipline.CHEMISTRY,
    "MIR": Discipline.MEDICINE,
    "EIR": Discipline.NURSING,
    "FIR": Discipline.PHARMACOLOGY,
    "PIR": Discipline.PSYCHOLOGY,
}
"""The papers' names of the exams."""
TOTAL = "Total"
SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class DescribedEntry:
    """An entry and the data set that it describes."""

    entry: PaperEntry
    spec: DatasetSpec

    @property
    def source(self) -> str:
        """The data set in words."""
        return self.spec.label

    def make(self, _: Callable[[str], None]) -> tuple[Sequence[Captioned], Any, Sequence[PlotPicture]]:
        """Make its tables, the same JSON-ready, and its pictures."""
        entry, shows = self.entry, self.entry.item.shows
        title = f"{entry.heading} · {self.spec.label}"
        if shows in _OF_DOCUMENTS:
            comparison = Beside(title, _OF_DOCUMENTS[shows](self.spec), entry.figures, entry.paper.arxiv)
            specialties = compute_explanation_statistics(self.spec).specialties
            if shows != "documents" or not specialties:
                return [comparison.table], comparison.document(), ()
            name, count = next(iter(specialties.items()))
            top = Table("Top specialty", ("Specialty", "Documents"), ((name, f"{count:,}"),))
            document = {**comparison.document(), "top_specialty": {"name": name, "documents": count}}
            return [comparison.table, (top, "")], document, ()
        items = find_benchmark(self.spec).load(self.spec)
        statistics = compute_statistics(items.questions, items.golds, name=items.name, language=items.language)
        if shows in _OF_EXAMS:
            comparison = Beside(title, _OF_EXAMS[shows](statistics), entry.figures, entry.paper.arxiv)
            return [comparison.table], comparison.document(), _pictures(statistics, f"{shows}_by_year")
        by_year, by_discipline = length_tables(statistics)
        table = by_discipline if shows == "question_lengths_by_discipline" else by_year
        return [table], statistics.model_dump(mode="json"), _pictures(statistics, shows)


def describe_entry(entry: PaperEntry, overrides: Mapping[str, Any]) -> DescribedEntry:
    """Return the entry with its data set, whose files `make` reads; raises `SpecError` for an unknown key."""
    dataset_fields: dict[str, Any] = {}
    for key, value in overrides.items():
        part, _, name = key.partition(".")
        if part != "dataset" or not name:
            raise SpecError(f"--set {key}: {entry.name} describes a data set, so only keys of `dataset` can be set")
        dataset_fields[name] = value
    return DescribedEntry(entry, validate(DatasetSpec, {**entry.item.dataset, **dataset_fields}))


def questions_by_year(statistics: Statistics) -> Grid:
    """Count the questions of each discipline by year, and their sums."""
    years = sorted({year for counts in statistics.by_exam.values() for year in counts})
    counts_by_name = {name: statistics.by_exam.get(discipline.value, {}) for name, discipline in ACRONYMS.items()}
    rows = {name: [counts.get(year, 0) for year in years] for name, counts in counts_by_name.items()}
    rows[TOTAL] = [sum(column) for column in zip(*rows.values(), strict=True)]
    return Grid(
        columns=(*map(str, years), TOTAL), rows={name: (*numbers, sum(numbers)) for name, numbers in rows.items()}
    )


def questions_by_split(statistics: Statistics) -> Grid:
    """Count the questions of each discipline in all, and in each official split."""
    rows: dict[str, list[float]] = {}
    for name, discipline in ACRONYMS.items():
        splits = statistics.by_split.get(discipline.value, {})
        rows[name] = [
            sum(statistics.by_exam.get(discipline.value, {}).values()),
            *(splits.get(split, 0) for split in SPLITS),
        ]
    rows[TOTAL] = [sum(column) for column in zip(*rows.values(), strict=True)]
    columns = (TOTAL, *(split.capitalize() for split in SPLITS))
    return Grid(columns=columns, rows={name: tuple(numbers) for name, numbers in rows.items()})


def tokens(statistics: Statistics) -> Grid:
    """Count the tokens of the longest and of the mean question and answer of each discipline."""
    tokens_by_name = {
        name: statistics.tokens[discipline.value]
        for name, discipline in ACRONYMS.items()
        if discipline.value in statistics.tokens
    }
    return Grid(
        columns=("Longest question", "Mean question", "Longest answer", "Mean answer"),
        rows={
            name: (
                count.longest_question,
                round(count.mean_question, 2),
                count.longest_answer,
                round(count.mean_answer, 2),
            )
            for name, count in tokens_by_name.items()
        },
    )


def documents(spec: DatasetSpec) -> Grid:
    """Count the documents and words of explained questions."""
    statistics = compute_explanation_statistics(spec)
    row = (statistics.documents, statistics.words, round(statistics.words_per_document))
    return Grid(columns=("Documents", "Words", "Words a document"), rows={"CasiMedicos with a case": row})


def sentences(spec: DatasetSpec) -> Grid:
    """Return the percent of the explanations by their number of sentences."""
    shares = compute_explanation_statistics(spec).sentences
    return Grid(columns=("CasiMedicos",), rows={name: (round(share, 2),) for name, share in shares.items()})


_OF_EXAMS: Mapping[str, Callable[[Statistics], Grid]] = MappingProxyType(
    {"questions": questions_by_year, "splits": questions_by_split, "tokens": tokens}
)
_OF_DOCUMENTS: Mapping[str, Callable[[DatasetSpec], Grid]] = MappingProxyType(
    {"documents": documents, "sentences": sentences}
)


def _pictures(statistics: Statistics, name: str) -> Sequence[PlotPicture]:
    """Draw the picture of that name; empty where the exams have no year."""
    return [render_plot(plot) for plot in statistics_plots(statistics) if plot.name == name]
