"""`medexam reproduce`: one table or figure of a paper, ours beside theirs."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medexam.toolkit.commands import (
    INCOMPLETE,
    FailuresOption,
    JsonOption,
    OverridesOption,
    RunsDirOption,
    Setting,
    TrackingOption,
    data_read_once,
    print_json,
    print_notice,
    send_to_mlflow,
    settings_as_flags,
    write_file,
)
from medexam.toolkit.errors import SpecError

if TYPE_CHECKING:
    from medexam.companions.papers.making import Reproduced


@dataclass(frozen=True)
class ReproduceSettings:
    """What is made, and how."""

    overrides: OverridesOption = ()
    limit: Annotated[int | None, Setting("Ask at most N questions of each run.", min=1)] = None
    only: Annotated[tuple[str, ...], Setting("Only the runs of this spec; may be repeated.", metavar="SPEC")] = ()
    runs_dir: RunsDirOption = None
    max_failures: FailuresOption = None
    tracking_uri: TrackingOption = None
    out: Annotated[
        Path | None, Setting("Write figures: PNG into a folder, or FILE.pdf, .svg or .pgf.", metavar="DIR|FILE")
    ] = None
    markdown: Annotated[Path | None, Setting("Write the table as Markdown.", metavar="FILE")] = None


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
    """Make a table or figure of a paper again, beside the one that is printed."""
    from medexam.companions.papers.catalogue import find_paper_entry, list_entries

    if show_list or name is None:
        if name is not None:
            raise SpecError("--list names everything: leave out PAPER/TABLE, or --list")
        from medexam.companions.papers.views import print_list

        print_list(list_entries(), as_json=as_json)
        return
    entry = find_paper_entry(name)
    from medexam.companions.papers.making import plan
    from medexam.companions.papers.views import print_paper_plan, print_reproduced
    from medexam.toolkit.specs import parse_overrides

    overrides = parse_overrides(settings.overrides)
    planned = plan(entry, overrides, settings.limit, settings.only, runs_dir=settings.runs_dir, only_look=show_plan)
    if show_plan:
        print_paper_plan(planned, as_json=as_json)
        return
    for part in planned.parts:
        if part.missing:
            print_notice(f"left out {part.spec}: {part.missing}")
    from medexam import Limits
    from medexam.toolkit.progress import TerminalProgress
    from medexam.toolkit.runs import Carriers

    product = planned.make(Carriers(limits=Limits(failures=settings.max_failures)), TerminalProgress, print_notice)
    _write(product, settings)
    if as_json:
        print_json(product.document)
    else:
        print_reproduced(product)
    if product.runs:
        from medexam.toolkit.tracking import track

        send_to_mlflow(track, product.runs, tracking_uri=settings.tracking_uri, runs_dir=planned.runs_dir)
    if not product.complete:
        sys.stderr.write(f"medexam: {name} is incomplete; the same command asks what is pending\n")
        raise typer.Exit(INCOMPLETE)


def _write(product: "Reproduced", settings: ReproduceSettings) -> None:
    """Write what goes to files."""
    if settings.markdown is not None:
        write_file(product.markdown(), settings.markdown)
    if settings.out is not None:
        from medexam.toolkit.plots import write_pictures

        if not product.pictures:
            raise SpecError(f"--out: {product.entry.name} is a table and has no figure; leave it out")
        for path in write_pictures(product.pictures, settings.out, "--out"):
            print_notice(f"wrote {path}")
    elif product.pictures:
        print_notice("--out DIR writes the figure as PNG")
