"""The report on stored runs as one value: what `medexam report` prints and writes, and a notebook shows."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from medexam.errors import SpecError
from medexam.experiments.compare.noise import describe_noise, run_noise
from medexam.experiments.compare.protocols import protocol_table, read_protocol
from medexam.experiments.compare.runs import run_names
from medexam.experiments.report.breakdowns import break_down
from medexam.experiments.report.markdown import render_latex, render_scores
from medexam.experiments.report.plots.runs import plot_runs
from medexam.experiments.report.plots.style import write_plots
from medexam.experiments.report.run_blocks import facet_matrices, report_blocks, run_report
from medexam.experiments.report.run_tables import find_added_tables, split_families
from medexam.experiments.report.shown import Block, Displayed, write_report
from medexam.experiments.store.stored_run import StoredRun, tell_models_apart


class Report(Displayed):
    """Stored runs with everything that is said of them."""

    def __init__(self, runs: Sequence[StoredRun], *, protocol: bool = False, by: Sequence[str] = ()) -> None:
        """`protocol`: it says how each run's numbers came about. `by`: columns that scores are broken down by."""
        self.runs, self._by = tell_models_apart(runs)[0], by
        if by:
            self.runs = [replace(run, metrics=break_down(run, by)) for run in self.runs]
        self._additions, tables = find_added_tables(self.runs)
        self._extra: list[Block] = []
        noises = [run_noise(run.folder) if run.note is None else None for run in self.runs]
        protocols = [dict(read_protocol(run.record, run.environment)) for run in self.runs] if protocol else []
        for place, (run, noise) in enumerate(zip(self.runs, noises, strict=True)):
            if noise is not None:
                self._extra.append(describe_noise(run.title, noise))
                self._additions[place] |= {"noise": noise.model_dump(mode="json")}
            self._additions[place] |= {"protocol": protocols[place]} if protocol else {}
        self._extra += tables
        if protocol:
            self._extra.append(protocol_table("Protocol", run_names(self.runs), protocols))

    def document(self) -> list[dict[str, Any]]:
        """Build what `--json` prints."""
        return [run.document() | addition for run, addition in zip(self.runs, self._additions, strict=True)]

    def markdown(self) -> str:
        """Render the report as Markdown."""
        return run_report(*self.runs, extra=self._extra, by=self._by)

    def latex(self) -> str:
        """Render the tables in LaTeX, those of several runs by each facet too; what else is said is comments."""
        return render_latex([*report_blocks(self.runs, self._extra), *facet_matrices(self.runs)])

    def csv(self) -> str:
        """Render every score as CSV: a row a run and group, a column a number."""
        return render_scores(self.runs)

    def blocks(self) -> list[Block]:
        """Build our own tables, and what a reader should know of each run."""
        return report_blocks(self.runs, self._extra, self._by)


def write_files(
    report: Any,
    *,
    html: Path | None = None,
    plots: Path | None = None,
    markdown: Path | None = None,
    latex: Path | None = None,
    csv: Path | None = None,
) -> Iterator[str]:
    """Write the files that are named, one page with tables, pictures and every question (HTML) among them; yield a line
    of each.

    Raises `SpecError` where a page cannot hold the runs, or there is nothing to draw.
    """
    if html is not None:
        from medexam.experiments.report.page.document import write_page

        if len(split_families(report.runs)) > 1:
            raise SpecError("--html takes runs of one benchmark, or of exams: report each of them separately")
        yield write_page(report.runs, html)
    if plots is not None:
        paths = write_plots(plot_runs(report.runs), plots, "--plots")
        if not paths:
            raise SpecError(
                "--plots: there is nothing to draw: no run has scored a question with options; leave it out, or use "
                "--html or --markdown"
            )
        yield from (f"wrote {path}" for path in paths)
    for name, path in {"markdown": markdown, "latex": latex, "csv": csv}.items():
        if path is not None:
            write_report(getattr(report, name)(), path, f"--{name}")
            yield f"wrote {path}"
