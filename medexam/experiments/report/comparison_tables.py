"""A comparison on the terminal, on the page, in Markdown and in LaTeX: which of its tables and sentences are shown."""

from medexam.experiments.compare.result import Comparison, describe_all, describe_dropped
from medexam.experiments.report.markdown import render_markdown
from medexam.experiments.report.run_tables import describe_pending, table_runs
from medexam.experiments.report.shown import Block
from medexam.measures import paired_tables
from medexam.measures.comparing import FEW_CLUSTERS
from medexam.measures.results import Resampling
from medexam.measures.shown import describe_resampling
from medexam.measures.verdicts import measure_sentence, pair_sentences
from medexam.tables import Table

SHOWN_FLIPS = 10
"""Questions that the terminal names."""
REPORTED_FLIPS = 200
"""Questions that the report names; the JSON names all."""
SHOWN_PAIRS = 2
"""Pairs whose breakdowns the terminal shows; of more it shows none, for the other tables would be lost among them."""


def overall_tables(comparison: Comparison) -> list[Table]:
    """Build tables of scores and differences over all compared questions, and of what else was asked for."""
    names, paired = comparison.names, comparison.statistics
    tables = paired_tables.overall_tables(comparison.benchmark, paired, table_runs(comparison.runs))
    if comparison.own:
        title = f"Own metrics against {names[0]}"
        tables.append(paired_tables.difference_table(comparison.own, names, paired.clusters, title))
    return [*tables, *(table for section in comparison.sections for table in section.tables)]


def comparison_lines(comparison: Comparison) -> list[str]:
    """Describe what was compared: a sentence on the questions, then what to know of how the runs differ."""
    dataset, paired = comparison.runs[0].record.cell.dataset, comparison.statistics
    languages = list(dict.fromkeys(run.record.cell.dataset.language for run in comparison.runs))
    n, clusters = len(comparison.questions), len(set(paired.sheet.clusters))
    origin = f" of {clusters} {paired.clusters}" if clusters < n else ""
    lines = [
        f"{n} questions{origin} of {dataset.name} {', '.join(languages)}: those that "
        f"{describe_all(comparison.runs)} scored. {describe_dropped(comparison.exclusions)}."
    ]
    if paired.resampled != {Resampling.CLUSTERS}:
        lines.append(f"Intervals: {describe_resampling(paired.resampled, 'bootstrap', paired.clusters)}.")
    if Resampling.CLUSTERS in paired.resampled and clusters < FEW_CLUSTERS:
        lines.append(f"The intervals resample {clusters} {paired.clusters} only and are rough.")
    return lines + [f"{note[0].upper()}{note[1:]}." for note in comparison.notes]


def verdicts(comparison: Comparison) -> list[str]:
    """Write what may be said of each pair, and of what else was asked for."""
    names = comparison.names
    return [
        *pair_sentences(comparison.statistics, names),
        *(
            measure_sentence(name, names[0], metric, measure, comparison.statistics.clusters)
            for name, measures in zip(names[1:], comparison.own, strict=False)
            for metric, measure in measures.items()
        ),
        *(sentence for section in comparison.sections for sentence in section.sentences),
    ]


def comparison_blocks(comparison: Comparison, flips: int | None = None) -> list[Block]:
    """Show what may be said of each pair, what was compared, the tables, and what each run still has to ask.

    With `flips` all breakdowns and as many flipped questions; None: what a terminal has room for.
    """
    blocks: list[Block] = [*verdicts(comparison), *comparison_lines(comparison), *overall_tables(comparison)]
    if flips is not None or len(comparison.runs) - 1 <= SHOWN_PAIRS:
        blocks += paired_tables.breakdown_tables(comparison.benchmark, comparison.statistics, comparison.names)
    else:
        blocks.append("--markdown FILE and --json hold the breakdowns.")
    golds, limit = comparison.sets[0].golds, SHOWN_FLIPS if flips is None else flips
    blocks += paired_tables.flipped_tables(comparison.statistics, golds, comparison.names, limit) if limit else []
    return [*blocks, *describe_pending(zip(comparison.runs, comparison.pending, strict=True))]


def paired_report(comparison: Comparison) -> str:
    """Render what may be said, what was compared, the tables, and where the runs lie as Markdown."""
    baseline, *others = comparison.names
    rows = tuple((name, str(run.folder.path)) for name, run in zip(comparison.names, comparison.runs, strict=True))
    folders = Table("Runs", ("Run", "Folder"), rows, text_columns=2)
    blocks = comparison_blocks(comparison, REPORTED_FLIPS)
    return render_markdown(f"{', '.join(others)} against {baseline}", [*blocks, folders])
