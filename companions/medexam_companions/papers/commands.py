"""`medexam reproduce`: one table or figure of a paper, ours beside theirs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from medexam.cli import (
    JsonOption,
    OverridesOption,
    RunsDirOption,
    TrackingOption,
    settings_as_flags,
)
from medexam.errors import SpecError
from medexam.kept import reads_kept


@dataclass(frozen=True)
class ReproduceSettings:
    """What is made, and how."""

    overrides: OverridesOption = None
    limit: Annotated[int | None, typer.Option(min=1, help="Ask at most N questions of each run.")] = None
    runs_dir: RunsDirOption = None
    tracking_uri: TrackingOption = None
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR|FILE", help="Write figures: PNG into a folder, or FILE.pdf, .svg or .pgf."),
    ] = None
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table as Markdown.")] = None


@settings_as_flags
@reads_kept()
def reproduce(
    settings: ReproduceSettings,
    name: Annotated[
        str | None, typer.Argument(metavar="PAPER/TABLE", help="A name of --list.", show_default=False)
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List all tables and figures.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make a table or figure of a paper again, beside the printed one.

    For example:
        medexam reproduce --list
        medexam reproduce headqa-v1/table-5
    """
    from medexam_companions.papers.actions import make_entry, print_list

    if show_list and name is not None:
        raise SpecError("--list names everything: leave out PAPER/TABLE, or --list")
    if name is None:
        print_list(as_json=as_json)
    else:
        make_entry(name, settings, as_json=as_json)
