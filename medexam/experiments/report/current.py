"""A stored run with its scores of now, for all that shows them.

Its folder alone is read; of the data set it is only seen whether it has changed.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from medexam.errors import RunFolderError, SpecError
from medexam.experiments.store.items import data_changed
from medexam.experiments.store.run_folder import RunFolder
from medexam.experiments.store.stored_run import StoredRun, stored_run
from medexam.measures import find_benchmark
from medexam.measures.own import load_metric
from medexam.specs import CellSpec
from medexam.specs.base import short_name, validate

_CHANGED = "the files of its data have changed since it was asked: run its spec again to score or ask by them"


def current_run(folder: RunFolder, say: Callable[[str], None]) -> StoredRun:
    """Return the run in `folder` with the scores of its answers, its selection and its questions as it has them.

    Derived files that are not there are made; where another process is writing the run, or the folder cannot be
    written, it is scored in memory and the files stay as they are. No code of the user's own is run: `rescored` does.
    Raises `RunFolderError` where the folder holds no run or is damaged, `DatasetError` where it is out of date and
    keeps no questions, and `EngineError` where what it is scored with is not installed.
    """
    if (run := fresh_run(folder)) is None:
        # Imported here: a run that is fresh needs none of what scores it.
        from medexam.experiments.report.derived import renew

        run = renew(folder, say)
    return replace(run, note=run.note or _CHANGED) if data_changed(folder) else run


def fresh_run(folder: RunFolder) -> StoredRun | None:
    """Load the run in `folder` as it was scored; None where it is not, or where that cannot be read."""
    with suppress(RunFolderError):
        return stored_run(folder) if folder.is_scored else None
    return None


def rescored(
    folder: RunFolder, metrics: Sequence[str], say: Callable[[str], None], *, again: bool = False
) -> StoredRun:
    """Score the run by these metrics of the user's own too, which `spec.json` names from now on.

    `again` runs the code that the run names as well: its benchmark's and its metrics'. Raises `SpecError` if a metric
    is none or fails, and leaves `spec.json` as it was.
    """
    from medexam.experiments.report.derived import renew

    before = folder.read_record()
    metrics_by_name = {short_name(name): name for name in (*before.cell.metrics, *metrics)}
    cell = validate(CellSpec, {**dict(before.cell), "metrics": list(metrics_by_name.values())})
    code = cell.metrics if again else metrics
    for name in code:
        load_metric(name)
    if again:
        find_benchmark(before.cell.dataset)
    with folder.locked():
        folder.write_record(replace(before, cell=cell), scores_stay=True)
    try:
        return renew(folder, say, code)
    except SpecError:
        with folder.locked():
            folder.write_record(before, scores_stay=True)
        raise
