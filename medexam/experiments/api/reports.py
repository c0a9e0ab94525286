"""Reports in Python."""

from collections.abc import Sequence
from pathlib import Path

from medexam.experiments.api.results import Runs
from medexam.experiments.api.runs import RunSource, load_run
from medexam.experiments.entry.report import Report
from medexam.experiments.report.shown import write_report


def report(
    runs: RunSource | Runs,
    *others: RunSource,
    html: str | Path | None = None,
    markdown: str | Path | None = None,
    latex: str | Path | None = None,
    plots: str | Path | None = None,
    metrics: Sequence[str] = (),
    by: Sequence[str] = (),
    runs_dir: str | Path | None = None,
) -> Report:
    """Build the report on stored runs, which shows itself; asks no model.

    `html` is a file for one page with tables, pictures and every question, `markdown` one for the report as Markdown,
    `latex` one for the tables in LaTeX. `plots` is a folder for plots (PNG), or a file that ends in .pdf, .svg or
    .png. `metrics` are those of `load_run`. `by` are columns to break scores down by, as `--by` takes them. Raises
    `SpecError` if no table holds all runs, and `RunFolderError` if a file cannot be written.
    """
    sources = [*(runs if isinstance(runs, Runs) else [runs]), *others]
    runs_to_show = [load_run(source, runs_dir=runs_dir, metrics=metrics).stored for source in sources]
    new_report = Report(runs_to_show, by=by)
    if html is not None:
        new_report.write_page(Path(html))
    if plots is not None:
        new_report.write_plots(Path(plots))
    if markdown is not None:
        write_report(new_report.markdown(), Path(markdown))
    if latex is not None:
        write_report(new_report.latex(), Path(latex), "latex")
    return new_report
