"""Options that several commands share, the words that a shell completes, and options that a command refuses."""

from collections.abc import Callable, Collection
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from medexam.errors import SpecError

INCOMPLETE = 3
"""Exit code of a command that left something undone, which the same command can finish."""


SPEC_HELP = "A YAML file, the name of a shipped experiment or data set, or a table of your own questions."
OverridesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key, such as dataset.language=es.",
    ),
]
RunsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="RUN",
        show_default=False,
        help="Run folders, folders of runs, or ids in the runs directory; all runs there by default.",
    ),
]
RUNS = Path("runs")
RunsDirOption = Annotated[Path, typer.Option(envvar="MEDEXAM_RUNS", help="Where runs are kept.")]
BaselineOption = Annotated[
    Path | None, typer.Option(metavar="RUN", help="The run that the others are compared with; the first by default.")
]
TrackingOption = Annotated[
    str | None, typer.Option(help="MLflow store or server; $MLFLOW_TRACKING_URI or the runs' own by default.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def check_ending(parameter: typer.CallbackParam, path: Path | None) -> Path | None:
    """Return the file of an option; raise `SpecError` if its ending is of what another option writes."""
    option, writers = parameter.opts[0], {".md": "--markdown", ".tex": "--latex", ".html": "--html", ".csv": "--csv"}
    if path is not None and (other := writers.get(path.suffix.lower(), option)) != option:
        raise SpecError(f"{option} {path}: {other} writes such a file: give {other} {path}, or choose another name")
    return path


MarkdownOption = Annotated[
    Path | None, typer.Option(metavar="FILE", callback=check_ending, help="Write all of it as Markdown.")
]
LatexOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        callback=check_ending,
        help="Write the tables in LaTeX (booktabs), for an author to include.",
    ),
]
FailuresOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Stop when N questions have failed; no limit by default.")
]
RayAddressOption = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="ray: the cluster's head; by default one is started on this machine."),
]
RescoreOption = Annotated[
    bool,
    typer.Option("--rescore", help="Run the code that the runs name: benchmarks and metrics of your own score again."),
]
PathOption = Annotated[
    Path | None, typer.Option("--path", help="The file or folder to read instead of the usual ones.")
]


def settings_as_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Have typer read each field of a parameter that is a dataclass as an option of its own."""
    parameters = signature(command).parameters.values()
    models: dict[str, Any] = {one.name: one.annotation for one in parameters if is_dataclass(one.annotation)}

    @wraps(command, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def call(**values: Any) -> None:
        for name, model in models.items():
            values[name] = model(**{field.name: values.pop(field.name) for field in fields(model)})
        command(**values)

    flat: list[Parameter] = []
    for one in parameters:
        if one.name not in models:
            flat.append(one.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        for field in fields(models[one.name]):
            default = Parameter.empty if field.default is MISSING else field.default
            flat.append(Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=field.type))
    call.__dict__["__signature__"] = Signature(flat)
    return call


def refuse(context: typer.Context, names: Collection[str], reason: str) -> None:
    """Raise `SpecError` if the command line gives one of these options or arguments, which would be ignored.

    `reason` says what they need, or which option to leave out.
    """
    flags = [
        parameter.opts[0] if parameter.param_type_name == "option" else str(parameter.name).upper()
        for parameter in context.command.params
        if parameter.name in names and (source := context.get_parameter_source(str(parameter.name)))
        if source.name == "COMMANDLINE"
    ]
    if flags:
        raise SpecError(f"{', '.join(flags)}: {reason}")
