"""Options and an exit code that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

INCOMPLETE = 3
"""Exit code of a command that left something undone, which the same command can finish."""

RunsDirOption = Annotated[Path | None, typer.Option(help="Where runs are kept; $MEDEXAM_RUNS or ./runs by default.")]
TrackingOption = Annotated[str | None, typer.Option(help="MLflow store or server; the runs' own by default.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
FailuresOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Stop when N questions have failed; no limit by default.")
]
AcceptOption = Annotated[
    bool,
    typer.Option(
        "--accept-model-change", help="Go on with another model than the one that began; every table then says so."
    ),
]
PathOption = Annotated[
    Path | None, typer.Option("--path", help="The file or folder to read instead of the usual ones.")
]
