"""What is made of a run's answers: `metrics.json`, `report.md` and the Parquet file, now or again at any later time."""

from collections.abc import Callable, Collection
from dataclasses import replace

from medexam.errors import RunBusyError, RunFolderError
from medexam.experiments.report.run_blocks import run_report
from medexam.experiments.store.derived_files import score_all, write_parquet
from medexam.experiments.store.items import load_items
from medexam.experiments.store.run_folder import DERIVED, METRICS, REPORT, RunFolder
from medexam.experiments.store.stored_run import RUNNING, StoredRun, stored_run
from medexam.measures.benchmarks.registry import find_stored_benchmark
from medexam.questions import AnySet

_DERIVED = ", ".join(DERIVED[:-1]) + f" and {DERIVED[-1]}"


def renew(folder: RunFolder, say: Callable[[str], None], code: Collection[str] = ()) -> StoredRun:
    """Make the derived files in `folder` anew, and return the run as `current_run` tells.

    The metrics in `code` are run; others of the user's own keep their scores.
    """
    try:
        with folder.locked():
            folder.merge_shards()
            run = score_cell(folder, load_items(folder), code=code)
    except RunFolderError as error:
        run = score_cell(folder, load_items(folder), code=code, in_memory=True)
        if not isinstance(error, RunBusyError):
            say(f"{folder.name}: {_DERIVED} are out of date and cannot be made again: {error}")
        elif not run.complete:
            answered = run.metrics.selected - run.metrics.missing - run.metrics.failed
            note = f"{RUNNING}: {answered:,} of {run.metrics.selected:,} questions answered"
            run = replace(run, note=note)
        return run
    say(f"{folder.name}: made {_DERIVED} again")
    return run


def score_cell(folder: RunFolder, items: AnySet, *, code: Collection[str] = (), in_memory: bool = False) -> StoredRun:
    """Score the predictions in `folder` on all of these items, and write what is made of them unless `in_memory`.

    These are the Parquet file, `report.md`, and at last `metrics.json`. `items` are those that the folder holds; the
    metrics in `code` are run. The folder must be locked where others may write it.
    Raises `RunFolderError` where it cannot be written, and `EngineError` where what a benchmark is scored with is not
    installed.
    """
    benchmark = find_stored_benchmark(folder.read_record().cell.dataset, in_words=items.in_words)
    with folder.opened_predictions() as predictions:
        scored = score_all(folder, benchmark, items, predictions, code)
        run = replace(stored_run(folder, scored.metrics), files_fresh=not in_memory)
        if not in_memory:
            (folder.path / METRICS).unlink(missing_ok=True)
            write_parquet(folder, benchmark, items, predictions, scored)
            folder.write(REPORT, run_report(run))
            folder.write_json(METRICS, scored.metrics.model_dump(mode="json"))
    return run
