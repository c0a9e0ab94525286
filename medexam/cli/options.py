"""Options and an exit code that several commands share."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

from medexam.errors import SpecError

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


def refuse(context: typer.Context, parameters: Collection[str], why: str) -> None:
    """Raises `SpecError` if the command line gives one of these options or arguments, which would be ignored.

    `why` says what they need, or which option to leave out.
    """
    given = [
        parameter.opts[0] if parameter.param_type_name == "option" else str(parameter.name).upper()
        for parameter in context.command.params
        if parameter.name in parameters and _is_given(context, str(parameter.name))
    ]
    if given:
        raise SpecError(f"{', '.join(given)}: {why}")


def refuse_others(context: typer.Context, allowed: Collection[str], why: str) -> None:
    """Raises `SpecError` if the command line gives an option or argument that is not `allowed`, as `refuse` does."""
    refuse(context, {str(parameter.name) for parameter in context.command.params} - set(allowed), why)


def _is_given(context: typer.Context, parameter: str) -> bool:
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def check_resumed(run: str, runs_dir: Path | None) -> None:
    """Raises `SpecError` if `--resume` names a folder that does not lie in `--runs-dir`."""
    if runs_dir is not None and Path(run).is_dir() and Path(run).resolve().parent != runs_dir.resolve():
        raise SpecError(
            f"--resume {run} is a folder outside --runs-dir {runs_dir}: leave out --runs-dir, or give an id"
        )
