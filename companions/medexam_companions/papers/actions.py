"""What `medexam reproduce` does: make, print and write."""

import sys

import typer

from medexam.cli import INCOMPLETE, print_json, write_file
from medexam.errors import SpecError
from medexam.experiments import Terminal, print_blocks, render_markdown, write_plots
from medexam.specs import parse_overrides
from medexam.tables import Table
from medexam.text import print_notice
from medexam_companions.papers.commands import ReproduceSettings
from medexam_companions.papers.making import make
from medexam_companions.papers.paper import find_paper_entry, list_entries


def print_list(*, as_json: bool) -> None:
    """Print every table and figure, paper by paper, and why one is not made."""
    entries = list_entries()
    if as_json:
        print_json(
            [
                {
                    "name": entry.name,
                    "title": entry.item.title,
                    "specs": list(entry.item.specs),
                    "obstacle": entry.item.obstacle or None,
                }
                for entry in entries
            ]
        )
        return
    for paper in dict.fromkeys(entry.paper.layout for entry in entries):
        paper_entries = [entry for entry in entries if entry.paper.layout == paper]
        rows = []
        for entry in paper_entries:
            more = f"not made: {entry.item.obstacle}" if entry.item.obstacle else ", ".join(entry.item.specs)
            rows.append((entry.name, f"{entry.item.title} ({more})" if more else entry.item.title))
        title = f"{paper_entries[0].paper.paper} (arXiv {paper_entries[0].paper.arxiv})"
        table = Table(title, ("Name", "What"), tuple(rows), text_columns=2)
        print_blocks(Terminal(), [table])
    print_blocks(Terminal(), ["medexam reproduce NAME makes one; medexam plan SPEC says what one of its specs needs"])


def make_entry(name: str, settings: ReproduceSettings, *, as_json: bool) -> None:
    """Make a table or figure again; print and write it."""
    entry = find_paper_entry(name)
    product = make(
        entry,
        parse_overrides(settings.overrides or ()),
        settings.limit,
        runs_dir=settings.runs_dir,
        track=settings.tracking_uri or True,
        say=print_notice,
    )
    if settings.markdown is not None:
        write_file(render_markdown(entry.item.title, product.blocks), settings.markdown)
    if settings.out is not None:
        if not product.pictures:
            raise SpecError(f"--out: {name} is a table and has no figure; leave it out")
        for path in write_plots(product.pictures, settings.out, "--out"):
            print_notice(f"wrote {path}")
    elif product.pictures:
        print_notice("--out DIR writes the figure as PNG")
    if as_json:
        print_json(product.document)
    else:
        print_blocks(Terminal(), [*product.blocks, *([entry.item.note] if entry.item.note else [])])
    if not all(run.complete for run in product.runs):
        sys.stderr.write(f"medexam: {name} is incomplete; the same command asks what is pending\n")
        raise typer.Exit(INCOMPLETE)
