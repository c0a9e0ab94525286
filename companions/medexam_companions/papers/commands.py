"""`medexam reproduce`: one table or figure of a paper, ours beside theirs."""

from typing import Annotated

import typer

from medexam.cli import JsonOption, data_read_once, settings_as_flags
from medexam.errors import SpecError
from medexam_companions.papers.settings import ReproduceSettings


@settings_as_flags
@data_read_once()
def reproduce(
    settings: ReproduceSettings,
    name: Annotated[
        str | None, typer.Argument(metavar="PAPER/TABLE", help="A name of --list.", show_default=False)
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List all tables and figures.")] = False,
    show_plan: Annotated[bool, typer.Option("--plan", help="Say what it needs and about how long it takes.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make a table or figure of a paper again, beside the printed one.

    For example:
        medexam reproduce --list
        medexam reproduce headqa-v1/table-5 --plan
    """
    if show_list or name is None:
        if name is not None:
            raise SpecError("--list names everything: leave out PAPER/TABLE, or --list")
        from medexam_companions.papers.views import print_list

        print_list(as_json=as_json)
        return
    from medexam_companions.papers.actions import make_entry

    make_entry(name, settings, show_plan=show_plan, as_json=as_json)
