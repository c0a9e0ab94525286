"""The flags of `medexam reproduce`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from medexam.cli import FailuresOption, OverridesOption, RunsDirOption, Setting, TrackingOption


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
