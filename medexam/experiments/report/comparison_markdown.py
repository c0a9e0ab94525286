"""A comparison in Markdown: what `medexam compare --markdown` writes and MLflow shows."""

from collections.abc import Sequence
from pathlib import Path

from medexam.errors import RunFolderError
from medexam.experiments.compare.result import Compared, Comparison
from medexam.experiments.report.comparison_tables import (
    breakdown_tables,
    flipped_tables,
    headline,
    overall_tables,
    verdicts,
)
from medexam.experiments.report.markdown_parts import render_table
from medexam.experiments.report.tables import Table
from medexam.experiments.store.stored_run import AnyMetrics

SHOWN_FLIPS = 200
"""Questions that the report names; the JSON names all."""


def paired_report(comparison: Comparison) -> str:
    """What was compared, what may be said of it, the tables, and where the runs lie."""
    tables = [*overall_tables(comparison), *breakdown_tables(comparison), *flipped_tables(comparison, SHOWN_FLIPS)]
    return render_comparison(comparison, headline(comparison), verdicts(comparison), tables)


def render_comparison(
    comparison: Compared[AnyMetrics], lines: Sequence[str], said: Sequence[str], tables: Sequence[tuple[Table, str]]
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


def write_paired_report(comparison: Comparison, path: Path) -> None:
    """Write the report; raises `RunFolderError` where that fails."""
    write_markdown(paired_report(comparison), path)


def write_markdown(text: str, path: Path) -> None:
    """Write what `--markdown` asks for; raises `RunFolderError` where that fails."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunFolderError(f"cannot write {path}: {error}; choose another file with --markdown") from None
