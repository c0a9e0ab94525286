"""What is made of a run's answers: `metrics.json`, `report.md` and the Parquet file, now or again at any later time."""

from collections.abc import Callable, Collection
from dataclasses import replace

from medexam.errors import RunBusyError, RunFolderError
from medexam.experiments.report.run_blocks import run_report
from medexam.experiments.store.derived_files import DERIVED, record_made, score_all, write_parquet
from medexam.experiments.store.items import begin_run, check_items, digest_data
from medexam.experiments.store.run_folder import METRICS, REPORT, RunFolder, describe_items
from medexam.experiments.store.stored_run import RUNNING, StoredRun, stored_run
from medexam.measures.benchmarks.registry import find_stored_benchmark
from medexam.questions import AnySet

_DERIVED = ", ".join(DERIVED[:-1]) + f" and {DERIVED[-1]}"


def renew(folder: RunFolder, reason: str, say: Callable[[str], None], code: Collection[str] = ()) -> StoredRun:
    """Make the derived files in `folder` anew for this reason, and return the run as `current_run` tells.

    The metrics in `code` are run; others of the user's own keep their scores.
    """
    try:
        with folder.locked():
            folder.merge_shards()
            items, gold_note, text_note = check_items(folder)
            if text_note is None:
                begin_run(folder, replace(folder.read_record(), **describe_items(items)), items)
            run = score_cell(folder, items, code=code, note=text_note)
    except RunFolderError as error:
        items, _, text_note = check_items(folder)
        run = score_cell(folder, items, code=code, note=text_note, in_memory=True)
        if not isinstance(error, RunBusyError):
            say(f"{folder.name}: {_DERIVED} are out of date ({reason}) and cannot be made again: {error}")
        elif not run.complete:
            answered = run.metrics.selected - run.metrics.missing - run.metrics.failed
            note = f"{RUNNING}: {answered:,} of {run.metrics.selected:,} questions answered"
            run = replace(run, note=note)
        return run
    say(gold_note or f"{folder.name}: made {_DERIVED} again: {reason}")
    return run


def score_cell(
    folder: RunFolder, items: AnySet, *, code: Collection[str] = (), note: str | None = None, in_memory: bool = False
) -> StoredRun:
    """Score the predictions in `folder` on all of these items, and write what is made of them unless `in_memory`.

    These are `metrics.json`, `report.md`, the Parquet file, and what they were made from. `items` are those that the
    folder holds; the metrics in `code` are run; `note` is what a reader should know. The folder must be locked where
    others may write it. Raises `RunFolderError` where it cannot be written, and `EngineError` where what a benchmark
    is scored with is not installed.
    """
    dataset = folder.read_record().cell.dataset
    benchmark = find_stored_benchmark(dataset, in_words=items.in_words)
    with folder.opened_predictions(prompts=False) as predictions:
        scored = score_all(folder, benchmark, items, predictions, code)
        run = stored_run(folder, scored.metrics, predictions if scored.metrics.failed else {})
        run = replace(run, note=note, files_fresh=not in_memory)
        if in_memory:
            return run
        folder.write_json(METRICS, scored.metrics.model_dump(mode="json"))
        write_parquet(folder, benchmark, items, predictions, scored)
        folder.write(REPORT, run_report(run))
    record_made(folder, digest_data(items, dataset), note)
    return run
