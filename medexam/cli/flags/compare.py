"""How `medexam compare` compares, judges and sends."""

from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from medexam.cli.help.completion import complete_run
from medexam.cli.options import BaselineOption, JsonOption, LatexOption, RescoreOption, RunsDirOption
from medexam.cli.settings import Setting
from medexam.experiments.compare.further import SECTIONS
from medexam.plugins import load_added

RunsArgument = Annotated[
    tuple[Path, ...],
    typer.Argument(
        metavar="[RUN RUN...]",
        autocompletion=complete_run,
        help="The baseline, then what to compare with it: run folders, folders of runs, ids in the runs directory, or "
        "other harnesses' files of results, if an installed package reads them; all runs there by default.",
    ),
]


@dataclass(frozen=True)
class CoreSections:
    """What else the core finds."""

    equivalent_within: Annotated[
        float | None,
        Setting("Test whether each run differs from the baseline by less than POINTS, up or down.", metavar="POINTS"),
    ] = None
    ensemble: Annotated[
        Literal["vote", "mean_probability"] | None,
        Setting("Compare each run with what all would answer together."),
    ] = None
    languages: Annotated[bool, Setting("Runs in two languages or more: right in all, in some, in none.")] = False
    protocol: Annotated[bool, Setting("Show where the protocols of the runs differ.")] = False


if TYPE_CHECKING:
    SectionSettings = CoreSections
else:
    SectionSettings = make_dataclass(
        "SectionSettings", [], bases=(CoreSections, *load_added(SECTIONS).values()), frozen=True
    )
    """What the core finds, and what installed packages add."""


@dataclass(frozen=True)
class CompareSettings:
    """Which runs are compared, when that fails, and what is written; None or () for what is not asked for."""

    runs: RunsArgument = ()
    baseline: BaselineOption = None
    reading: Annotated[
        Literal["strict", "lenient"] | None,
        typer.Option(help="How to read the replies of all runs; by default as each run was scored."),
    ] = None
    fail_if: Annotated[
        str | None,
        typer.Option(metavar="worse:POINTS", help="Exit 1 unless every run is shown to lose fewer than POINTS."),
    ] = None
    as_json: JsonOption = False
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the comparison as Markdown.")] = None
    latex: LatexOption = None
    runs_dir: RunsDirOption = None
    rescore: RescoreOption = False
