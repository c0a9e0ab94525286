"""`medexam audit`: a sample of answers for people to judge, and how far measures agree with them; asks no model."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medexam.companions.audit.judge_command import judge_errors
from medexam.toolkit.commands import (
    JsonOption,
    RunsDirOption,
    Terminal,
    default_runs_dir,
    print_json,
    print_tables,
    run_paths,
    write_file,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medexam.toolkit.data import AuditItem

app = typer.Typer(help="Have people or a model judge answers, and compare their marks.", no_args_is_help=True)
app.command("judge")(judge_errors)


@app.command()
def export(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run folders, folders of runs, or ids in the runs directory."),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to make for the sheets and the key.")],
    per_group: Annotated[int, typer.Option(min=1, metavar="N", help="Answers of each run in each group.")] = 10,
    top: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Judge only the N best answers to each question; all by default."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="MEASURE", help="The measure that says which are best, with --top.")
    ] = None,
    raters: Annotated[int, typer.Option(min=1, metavar="N", help="How many sheets to write.")] = 2,
    seed: Annotated[int, typer.Option(help="Chooses the answers and the order of each sheet.")] = 0,
    runs_dir: RunsDirOption = None,
) -> None:
    """Write a sheet for each rater: a sample of answers, blinded, each sheet in an order of its own."""
    from medexam.companions.audit.folder import INSTRUCTIONS, KEY, AuditFolder, write_sheets
    from medexam.companions.audit.items import best_answers, choose_sample, read_audit_items
    from medexam.toolkit.errors import SpecError
    from medexam.toolkit.runs import find_runs

    folders = find_runs(run_paths(runs, runs_dir or default_runs_dir()))
    items = read_audit_items(folders)
    if by is not None and top is None:
        raise SpecError("--by chooses the measure of --top: give --top with it, such as --top 1")
    sample = choose_sample(items if top is None else best_answers(items, top, by), per_group, seed)
    sheets = write_sheets(
        AuditFolder(out), sample, raters, seed, {folder.read_record().run_id: folder.path for folder in folders}
    )
    sys.stdout.write(f"{_describe(sample)}.\n")
    sys.stdout.write(
        f"Give each rater one of {', '.join(path.name for path in sheets)} and {INSTRUCTIONS}; keep {KEY} to "
        f"yourself. Put the filled-in sheets back into {out}, then: medexam audit import {shlex.quote(str(out))}\n"
    )


@app.command("import")
def import_ratings(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR|FILE", help="The folder that `export` made, or the sheet that a page saved."),
    ],
    sheet: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A filled-in sheet; may be repeated. All CSV files of DIR by default."),
    ] = None,
    runs_dir: RunsDirOption = None,
    as_json: JsonOption = False,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as Markdown.")] = None,
) -> None:
    """Read filled-in sheets: how far raters agree with each other and each automatic measure with them.

    Marks of answers that have changed since they were exported are left out and named.
    """
    from medexam.companions.audit.folder import AuditFolder
    from medexam.companions.audit.page_marks import find_page_sheets, read_page_ratings
    from medexam.companions.audit.ratings import check_answers, describe_changes, read_ratings
    from medexam.companions.audit.result import audit_document, find_audit
    from medexam.companions.audit.tables import audit_report, audit_tables

    place = runs_dir or default_runs_dir()
    if page_sheets := find_page_sheets(folder):
        ratings = read_page_ratings([*page_sheets, *(sheet or ())], place)
    else:
        ratings = check_answers(read_ratings(AuditFolder(folder), sheet or ()), place)
    sys.stderr.write("".join(f"medexam: {line}\n" for line in describe_changes(ratings)))
    audit = find_audit(ratings)
    if markdown is not None:
        write_file(audit_report(audit), markdown)
    if as_json:
        print_json(audit_document(audit))
        return
    print_tables(Terminal(), audit_tables(audit))


def _describe(sample: "Sequence[AuditItem]") -> str:
    """Say how many answers, of how many runs, to how many questions, and how many of these all runs share."""
    runs = {item.run for item in sample}
    runs_by_question: dict[str, set[str]] = {}
    for item in sample:
        runs_by_question.setdefault(item.key, set()).add(item.run)
    line = f"{len(sample)} answers of {len(runs)} runs to {len(runs_by_question)} questions"
    if len(runs) == 1:
        return line
    shared = sum(run_ids == runs for run_ids in runs_by_question.values())
    return f"{line}; every run is judged on {'all' if shared == len(runs_by_question) else shared} of these questions"
