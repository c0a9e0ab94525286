"""A comparison on the terminal and in Markdown: which of its tables and sentences are shown."""

from collections.abc import Sequence

from medexam.benchmarks.paired import FEW_CLUSTERS
from medexam.benchmarks.resampling import describe_resampling
from medexam.experiments.compare.result import Comparison, describe_all, describe_dropped
from medexam.experiments.report.escaping import heading
from medexam.experiments.report.latex import render_latex
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
    """Build the tables on the terminal, with the breakdowns of `SHOWN_PAIRS` pairs at most."""
    paired_runs, names = comparison.statistics, comparison.names
    tables = overall_tables(comparison)
    if len(names) - 1 <= SHOWN_PAIRS:
        tables += paired_runs.breakdown_tables(names)
    return [*tables, *paired_runs.flipped_tables(names, SHOWN_FLIPS)]


def overall_tables(comparison: Comparison) -> list[Captioned]:
    """Build tables of scores and differences over all compared questions, and of what else was asked for, with
    captions.
    """
    section_tables = (table for section in comparison.sections for table in section.tables(comparison.names))
    return [
        *comparison.statistics.overall_tables(table_runs(comparison.runs)),
        *paired_tables(comparison),
        *section_tables,
    ]


def comparison_lines(comparison: Comparison) -> list[str]:
    """Describe what was compared: a sentence on the questions, then what to know of how the runs differ."""
    dataset, paired_runs = comparison.runs[0].record.cell.dataset, comparison.statistics
    languages = list(dict.fromkeys(run.record.cell.dataset.language for run in comparison.runs))
    lines = [
        f"{len(comparison.questions)} questions{paired_runs.origin} of {dataset.name} {', '.join(languages)}: "
        f"those that {describe_all(comparison.runs)} scored. {describe_dropped(comparison.exclusions)}."
    ]
    (clusters,) = paired_runs.size.values()
    if paired_runs.resampled != {Resampling.CLUSTERS}:
        lines.append(f"Intervals: {describe_resampling(paired_runs.resampled, 'bootstrap', paired_runs.clusters)}.")
    if Resampling.CLUSTERS in paired_runs.resampled and clusters < FEW_CLUSTERS:
        lines.append(f"The intervals resample {clusters} {paired_runs.clusters} only and are rough.")
    return lines + [f"{note[0].upper()}{note[1:]}." for note in comparison.notes]


def verdicts(comparison: Comparison) -> list[str]:
    """Describe in sentences what may be said of each pair, and of what else was asked for."""
    section_sentences = (
        sentence for section in comparison.sections for sentence in section.sentences(comparison.names)
    )
    return [*comparison.statistics.sentences(comparison.names), *paired_sentences(comparison), *section_sentences]


def comparison_latex(comparison: Comparison) -> str:
    """Render the tables of scores and differences in LaTeX; what was compared and may be said of it are comments."""
    breakdowns = comparison.statistics.breakdown_tables(comparison.names)
    notes = [*comparison_lines(comparison), *verdicts(comparison)]
    return render_latex([*overall_tables(comparison), *breakdowns], notes)


REPORTED_FLIPS = 200
"""Questions that the report names; the JSON names all."""


def paired_report(comparison: Comparison) -> str:
    """Render what was compared, what may be said of it, the tables, and where the runs lie."""
    paired_runs, names = comparison.statistics, comparison.names
    tables = [
        *overall_tables(comparison),
        *paired_runs.breakdown_tables(names),
        *paired_runs.flipped_tables(names, REPORTED_FLIPS),
    ]
    return render_comparison(comparison, comparison_lines(comparison), verdicts(comparison), tables)


def render_comparison(
    comparison: Comparison, lines: Sequence[str], sentences: Sequence[str], tables: Sequence[Captioned]
) -> str:
    """Render a report of any comparison: `lines` on what was compared, `sentences` on what may be said of it, and
    tables with captions.
    """
    baseline, *others = comparison.names
    folders = Table(
        "Runs",
        ("Run", "What", "Asked", "Pending", "Folder"),
        tuple(
            (name, run.title, str(question_count), str(pending), str(run.folder.path))
            for name, run, question_count, pending in zip(
                comparison.names, comparison.runs, comparison.question_counts, comparison.pending, strict=True
            )
        ),
        text_columns=2,
    )
    parts = [
        heading(1, f"{', '.join(others)} against {baseline}"),
        *lines,
        "\n".join(f"- {sentence}" for sentence in sentences),
    ]
    for table, caption in tables:
        parts += [heading(2, table.title), render_table(table), caption]
    parts += ["## Runs", render_table(folders)]
    return join_markdown(filter(None, parts))
