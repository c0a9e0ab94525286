"""Reports in Python."""

from collections.abc import Sequence
from pathlib import Path

from medexam.experiments.api.results import Runs
from medexam.experiments.api.runs import RunSource, load_run
from medexam.experiments.entry.report import Report
from medexam.experiments.report.shown import write_report


def report(
    runs: RunSource | Runs,
    *more: RunSource,
    html: str | Path | None = None,
    markdown: str | Path | None = None,
    plots: str | Path | None = None,
    metrics: Sequence[str] = (),
    runs_dir: str | Path | None = None,
) -> Report:
    """The report on stored runs, which shows itself; asks no model.

    `html` is a file for one page with tables, pictures and every question, `markdown` one for the report as Markdown,
    `plots` a folder for plots (PNG). `metrics` are those of `load_run`. Raises `SpecError` if no table holds all
    runs, and `RunFolderError` if a file cannot be written.
    """
    named = [*(runs if isinstance(runs, Runs) else [runs]), *more]
    found = Report([load_run(one, runs_dir=runs_dir, metrics=metrics).stored for one in named])
    if html is not None:
        found.write_page(Path(html))
    if plots is not None:
        found.write_plots(Path(plots))
    if markdown is not None:
        write_report(found.markdown(), Path(markdown))
    return found
