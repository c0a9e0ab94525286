"""`medexam reproduce`: one table or figure of a paper, ours beside theirs. `medexam index map`: a corpus on a plane."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from medexam.cli import (
    JsonOption,
    OverridesOption,
    RunsDirOption,
    Setting,
    TrackingOption,
    data_read_once,
    settings_as_flags,
)
from medexam.errors import SpecError


@dataclass(frozen=True)
class ReproduceSettings:
    """What is made, and how."""

    overrides: OverridesOption = ()
    limit: Annotated[int | None, Setting("Ask at most N questions of each run.", min=1)] = None
    runs_dir: RunsDirOption = None
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


def draw(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="An index that `medexam index build` made.")],
    dataset: Annotated[str, typer.Option(help="A data set of exams.")] = "headqa_v1",
    language: Annotated[str, typer.Option(help="The questions' language.")] = "en",
    sample: Annotated[int, typer.Option(min=1, help="At most this many passages, drawn at random.")] = 30_000,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR|FILE", help="A folder, or FILE.png, .pdf or .svg; map.png in the index by default."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Draw passages by source, their density, and questions by discipline on a UMAP projection.

    For example:
        medexam index map passages-index
    """
    from medexam_companions.papers.actions import place_on_map

    place_on_map(folder, dataset, language, sample, out or folder, as_json=as_json)
