"""The report on stored runs as one value: what `medexam report` prints and writes, and a notebook shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from medexam.errors import SpecError
from medexam.experiments.compare.noise import noise_tables, run_noise
from medexam.experiments.compare.runs import run_names
from medexam.experiments.report.added import find_added_tables
from medexam.experiments.report.latex import latex_blocks
from medexam.experiments.report.markdown import comparison_report, run_report
from medexam.experiments.report.plots.pictures import build_pictures, write_pictures
from medexam.experiments.report.protocol_tables import protocol_tables
from medexam.experiments.report.run_blocks import model_blocks, overview_blocks, pending_blocks
from medexam.experiments.report.run_tables import cost_tables
from medexam.experiments.report.shown import Block, Displayed
from medexam.experiments.report.tables import check_one_family, facet_tables, split_families, table_runs
from medexam.experiments.score.breakdowns import Breakdown, break_down
from medexam.experiments.store.protocol import read_protocol
from medexam.experiments.store.stored_run import AnyRun, run_document, tell_models_apart
from medexam.metrics.paired.repeats import Noise
from medexam.tables import Captioned


@dataclass(frozen=True, repr=False)
class Report(Displayed):
    """Stored runs with everything that is said of them."""

    runs: Sequence[AnyRun]
    protocol: bool = False
    """Whether it says how each run's numbers came about."""
    by: Sequence[str] = ()
    """Columns that scores are broken down by, as `break_down` takes them."""

    def __post_init__(self) -> None:
        """Give models of one name their prints."""
        object.__setattr__(self, "runs", tell_models_apart(self.runs)[0])

    @cached_property
    def _added(self) -> tuple[list[dict[str, Any]], list[Captioned]]:
        """What installed packages say of each run, JSON-ready, and their tables."""
        return find_added_tables(self.runs)

    @cached_property
    def _noise(self) -> list[Noise | None]:
        return [run_noise(run.folder) if run.note is None else None for run in self.runs]

    @cached_property
    def _breakdowns(self) -> list[list[Breakdown]]:
        """Those of each run, in the order of the columns."""
        return [break_down(run, self.by) if self.by else [] for run in self.runs]

    def _breakdown_tables(self) -> list[Captioned]:
        return [
            breakdown.table(
                f"By {breakdown.column}" + (f": {name}" if len(self.runs) > 1 else ""),
                run.benchmark.name_measure(breakdown.measure),
            )
            for run, name, breakdowns in zip(self.runs, run_names(self.runs), self._breakdowns, strict=True)
            for breakdown in breakdowns
        ]

    @property
    def _extra(self) -> list[Captioned]:
        noise = noise_tables([run.title for run in self.runs], self._noise)
        protocols = protocol_tables(self.runs) if self.protocol else []
        return [
            *self._added[1],
            *self._breakdown_tables(),
            *noise,
            *protocols,
        ]

    def document(self) -> list[dict[str, Any]]:
        """Build what `--json` prints."""
        noise_documents = [{} if noise is None else {"noise": noise.model_dump(mode="json")} for noise in self._noise]
        documents = [
            run_document(run) | added | noise
            for run, added, noise in zip(self.runs, self._added[0], noise_documents, strict=True)
        ]
        for document, breakdowns in zip(documents, self._breakdowns, strict=True):
            document |= {"by": [breakdown.to_json() for breakdown in breakdowns]} if breakdowns else {}
        if self.protocol:
            for run, document in zip(self.runs, documents, strict=True):
                document["protocol"] = dict(read_protocol(run.record, run.environment))
        return documents

    def markdown(self) -> str:
        """Render the report as Markdown; raises `SpecError` if no table holds all runs."""
        check_one_family(self.runs, "--markdown")
        if len(self.runs) == 1:
            run = self.runs[0]
            return run_report(run, run.folder.read_predictions(), self._extra)
        return comparison_report(self.runs, self._extra)

    def latex(self) -> str:
        """Render the tables in LaTeX, those of several runs by each facet too; what else is said is comments."""
        matrices = [
            table
            for group in split_families(self.runs)
            if len(group) > 1
            for table in group[0].benchmark.matrices(table_runs(group))
        ]
        return latex_blocks([*self.blocks(), *matrices])

    def write_page(self, path: Path) -> str:
        """Write one page with tables, pictures and every question (HTML); return what was written, as a line."""
        from medexam.experiments.report.page import write_page

        check_one_family(self.runs, "--html")
        size = write_page(self.runs, path)
        return f"wrote {path} ({size.questions} questions, {size.bytes / 1e6:.1f} MB)"

    def write_plots(self, target: Path) -> list[str]:
        """Write the plots as `write_pictures` does; return a line for each. Raises `SpecError` if there is nothing."""
        paths = write_pictures(build_pictures(self.runs), target, "--plots")
        if not paths:
            raise SpecError("--plots: no run has scored a question, so there is nothing to draw; leave it out")
        return [f"wrote {path}" for path in paths]

    def blocks(self) -> list[Block]:
        """Build our own tables, and what a reader should know of each run."""
        blocks = overview_blocks(self.runs)
        if len(self.runs) == 1:
            run = self.runs[0]
            own_blocks = [] if run.benchmark.report_each else facet_tables(run)
            blocks += [*own_blocks, *cost_tables(run), *run.benchmark.details(run.metrics)]
            blocks += model_blocks(run)
        blocks += self._extra
        for run in self.runs:
            blocks += pending_blocks(run)
            blocks += [f"Warning: {run.title}: {warning}" for warning in run.record.warnings]
        notes = dict.fromkeys(note for run in self.runs for note in run.benchmark.notes(run.metrics))
        return blocks + [f"Note: {note}." for note in notes]
