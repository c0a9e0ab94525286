"""What `medexam cliniqlink` does: score submissions, rank them, and run participants' containers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medexam.cli import Terminal, print_json, print_notice, print_tables, write_file
from medexam.experiments import captioned, default_runs_dir, join_markdown, render_latex, run_document
from medexam_companions.cliniqlink.feedback import format_table, overall_text, write_feedback
from medexam_companions.cliniqlink.ranking import Profile, rank_submissions, ranking_document, ranking_tables
from medexam_companions.cliniqlink.submissions import Missing, read_submissions


def score_outputs(
    submission: Path,
    data: Path | None,
    missing: Missing,
    feedback: Path | None,
    runs_dir: Path | None,
    *,
    show_expected: bool,
    as_json: bool,
) -> None:
    """Score a participant's outputs, and write feedback."""
    entries = read_submissions([submission], data, runs_dir or default_runs_dir(), missing)
    for entry in entries:
        if entry.coverage:
            print_notice(f"warning: {entry.coverage}")
        print_notice(f"{entry.run.folder.path}")
    if feedback is not None:
        write_file("\n".join(write_feedback(entry, show_expected=show_expected) for entry in entries), feedback)
    if as_json:
        print_json([_document(entry) for entry in entries])
        return
    for entry in entries:
        caption = (
            f"Percent: {overall_text(entry)} Lost by form: what closed answers would gain if their form did not count."
        )
        print_tables(Terminal(), [(format_table(entry), caption)])


def rank_outputs(
    submissions: Sequence[Path],
    by: Profile,
    data: Path | None,
    missing: Missing,
    markdown: Path | None,
    latex: Path | None,
    runs_dir: Path | None,
    *,
    as_json: bool,
) -> None:
    """Rank submissions, and show or write the tables."""
    entries = read_submissions(submissions, data, runs_dir or default_runs_dir(), missing)
    for entry in entries:
        if entry.coverage:
            print_notice(f"warning: {entry.coverage}")
    ranked = rank_submissions(entries, by)
    tables = ranking_tables(ranked, by)
    if markdown is not None:
        write_file(join_markdown(["# ClinIQLink", *captioned(tables)]), markdown)
    if latex is not None:
        write_file(render_latex(tables), latex, "--latex")
    if as_json:
        print_json(ranking_document(ranked, by))
    else:
        print_tables(Terminal(), tables)


def _document(entry: Any) -> dict[str, Any]:
    return {
        "submission": entry.name,
        **run_document(entry.run),
        "metrics": entry.metrics.model_dump(mode="json"),
        "absent": list(entry.absent),
        "missing": entry.missing,
    }
