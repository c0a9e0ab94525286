"""Tables of what passages tell: of one run its relevance quartiles and sources, of several the answers that flipped.

For the terminal and for Markdown, each with a caption that says how to read it. A run without passages has none.
"""

from collections.abc import Sequence

from medexam.experiments.compare.baselines import Against, Contrast
from medexam.experiments.report.formatting import NONE, percent, with_interval
from medexam.experiments.report.tables import Table, TerminalTable
from medexam.experiments.store.stored_run import ExamRun
from medexam.metrics import Metrics
from medexam.metrics.passages.results import RetrievalMetrics

SHOWN_FLIPS = 10
"""Questions that are named of each way to flip."""
SHOWN_SOURCES = 20
QUARTILES = ("1, lowest", "2", "3", "4, highest")
"""What the groups are called, from the lowest scores to the highest."""


def build_retrieval_tables(run: ExamRun) -> list[TerminalTable]:
    """The tables of one run, ready for `Console.print`; empty for a run without passages."""
    return [TerminalTable(table, caption) for table, caption in retrieval_tables(run.metrics)]


def build_contrast_tables(contrasts: Sequence[Contrast]) -> list[TerminalTable]:
    """One table for each baseline, ready for `Console.print`."""
    return [TerminalTable(*contrast_table(contrast)) for contrast in contrasts]


def retrieval_tables(metrics: Metrics) -> list[tuple[Table, str]]:
    """Relevance quartiles and sources, each with its caption; empty without passages."""
    retrieval = metrics.retrieval
    return [] if retrieval is None else [_quartiles(retrieval), _sources(retrieval)]


def contrast_table(contrast: Contrast) -> tuple[Table, str]:
    """One row for each run that adds passages to the baseline, and the caption."""
    rows = tuple(_contrast_row(against) for against in contrast.against)
    headers = ("Program", "n", "Right to wrong", "Wrong to right", "Both right", "Both wrong", "p")
    caption = (
        "Questions, from the baseline to the program; unanswered counts as wrong. "
        "p: McNemar's exact test on the questions that flipped, two-sided."
    )
    left_out = sum(against.flips.left_out for against in contrast.against)
    if left_out:
        caption += f" Left out, failed or missing in either run: {left_out}."
    return Table(f"Against {contrast.baseline.title}", headers, rows), caption


def flipped_tables(against: Against) -> list[Table]:
    """The first questions of each way to flip, with the passages that were found for them; none where none flipped."""
    ways = {"right to wrong": against.flips.right_to_wrong, "wrong to right": against.flips.wrong_to_right}
    return [
        Table(
            f"{against.run.program}: {way} ({_shown(len(keys))})",
            ("Question", "Passages, most relevant first"),
            tuple(
                (f"`{key}`", ", ".join(f"`{passage}`" for passage in against.passages[key]) or NONE)
                for key in keys[:SHOWN_FLIPS]
            ),
            text_columns=2,
        )
        for way, keys in ways.items()
        if keys
    ]


def p_value(p: float) -> str:
    """Three decimals, and no less than can be told in them."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def coefficient(value: float) -> str:
    """A correlation with two decimals, without a minus before a zero."""
    return f"{round(value, 2) + 0.0:.2f}"


def _quartiles(retrieval: RetrievalMetrics) -> tuple[Table, str]:
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


def _sources(retrieval: RetrievalMetrics) -> tuple[Table, str]:
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


def _contrast_row(against: Against) -> tuple[str, ...]:
    flips = against.flips
    counts = (flips.n, len(flips.right_to_wrong), len(flips.wrong_to_right), flips.both_right, flips.both_wrong)
    return (against.run.program, *map(str, counts), p_value(flips.p) if flips.n else NONE)


def _shown(count: int) -> str:
    return str(count) if count <= SHOWN_FLIPS else f"first {SHOWN_FLIPS} of {count}"
