"""A comparison on the terminal and in Markdown: which of its tables and sentences are shown."""

from collections.abc import Sequence

from medexam.benchmarks.paired import FEW_CLUSTERS
from medexam.benchmarks.resampling import describe_resampling
from medexam.experiments.compare.result import Comparison, describe_all, describe_dropped
from medexam.experiments.report.escaping import heading
from medexam.experiments.report.markdown import join_markdown, render_table
from medexam.experiments.report.own_tables import paired_sentences, paired_tables
from medexam.experiments.report.tables import table_runs
from medexam.metrics.results import Resampling
from medexam.tables import Captioned, Table

SHOWN_FLIPS = 10
"""Questions that the terminal names."""
SHOWN_PAIRS = 2
"""Pairs whose breakdowns the terminal shows; of more it shows none, for the other tables would be lost among them."""


def comparison_tables(comparison: Comparison) -> list[Captioned]:
    """The tables on the terminal, with the breakdowns of `SHOWN_PAIRS` pairs at most."""
    found, names = comparison.found, comparison.names
    tables = overall_tables(comparison)
    if len(names) - 1 <= SHOWN_PAIRS:
        tables += found.breakdown_tables(names)
    return [*tables, *found.flipped_tables(names, SHOWN_FLIPS)]


def overall_tables(comparison: Comparison) -> list[Captioned]:
    """Scores and differences over all compared questions, and what else was asked for, each with its caption."""
    more = (table for section in comparison.sections for table in section.tables(comparison.names))
    return [*comparison.found.overall_tables(table_runs(comparison.runs)), *paired_tables(comparison), *more]


def headline(comparison: Comparison) -> list[str]:
    """What was compared: a sentence on the questions, then what to know of how the runs differ."""
    dataset, found = comparison.runs[0].record.cell.dataset, comparison.found
    languages = list(dict.fromkeys(run.record.cell.dataset.language for run in comparison.runs))
    lines = [
        f"{len(comparison.questions)} questions{found.origin} of {dataset.name} {', '.join(languages)}: "
        f"those that {describe_all(comparison.runs)} scored. {describe_dropped(comparison.dropped)}."
    ]
    (clusters,) = found.size.values()
    if found.resampled != {Resampling.CLUSTERS}:
        lines.append(f"Intervals: {describe_resampling(found.resampled, 'bootstrap', found.clusters)}.")
    if Resampling.CLUSTERS in found.resampled and clusters < FEW_CLUSTERS:
        lines.append(f"The intervals resample {clusters} {found.clusters} only and are rough.")
    return lines + [f"{note[0].upper()}{note[1:]}." for note in comparison.notes]


def verdicts(comparison: Comparison) -> list[str]:
    """What may be said of each pair, and of what else was asked for, in sentences."""
    more = (said for section in comparison.sections for said in section.sentences(comparison.names))
    return [*comparison.found.sentences(comparison.names), *paired_sentences(comparison), *more]


REPORTED_FLIPS = 200
"""Questions that the report names; the JSON names all."""


def paired_report(comparison: Comparison) -> str:
    """What was compared, what may be said of it, the tables, and where the runs lie."""
    found, names = comparison.found, comparison.names
    tables = [*overall_tables(comparison), *found.breakdown_tables(names), *found.flipped_tables(names, REPORTED_FLIPS)]
    return render_comparison(comparison, headline(comparison), verdicts(comparison), tables)


def render_comparison(
    comparison: Comparison, lines: Sequence[str], said: Sequence[str], tables: Sequence[Captioned]
) -> str:
    """A report of any comparison: `lines` on what was compared, what may be `said` of it, and tables with captions."""
    baseline, *others = comparison.names
    folders = Table(
        "Runs",
        ("Run", "What", "Asked", "Pending", "Folder"),
        tuple(
            (name, run.title, str(asked), str(pending), str(run.folder.path))
            for name, run, asked, pending in zip(
                comparison.names, comparison.runs, comparison.asked, comparison.pending, strict=True
            )
        ),
        text_columns=2,
    )
    parts = [
        heading(1, f"{', '.join(others)} against {baseline}"),
        *lines,
        "\n".join(f"- {sentence}" for sentence in said),
    ]
    for table, caption in tables:
        parts += [heading(2, table.title), render_table(table), caption]
    parts += ["## Runs", render_table(folders)]
    return join_markdown(filter(None, parts))
