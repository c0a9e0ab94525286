"""`medexam reproduce`: one table or figure of a paper, ours beside theirs."""

from pathlib import Path
from typing import Annotated

import typer

from medexam.cli import RUNS, JsonOption, OverridesOption, RunsDirOption, TrackingOption
from medexam.errors import SpecError
from medexam.kept import reads_kept


@reads_kept()
def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="PAPER/TABLE", help="A name of --list.", show_default=False)
    ] = None,
    overrides: OverridesOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Ask at most N questions of each run.")] = None,
    runs_dir: RunsDirOption = RUNS,
    tracking_uri: TrackingOption = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR|FILE", help="Write figures: PNG into a folder, or FILE.pdf, .svg or .pgf."),
    ] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table as Markdown.")] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List all tables and figures.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make a table or figure of a paper again, beside the printed one.

    For example:
        medexam reproduce --list
        medexam reproduce headqa-v1/table-5
    """
    from medexam.cli import INCOMPLETE, print_json, write_file
    from medexam.experiments import Terminal, print_blocks, render_markdown, write_plots
    from medexam.specs import parse_overrides
    from medexam.text import print_notice
    from medexam_companions.papers.making import make
    from medexam_companions.papers.paper import find_paper_entry

    if show_list and name is not None:
        raise SpecError("--list names everything: leave out PAPER/TABLE, or --list")
    if name is None:
        _print_list(as_json=as_json)
        return
    entry = find_paper_entry(name)
    product = make(
        entry,
        parse_overrides(overrides or ()),
        limit,
        runs_dir=runs_dir,
        track=tracking_uri or True,
        say=print_notice,
    )
    if markdown is not None:
        write_file(render_markdown(entry.item.title, product.blocks), markdown)
    if out is not None:
        if not product.pictures:
            raise SpecError(f"--out: {name} is a table and has no figure; leave it out")
        for path in write_plots(product.pictures, out, "--out"):
            print_notice(f"wrote {path}")
    elif product.pictures:
        print_notice("--out DIR writes the figure as PNG")
    if as_json:
        print_json(product.document)
    else:
        print_blocks(Terminal(), [*product.blocks, *([entry.item.note] if entry.item.note else [])])
    if not all(run.complete for run in product.runs):
        print_notice(f"{name} is incomplete; the same command asks what is pending")
        raise typer.Exit(INCOMPLETE)


def _print_list(*, as_json: bool) -> None:
    """Print every table and figure, paper by paper, and why one is not made."""
    from medexam.cli import print_json
    from medexam.experiments import Terminal, print_blocks
    from medexam.tables import Table
    from medexam_companions.papers.paper import list_entries

    entries = [
        {
            "name": one.name,
            "title": one.item.title,
            "specs": list(one.item.specs),
            "obstacle": one.item.obstacle or None,
        }
        for one in list_entries()
    ]
    if as_json:
        print_json(entries)
        return
    rows: dict[str, list[tuple[str, str]]] = {}
    for entry in list_entries():
        more = f"not made: {entry.item.obstacle}" if entry.item.obstacle else ", ".join(entry.item.specs)
        line = f"{entry.item.title} ({more})" if more else entry.item.title
        rows.setdefault(f"{entry.paper.paper} (arXiv {entry.paper.arxiv})", []).append((entry.name, line))
    tables = [Table(title, ("Name", "What"), tuple(lines), text_columns=2) for title, lines in rows.items()]
    print_blocks(
        Terminal(), [*tables, "medexam reproduce NAME makes one; medexam plan SPEC says what one of its specs needs"]
    )
