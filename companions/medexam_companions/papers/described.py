"""Tables and figures that describe a data set or a corpus: made from files, without a model that answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, Literal, cast

from medexam.errors import SpecError
from medexam.experiments import Plot, Statistics, compute_statistics, lengths_table
from medexam.files import cache_dir
from medexam.measures import find_benchmark
from medexam.questions import Discipline, Question
from medexam.retrievers import DenseRetriever, plan_retriever
from medexam.specs import DatasetSpec, RetrieverSpec, put, validate
from medexam.tables import Table
from medexam_companions.casimedicos import compute_explanation_statistics
from medexam_companions.papers.beside import Product, set_beside
from medexam_companions.papers.maps import make_map
from medexam_companions.papers.paper import Grid, PaperEntry
from medexam_companions.papers.tokens import count_tokens

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


def describe(entry: PaperEntry, overrides: Mapping[str, Any], say: Callable[[str], None]) -> Product:
    """Make an entry that describes a data set, or maps a corpus; `overrides` are keys of its spec's parts."""
    shows = entry.item.shows
    parts: dict[str, dict[str, Any]] = {"dataset": dict(entry.item.dataset), "retriever": dict(entry.item.retriever)}
    names = [part for part in parts if parts[part]]
    for key, value in overrides.items():
        part, _, name = key.partition(".")
        if part not in names or not name:
            keys = " and ".join(f"`{part}`" for part in names)
            raise SpecError(f"--set {key}: {entry.name} asks no model, so only keys of {keys} can be set")
        put(parts, key, value)
    spec = validate(DatasetSpec, parts["dataset"])
    if shows == "map":
        return _map(entry, spec, validate(RetrieverSpec, parts["retriever"]), say)
    title = f"{entry.heading} · {spec.label}"
    if shows in ("documents", "sentences"):
        return _describe_explanations(entry, title, spec)
    items = find_benchmark(spec).load(spec)
    if shows == "tokens":
        return set_beside(entry, tokens(items.questions), title)
    statistics = compute_statistics(items.questions, items.golds, name=items.name, language=items.language)
    if shows in ("questions", "splits"):
        grid = questions_by_year(statistics) if shows == "questions" else questions_by_split(statistics)
        return set_beside(entry, grid, title)
    facet: Literal["year", "discipline"] = "discipline" if shows == "question_lengths_by_discipline" else "year"
    table = lengths_table(statistics, facet)
    return Product(entry, [table], statistics, [_plot_lengths(shows, statistics, facet)])


def _plot_lengths(name: str, statistics: Statistics, facet: Literal["year", "discipline"]) -> Plot:
    """Plan boxes of the length of questions, as figures 3 and 4 of Correa-Guillén et al. (2025)."""
    groups = statistics[f"by_{facet}"]
    about = f"{statistics['name']} {statistics['language']}"

    def draw(figure: Any) -> None:
        for axes, unit in zip(figure.subplots(1, 2), ("words", "characters"), strict=True):
            spreads = [lengths["questions"][unit] for lengths in groups.values()]
            ends = ("whislo", "q1", "med", "q3", "whishi")
            boxes = [dict(zip(ends, each["quantiles"], strict=True)) | {"mean": each["mean"]} for each in spreads]
            axes.bxp(boxes, showmeans=True, showfliers=False)
            axes.set_xticks(range(1, len(groups) + 1), map(str, groups), rotation=45 * (facet == "discipline"))
            axes.set_ylabel(f"{unit} of a question")
            axes.set_ylim(bottom=0)
            axes.grid(axis="y", alpha=0.3)
        figure.suptitle(f"Length of questions by {facet} · {about}")

    caption = (
        f"Length of the questions, without their options, by {facet}: {about}, n = {statistics['questions']:,}. Boxes: "
        "the middle half and the median; lines: 5 to 95 %; triangles: means."
    )
    return Plot(name, caption, (9.5, 4.2), draw)


def _map(entry: PaperEntry, dataset: DatasetSpec, retriever: RetrieverSpec, say: Callable[[str], None]) -> Product:
    """Draw a picture of the map of all passages, whose index is made first if it is not there."""
    if not retriever.uses_vectors or retriever.uses_words:
        raise SpecError(f"--set retriever.kind: {entry.name} draws vectors: take medcpt or dense")
    planned = plan_retriever(retriever)
    say(f"encode {planned.size:,} passages, unless their index is there ...")
    folder = cast(DenseRetriever, planned.open(cache_dir())).folder
    picture, document = make_map(folder, dataset, entry.item.part, say)
    counts = {"passages": document["passages"]["by_source"], "questions": document["questions"]["by_discipline"]}
    rows = [(kind, group, f"{count:,}") for kind, groups in counts.items() for group, count in groups.items()]
    table = Table(entry.heading, ("Drawn", "Of", "n"), tuple(rows), text_columns=2, caption=picture.caption)
    return Product(entry, [table], document, [picture])


def questions_by_year(statistics: Statistics) -> Grid:
    """Count the questions of each discipline by year, and their sums."""
    years = sorted({year for counts in statistics["by_exam"].values() for year in counts})
    counts_by_name = {name: statistics["by_exam"].get(discipline.value, {}) for name, discipline in ACRONYMS.items()}
    rows = {name: [counts.get(year, 0) for year in years] for name, counts in counts_by_name.items()}
    rows[TOTAL] = [sum(column) for column in zip(*rows.values(), strict=True)]
    return Grid(
        columns=(*map(str, years), TOTAL), rows={name: (*numbers, sum(numbers)) for name, numbers in rows.items()}
    )


def questions_by_split(statistics: Statistics) -> Grid:
    """Count the questions of each discipline in all, and in each official split."""
    rows: dict[str, list[float]] = {}
    for name, discipline in ACRONYMS.items():
        splits = statistics["by_split"].get(discipline.value, {})
        total = sum(statistics["by_exam"].get(discipline.value, {}).values())
        rows[name] = [total, *(splits.get(split, 0) for split in SPLITS)]
    rows[TOTAL] = [sum(column) for column in zip(*rows.values(), strict=True)]
    columns = (TOTAL, *(split.capitalize() for split in SPLITS))
    return Grid(columns=columns, rows={name: tuple(numbers) for name, numbers in rows.items()})


def tokens(questions: Sequence[Question]) -> Grid:
    """Count the tokens of the longest and of the mean question and answer of each discipline."""
    rows = {}
    for name, discipline in ACRONYMS.items():
        members = [question for question in questions if question.exam.discipline == discipline.value]
        texts = ([each.stem for each in members], [option.text for each in members for option in each.options])
        counts = [list(map(count_tokens, side)) for side in texts]
        if members:
            rows[name] = tuple(figure for side in counts for figure in (max(side), round(fmean(side), 2)))
    return Grid(columns=("Longest question", "Mean question", "Longest answer", "Mean answer"), rows=rows)


def _describe_explanations(entry: PaperEntry, title: str, spec: DatasetSpec) -> Product:
    """Count the documents and words of explained questions, or the percent of explanations by number of sentences."""
    statistics = compute_explanation_statistics(spec)
    if entry.item.shows == "sentences":
        rows = {name: (round(share, 2),) for name, share in statistics.sentences.items()}
        return set_beside(entry, Grid(columns=("CasiMedicos",), rows=rows), title)
    row = (statistics.documents, statistics.words, round(statistics.words_per_document))
    grid = Grid(columns=("Documents", "Words", "Words a document"), rows={"CasiMedicos with a case": row})
    if not statistics.specialties:
        return set_beside(entry, grid, title)
    name, count = next(iter(statistics.specialties.items()))
    product = set_beside(entry, grid, title, top_specialty={"name": name, "documents": count})
    top = Table("Top specialty", ("Specialty", "Documents"), ((name, f"{count:,}"),))
    return replace(product, blocks=[*product.blocks, top])
