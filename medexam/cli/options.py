"""Models of settings as flags, the options that several commands share, and an exit code."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer

from medexam.cli.settings import Setting
from medexam.errors import SpecError

LAYOUTS = "medexam.layouts"
"""The group in which packages add layouts: they take runs and have `blocks`, `markdown`, `latex` and `document`."""
INCOMPLETE = 3
"""Exit code of a command that left something undone, which the same command can finish."""


def _complete_override(incomplete: str) -> list[str]:
    """List what the KEY=VALUE of `--set` may go on with."""
    from medexam.specs.schema import complete_override as complete

    return complete(incomplete)


OverridesOption = Annotated[
    tuple[str, ...],
    Setting(
        "Override a key, such as dataset.language=es.", flag="--set", metavar="KEY=VALUE", complete=_complete_override
    ),
]
RunsDirOption = Annotated[Path | None, typer.Option(help="Where runs are kept; $MEDEXAM_RUNS or ./runs by default.")]
BaselineOption = Annotated[
    Path | None, typer.Option(metavar="RUN", help="The run that the others are compared with; the first by default.")
]
TrackingOption = Annotated[
    str | None, typer.Option(help="MLflow store or server; $MLFLOW_TRACKING_URI or the runs' own by default.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
LatexOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the tables in LaTeX (booktabs), for an author to include.")
]
FailuresOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Stop when N questions have failed; no limit by default.")
]
RayAddressOption = Annotated[
    str | None, Setting("ray: the cluster's head; by default one is started on this machine.", metavar="HOST:PORT")
]
RescoreOption = Annotated[
    bool,
    typer.Option("--rescore", help="Run the code that the runs name: benchmarks and metrics of your own score again."),
]
PathOption = Annotated[
    Path | None, typer.Option("--path", help="The file or folder to read instead of the usual ones.")
]


@contextmanager
def data_read_once() -> Iterator[None]:
    """Have a command read a data set once within the block; the module that keeps it takes a moment to import."""
    from medexam.datasets.kept import reads_kept

    with reads_kept():
        yield


def settings_as_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Turn `command` into typer's: a settings model becomes a flag for each field, and comes back as a model.

    Each field is `Annotated`: with a `Setting`, or as typer itself reads it. A tuple is a flag that may be repeated.
    """
    parameters = signature(command).parameters.values()
    models: dict[str, Any] = {
        parameter.name: parameter.annotation for parameter in parameters if is_dataclass(parameter.annotation)
    }

    @wraps(command, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def call(**values: Any) -> None:
        for name, model in models.items():
            values[name] = model(**{field.name: _value(field, values.pop(field.name)) for field in fields(model)})
        command(**values)

    flat: list[Parameter] = []
    for parameter in parameters:
        flat += map(_parameter, fields(models[parameter.name])) if parameter.name in models else [parameter]
    call.__dict__["__signature__"] = Signature([parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in flat])
    return call


def _parameter(field: Field[Any]) -> Parameter:
    """Convert a field to what typer takes."""
    kind, *notes = get_args(field.type)
    default = Parameter.empty if field.default is MISSING else field.default
    setting = Setting.of(field)
    if _repeats(field):
        kind, default = list.__class_getitem__(get_args(kind)[0]), None
    if setting is not None:
        alone = default is False  # typer would add --no-
        flags = [setting.flag_of(field.name)] if setting.flag or alone else []
        notes = [
            typer.Option(
                *flags,
                help=setting.help,
                metavar=setting.metavar,
                min=setting.min,
                max=setting.max,
                rich_help_panel=setting.panel,
                autocompletion=setting.complete,
            )
        ]
        if setting.parse is not None:
            kind = str
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, *notes])


def _value(field: Field[Any], value: Any) -> Any:
    """Return what the model is told where typer read `value`."""
    if _repeats(field):
        return tuple(value or ())
    setting = Setting.of(field)
    return setting.parse(value) if setting is not None and setting.parse and isinstance(value, str) else value


def _repeats(field: Field[Any]) -> bool:
    return get_origin(get_args(field.type)[0]) is tuple


def refuse(context: typer.Context, parameters: Collection[str] | type[Any], reason: str) -> None:
    """Raise `SpecError` if the command line gives one of these options or arguments, which would be ignored.

    `parameters` are their names, or the settings model that has them. `reason` says what they need, or which option
    to leave out.
    """
    names = {field.name for field in fields(parameters)} if isinstance(parameters, type) else parameters
    option_names = [
        parameter.opts[0] if parameter.param_type_name == "option" else str(parameter.name).upper()
        for parameter in context.command.params
        if parameter.name in names and _is_given(context, str(parameter.name))
    ]
    if option_names:
        raise SpecError(f"{', '.join(option_names)}: {reason}")


def refuse_others(context: typer.Context, names: Collection[str], reason: str) -> None:
    """Raise `SpecError` if the command line gives an option or argument that is not in `names`, as `refuse` does."""
    refuse(context, {str(parameter.name) for parameter in context.command.params} - set(names), reason)


def _is_given(context: typer.Context, parameter: str) -> bool:
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def check_resumed(run: str, runs_dir: Path | None) -> None:
    """Raise `SpecError` if `--resume` names a folder that does not lie in `--runs-dir`."""
    if runs_dir is not None and Path(run).is_dir() and Path(run).resolve().parent != runs_dir.resolve():
        raise SpecError(f"--resume {run} is outside --runs-dir {runs_dir}: leave out --runs-dir, or give the run's id")
