"""The report on stored runs as one value: what `medexam report` prints and writes, and a notebook shows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from medexam.errors import SpecError
from medexam.experiments.compare.noise import describe_noise, run_noise
from medexam.experiments.compare.protocols import protocol_table
from medexam.experiments.compare.runs import run_names
from medexam.experiments.report.breakdowns import break_down
from medexam.experiments.report.latex import render_latex
from medexam.experiments.report.plots.drawing import write_plots
from medexam.experiments.report.plots.runs import plot_runs
from medexam.experiments.report.run_blocks import facet_matrices, report_blocks, run_report
from medexam.experiments.report.run_tables import Added, find_added_tables
from medexam.experiments.report.scores_csv import render_scores
from medexam.experiments.report.shown import Block, Displayed
from medexam.experiments.report.tables import split_families
from medexam.experiments.store.protocol import read_protocol
from medexam.experiments.store.stored_run import StoredRun, tell_models_apart
from medexam.measures.margins import Noise


@dataclass(frozen=True, repr=False)
class Report(Displayed):
    """Stored runs with everything that is said of them."""

    runs: Sequence[StoredRun]
    protocol: bool = False
    """Whether it says how each run's numbers came about."""
    by: Sequence[str] = ()
    """Columns that scores are broken down by, as `break_down` takes them."""

    def __post_init__(self) -> None:
        """Give models of one name their prints, and the metrics of each run the facets of `by`."""
        runs = tell_models_apart(self.runs)[0]
        if self.by:
            runs = [replace(run, metrics=break_down(run, self.by)) for run in runs]
        object.__setattr__(self, "runs", runs)

    @cached_property
    def _added(self) -> Added:
        """What installed packages say of each run, JSON-ready, and their tables."""
        return find_added_tables(self.runs)

    @cached_property
    def _noise(self) -> list[Noise | None]:
        return [run_noise(run.folder) if run.note is None else None for run in self.runs]

    @property
    def _extra(self) -> list[Block]:
        named = zip(self.runs, self._noise, strict=True)
        noise = [describe_noise(run.title, each) for run, each in named if each is not None]
        protocols = [read_protocol(run.record, run.environment) for run in self.runs] if self.protocol else []
        table = [protocol_table("Protocol", run_names(self.runs), protocols)] if protocols else []
        return [*noise, *self._added[1], *table]

    def document(self) -> list[dict[str, Any]]:
        """Build what `--json` prints."""
        documents = [run.document() | addition for run, addition in zip(self.runs, self._added[0], strict=True)]
        for run, document, noise in zip(self.runs, documents, self._noise, strict=True):
            document |= {} if noise is None else {"noise": noise.model_dump(mode="json")}
            document |= {"protocol": dict(read_protocol(run.record, run.environment))} if self.protocol else {}
        return documents

    def markdown(self) -> str:
        """Render the report as Markdown."""
        return run_report(*self.runs, extra=self._extra, by=self.by)

    def latex(self) -> str:
        """Render the tables in LaTeX, those of several runs by each facet too; what else is said is comments."""
        return render_latex([*report_blocks(self.runs, self._extra), *facet_matrices(self.runs)])

    def csv(self) -> str:
        """Render every score as CSV: a row a run and group, a column a number."""
        return render_scores(self.runs)

    def write_page(self, path: Path) -> str:
        """Write one page with tables, pictures and every question (HTML); return what was written, as a line."""
        from medexam.experiments.report.page import write_page

        if len(split_families(self.runs)) > 1:
            raise SpecError("--html takes runs of one benchmark, or of exams: report each of them separately")
        return write_page(self.runs, path)

    def write_plots(self, target: Path) -> list[str]:
        """Write the plots as the function does; return a line for each. Raises `SpecError` if there is nothing."""
        paths = write_plots(plot_runs(self.runs), target, "--plots")
        if not paths:
            raise SpecError(
                "--plots: there is nothing to draw: no run has scored a question with options; leave it out, or use "
                "--html or --markdown"
            )
        return [f"wrote {path}" for path in paths]

    def blocks(self) -> list[Block]:
        """Build our own tables, and what a reader should know of each run."""
        return report_blocks(self.runs, self._extra, self.by)
