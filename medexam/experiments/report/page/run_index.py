"""The list of all runs of a folder as one page: filter it, open a run's page, or open several beside each other.

It reads what is stored and scores nothing; who serves it gives the pages that it leads to.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from medexam.errors import MedExamError
from medexam.experiments.report.page.document import fill_template
from medexam.experiments.store.run_folder import RunFolder
from medexam.experiments.store.stored_run import load_run
from medexam.tables import NONE, percent
from medexam.text import count_of

SCRIPTS = ("folds.js", "tables.js", "runs.js")
HEADERS = ("Run", "Experiment", "Program", "Model", "Data set", "Began", "State", "Scored", "Score, %")
"""Of the columns behind the one in which runs are chosen."""


@dataclass(frozen=True)
class ListedRun:
    """One run of the list."""

    name: str
    """Its folder's name."""
    cells: tuple[str, ...]
    """What stands under `HEADERS` behind the run's name."""


def render_index(folders: Sequence[RunFolder], about: str) -> str:
    """Render the list of `folders`, the last one first; `about` says where they lie."""
    rows = [list_run(folder) for folder in reversed(folders)]
    pieces = fill_template(
        "index.html",
        SCRIPTS,
        forms="'self'",
        kind="runs",
        title="All runs",
        about=f"{count_of(len(rows), 'run')} in {about}",
        headers=HEADERS,
        rows=rows,
    )
    return "".join(pieces)


def list_run(folder: RunFolder) -> ListedRun:
    """Read what the list says of a run, its score as it was scored last; a run that cannot be read is damaged."""
    try:
        record = folder.read_record()
    except MedExamError:
        return ListedRun(folder.name, (*[NONE] * 5, "damaged", NONE, NONE))
    cell = record.cell
    try:
        run = load_run(folder)
    except MedExamError:
        began, model, state, scored, score = NONE, NONE, "not scored yet", f"0 of {len(record.questions):,}", NONE
    else:
        metrics = run.metrics
        began, model, state = str(run.environment.get("started_at") or NONE)[:16], run.model or "none", run.status
        scored = f"{metrics.n:,}" if run.complete else f"{metrics.n:,} of {metrics.selected:,}"
        score = percent(run.score)
    cells = (cell.name, cell.program.label, model, cell.dataset.label, began.replace("T", " "), state, scored, score)
    return ListedRun(folder.name, cells)
