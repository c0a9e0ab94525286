"""Making one table or figure of a paper: asking what it needs, then ours beside theirs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import medexam
from medexam import MedExamError
from medexam.errors import SpecError
from medexam.experiments import PLOTS, Report, StoredRun, looks, table_runs
from medexam.measures import matrices
from medexam.specs import build_cells, load_document
from medexam_companions.papers.beside import Product, set_beside
from medexam_companions.papers.described import describe
from medexam_companions.papers.paper import Grid, PaperEntry
from medexam_companions.papers.paper_tables import PaperReport
from medexam_companions.papers.round_trip import make_round_trip
from medexam_companions.papers.trained import make_trained

Say = Callable[[str], None]


def make(
    entry: PaperEntry,
    overrides: Mapping[str, Any],
    limit: int | None,
    *,
    runs_dir: Path,
    track: str | bool,
    say: Say,
) -> Product:
    """Make an entry, for which the pending questions of its runs are asked; `track` is as `medexam.run` has it.

    Raises `SpecError` for what cannot be made or set, and what its first spec raises if none can run.
    """
    if entry.item.obstacle:
        raise SpecError(f"{entry.name} ({entry.item.title}) is not made: {entry.item.obstacle}")
    if entry.item.specs:
        settings = {**entry.item.settings, **overrides}
        return _arrange(entry, _ask(entry, settings, say, limit=limit, runs_dir=runs_dir, track=track))
    if limit is not None:
        raise SpecError(f"{entry.name} asks no questions: leave out --limit")
    if entry.item.shows == "trained":
        return make_trained(entry, overrides, runs_dir / "finetuned", say)
    return make_round_trip(entry, overrides) if entry.item.shows == "round_trip" else describe(entry, overrides, say)


def _ask(entry: PaperEntry, overrides: Mapping[str, Any], say: Say, **how: Any) -> list[StoredRun]:
    """Ask the pending questions of each spec that can run, until one is incomplete.

    An override reaches the specs that it fits. A spec that cannot run, such as for a corpus or a library that is not
    here, is told and left out.
    """
    documents = {spec: load_document(spec) for spec in entry.item.specs}
    fits = {spec: {key for key in overrides if _fits(documents[spec], key, overrides[key])} for spec in documents}
    if unused_keys := [key for key in overrides if not any(key in keys for keys in fits.values())]:
        build_cells(documents[entry.item.specs[0]], {unused_keys[0]: overrides[unused_keys[0]]})
    runs: list[StoredRun] = []
    broken: MedExamError | None = None
    for spec, document in documents.items():
        settings = {key.replace(".", "__"): overrides[key] for key in fits[spec]}
        try:
            runs += [run.stored for run in medexam.run(document, **how, **settings)]
        except MedExamError as error:
            say(f"left out {spec}: {error}")
            broken = broken or error
        if not all(run.complete for run in runs):
            break
    if broken is not None and not runs:
        raise broken
    return runs


def _fits(document: Mapping[str, Any], key: str, value: Any) -> bool:
    try:
        build_cells(document, {key: value})
    except SpecError:
        return False
    return True


def _arrange(entry: PaperEntry, runs: Sequence[StoredRun]) -> Product:
    """Build the table that the runs make."""
    if entry.item.shows == "years":
        plot = PLOTS["years"](looks(runs), together=True)
        by_year = [table for table in matrices(runs[0].benchmark, table_runs(runs)) if table.headers[0] == "Year"]
        return Product(entry, by_year, Report(runs).document(), [] if plot is None else [plot], runs)
    if entry.item.shows == "correlation":
        return replace(_correlate(entry, runs), runs=runs)
    tables = tuple(table for table in entry.paper.tables if table.number == entry.number)
    report = PaperReport(entry.paper.model_copy(update={"tables": tables}), runs) if tables else Report(runs)
    return Product(entry, report.blocks(), report.document(), (), runs)


def _correlate(entry: PaperEntry, runs: Sequence[StoredRun]) -> Product:
    """Build the table of how each run's best passage's score correlates with being right, beside the paper's one r."""
    rows: dict[str, tuple[float | None, ...]] = {}
    for run in runs:
        correlation = run.metrics.evidence.get("retrieval", {}).get("score_correctness")
        r = None if correlation is None else round(correlation["r"], 2)
        rows[f"{run.model or run.program} {run.record.cell.dataset.language}"] = (r,)
    (printed,) = entry.item.printed.rows.values() if entry.item.printed is not None else ((None,),)
    paper_grid = Grid(columns=("r",), rows=dict.fromkeys(rows, printed))
    return set_beside(entry, Grid(columns=("r",), rows=rows), printed=paper_grid)
