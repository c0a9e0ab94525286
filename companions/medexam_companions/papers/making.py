"""Making one table or figure of a paper: what it needs, asking that, then ours beside theirs."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medexam import MedExamError
from medexam.errors import SpecError
from medexam.experiments import (
    PLOTS,
    AnyRun,
    Block,
    Carriers,
    PlotPicture,
    Report,
    RunObserver,
    Stop,
    captioned,
    carry_out,
    default_runs_dir,
    join_markdown,
    looks,
    plan_lines,
    render_plot,
    table_runs,
)
from medexam.tables import Captioned
from medexam_companions.papers.beside import Beside
from medexam_companions.papers.catalogue import PaperEntry
from medexam_companions.papers.described import DescribedEntry, describe_entry
from medexam_companions.papers.mapped import Mapped, plan_map
from medexam_companions.papers.narrow import build_paper_tables
from medexam_companions.papers.paper import Grid
from medexam_companions.papers.paper_tables import paper_tables
from medexam_companions.papers.parts import Part, plan_parts
from medexam_companions.papers.round_trip import RoundTrip, plan_round_trip
from medexam_companions.papers.trained import TrainedEntry, plan_trained


@dataclass(frozen=True)
class Reproduced:
    """A table or figure as it came out."""

    entry: PaperEntry
    tables: Sequence[Captioned]
    document: Any
    """The same, JSON-ready."""
    pictures: Sequence[PlotPicture] = ()
    runs: Sequence[AnyRun] = ()
    """Those that it was made from; empty for what describes a data set."""
    stop: Stop | None = None
    """Why the asking ended early; None if it did not."""
    footer: Sequence[Block] = ()
    """What stands below the tables."""

    @property
    def complete(self) -> bool:
        """Whether every question of its runs is scored."""
        return self.stop is None and all(run.complete for run in self.runs)

    def markdown(self) -> str:
        """Render the tables as Markdown."""
        blocks = [*self.tables, *(block for block in self.footer if not isinstance(block, str))]
        return join_markdown(captioned(blocks))


@dataclass(frozen=True)
class PaperPlan:
    """One table or figure, ready to be made."""

    entry: PaperEntry
    runs_dir: Path
    parts: Sequence[Part] = ()
    """Those of a table of runs."""
    described: DescribedEntry | Mapped | RoundTrip | TrainedEntry | None = None
    """What describes a data set or a corpus, or trains encoders; None for a table of runs."""

    @property
    def caption(self) -> str:
        """How the plan's table is read."""
        return (
            "GPUs: cards of 80 GB for one server of the model. Hours: for the pending questions at one server, by the "
            "run's own rate once it has answered some, else calculated for H100s (docs/reproducing.md)."
        )

    @property
    def lines(self) -> list[str]:
        """What else it needs."""
        note = [self.entry.item.note] if self.entry.item.note else []
        if self.described is not None:
            return [f"{self.entry.heading}: made from {self.described.source}, without a model that answers", *note]
        hours = [effort.hours for part in self.parts for effort in part.efforts]
        estimates = [estimate for estimate in hours if estimate is not None]
        unknown = f", and {len(hours) - len(estimates)} runs of unknown length" if len(estimates) < len(hours) else ""
        return [f"All together: {sum(estimates):,.1f} h{unknown}", *note]

    def document(self) -> dict[str, Any]:
        """Build the plan, JSON-ready."""
        return {
            "name": self.entry.name,
            "title": self.entry.item.title,
            "note": self.entry.item.note or None,
            "parts": [part.document() for part in self.parts],
            "dataset": None if self.described is None else self.described.source,
        }

    def make(
        self, carriers: Carriers, watch: Callable[[], AbstractContextManager[RunObserver]], say: Callable[[str], None]
    ) -> Reproduced:
        """Ask the pending questions of each part that can run, then make the table of all; a stop ends the asking.

        A part that breaks, such as for a library that is not installed, is told and left out; raises its error if no
        other part has a run.
        """
        if self.described is not None:
            return Reproduced(self.entry, *self.described.make(say))
        runs: list[AnyRun] = []
        stop: Stop | None = None
        broken: MedExamError | None = None
        for part in self.parts:
            if part.plan is None or stop is not None:
                continue
            for line in plan_lines(part.plan):
                say(line)
            try:
                part_runs, stop = carry_out(part.plan, carriers, watch, say)
            except MedExamError as error:
                say(f"left out {part.spec}: {error}")
                broken = broken or error
            else:
                runs += part_runs
        if broken is not None and not runs:
            raise broken
        return _show(self.entry, runs, stop)


def plan(
    entry: PaperEntry,
    overrides: Mapping[str, Any],
    limit: int | None,
    only: tuple[str, ...],
    *,
    runs_dir: Path | None,
    only_look: bool,
) -> PaperPlan:
    """Plan what making an entry would do.

    Raises what `plan_parts` raises, `DatasetError` if the data set is not here, and `SpecError` for what does not fit.
    """
    folder = runs_dir or default_runs_dir()
    if entry.item.specs:
        settings = {**entry.item.settings, **overrides}
        return PaperPlan(entry, folder, plan_parts(entry, settings, limit, only, runs_dir=folder, only_look=only_look))
    if only or limit is not None:
        raise SpecError(f"{entry.name} asks no questions: leave out --only and --limit")
    if entry.item.shows == "trained":
        return PaperPlan(entry, folder, described=plan_trained(entry, overrides, folder, only_look=only_look))
    if entry.item.shows == "round_trip":
        return PaperPlan(entry, folder, described=plan_round_trip(entry, overrides))
    described = plan_map(entry, overrides) if entry.item.shows == "map" else describe_entry(entry, overrides)
    return PaperPlan(entry, folder, described=described)


def _show(entry: PaperEntry, runs: Sequence[AnyRun], stop: Stop | None) -> Reproduced:
    """Build the table that the runs make."""
    if entry.item.shows == "years":
        plot = PLOTS["models_by_year"](looks(runs))
        tables = [table for table in runs[0].benchmark.matrices(table_runs(runs)) if table[0].headers[0] == "Year"]
        pictures = [] if plot is None else [render_plot(plot)]
        return Reproduced(entry, tables, Report(runs).document(), pictures, runs, stop)
    if entry.item.shows == "correlation":
        comparison = _correlate(entry, runs)
        return Reproduced(entry, [comparison.table], comparison.document(), (), runs, stop)
    if not entry.paper.tables:
        report = Report(runs)
        return Reproduced(entry, [], report.document(), (), runs, stop, report.blocks())
    layouts = tuple(table for table in entry.paper.tables if table.number == entry.number)
    filled_tables = paper_tables(runs, entry.paper.model_copy(update={"tables": layouts}))
    tables = build_paper_tables(filled_tables, shutil.get_terminal_size().columns)
    return Reproduced(entry, tables, [table.document() for table in filled_tables], (), runs, stop)


def _correlate(entry: PaperEntry, runs: Sequence[AnyRun]) -> Beside:
    """Build the table of how each run's best passage's score correlates with being right, beside the paper's one r."""
    rows: dict[str, tuple[float | None, ...]] = {}
    for run in runs:
        retrieval = getattr(run.metrics, "retrieval", None)
        correlation = None if retrieval is None else retrieval.score_correctness
        r = None if correlation is None else round(correlation.r, 2)
        rows[f"{run.model or run.program} {run.record.cell.dataset.language}"] = (r,)
    (printed,) = entry.item.printed.rows.values() if entry.item.printed is not None else ((None,),)
    paper_grid = Grid(columns=("r",), rows=dict.fromkeys(rows, printed))
    return Beside(entry.heading, Grid(columns=("r",), rows=rows), paper_grid, entry.paper.arxiv)
