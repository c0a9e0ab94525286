"""A comparison in Markdown: what `medexam compare --markdown` writes and MLflow shows."""

from collections.abc import Sequence

from medexam.experiments.compare.result import Comparison
from medexam.experiments.report.comparison_tables import headline, overall_tables, verdicts
from medexam.experiments.report.markdown_parts import render_table
from medexam.tables import Captioned, Table

SHOWN_FLIPS = 200
"""Questions that the report names; the JSON names all."""


def paired_report(comparison: Comparison) -> str:
    """What was compared, what may be said of it, the tables, and where the runs lie."""
    found, names = comparison.found, comparison.names
    tables = [*overall_tables(comparison), *found.breakdown_tables(names), *found.flipped_tables(names, SHOWN_FLIPS)]
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
        f"# {', '.join(others)} against {baseline}",
        *lines,
        "\n".join(f"- {sentence}" for sentence in said),
    ]
    for table, caption in tables:
        parts += [f"## {table.title}", render_table(table), caption]
    parts += ["## Runs", render_table(folders)]
    return "\n\n".join(filter(None, parts)) + "\n"
