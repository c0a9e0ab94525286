"""Tables of what passages say of one run: its relevance quartiles and sources. A run without passages has none."""

from medexam.formatting import NONE, coefficient, p_value, percent, with_interval
from medexam.metrics import Metrics
from medexam.metrics.passages.results import RetrievalMetrics
from medexam.tables import Captioned, Table

SHOWN_SOURCES = 20
QUARTILES = ("1, lowest", "2", "3", "4, highest")
"""What the groups are called, from the lowest scores to the highest."""


def retrieval_tables(metrics: Metrics) -> list[Captioned]:
    """Relevance quartiles and sources, each with its caption; empty without passages."""
    retrieval = metrics.retrieval
    return [] if retrieval is None else [_quartiles(retrieval), _sources(retrieval)]


def _quartiles(retrieval: RetrievalMetrics) -> Captioned:
    rows = tuple(
        (
            name,
            NONE if part.low is None or part.high is None else f"{part.low:.4g} to {part.high:.4g}",
            str(part.n),
            with_interval(percent(part.accuracy), part.accuracy_interval),
        )
        for name, part in zip(QUARTILES, retrieval.quartiles, strict=True)
    )
    caption = f"{_correlation(retrieval)} Groups by the best passage's score, in the retriever's own unit"
    if retrieval.borders is not None:
        borders = ", ".join(f"{border:.4g}" for border in retrieval.borders)
        caption += f", with borders at its quartiles {borders} (numpy.quantile); equal scores stay together"
    caption += ". Accuracy: percent, unanswered counts as wrong, with a 95 % interval (Wilson)."
    if retrieval.without_passages:
        caption += f" Questions whose query found nothing: {retrieval.without_passages}."
    return Table("Relevance quartiles", ("Quartile", "Score", "n", "Accuracy"), rows), caption


def _correlation(retrieval: RetrievalMetrics) -> str:
    found = retrieval.score_correctness
    if found is None:
        return f"The score's correlation with being right cannot be told, n = {retrieval.n}."
    p = p_value(found.p)
    r, low, high = (coefficient(value) for value in (found.r, *found.interval))
    return (
        f"r = {r} [{low}, {high}], p {p.replace('<', '< ') if p.startswith('<') else f'= {p}'}, n = {retrieval.n}: "
        "correlation of the score with being right (point-biserial; HEAD-QA v2 reports 0.07 for MedCPT)."
    )


def _sources(retrieval: RetrievalMetrics) -> Captioned:
    shown = retrieval.by_source[:SHOWN_SOURCES]
    rows = tuple(
        (
            part.source,
            str(part.passages),
            percent(part.share),
            str(part.n),
            with_interval(percent(part.accuracy), part.accuracy_interval),
        )
        for part in shown
    )
    caption = (
        "Share: percent of the passages that were found. Best of: questions whose most relevant passage is of the "
        "source; accuracy is theirs, percent, with a 95 % interval (Wilson). "
        f"Questions whose passages were cut to fit the context: {retrieval.cut}."
    )
    if len(retrieval.by_source) > len(shown):
        caption += f" The {len(shown)} most frequent of {len(retrieval.by_source)} sources."
    return Table("Passages by source", ("Source", "Passages", "Share", "Best of", "Accuracy"), rows), caption
