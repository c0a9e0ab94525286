"""`medexam report`: tables and plots from stored runs, scored anew without asking a model."""

from contextlib import nullcontext

from medexam.cli.flags.report import ReportSettings
from medexam.cli.options import data_read_once, settings_as_flags
from medexam.cli.views.output import check_endings


@settings_as_flags
def report(settings: ReportSettings) -> None:
    """Show stored runs as tables and plots; scores them again, asks no model."""
    from medexam.cli.actions.report import report_runs

    files = {name: getattr(settings, name) for name in ("markdown", "latex", "html", "csv")}
    check_endings({f"--{name}": path for name, path in files.items()})
    # A page that is watched reads its runs anew.
    with nullcontext() if settings.watch is not None else data_read_once():
        report_runs(settings)
