"""A stored run with its scores of now, for all that shows them; the files that are made of its answers are made anew.

Its folder alone is read; of the data set it is only seen whether it has changed.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from medexam.errors import RunBusyError, RunFolderError
from medexam.experiments.store.items import begin_run, data_changed, load_items
from medexam.experiments.store.run_folder import DERIVED, ENVIRONMENT, METRICS, REPORT, RunFolder, RunRecord
from medexam.experiments.store.stored_run import RUNNING, StoredRun, stored_run
from medexam.measures import find_benchmark
from medexam.measures.benchmarks.registry import find_stored_benchmark
from medexam.measures.own import load_metric
from medexam.predictions import Prediction
from medexam.questions import AnySet
from medexam.specs import CellSpec
from medexam.specs.base import short_name, validate

_CHANGED = "the files of its data have changed since it was asked: run its spec again to score or ask by them"
_DERIVED = ", ".join(DERIVED[:-1]) + f" and {DERIVED[-1]}"


def current_run(
    folder: RunFolder, say: Callable[[str], None], metrics: Sequence[str] = (), *, rescore: bool = False
) -> StoredRun:
    """Return the run in `folder` with the scores of its answers, its selection and its questions as it has them.

    Derived files that are not there are made; where another process is writing the run, or the folder cannot be
    written, it is scored in memory and the files stay as they are. It is scored by the user's own `metrics` too, which
    `spec.json` names from now on. No other code of theirs is run, unless `rescore`: its benchmark and all its metrics.
    Raises `RunFolderError` where the folder holds no run or is damaged, `DatasetError` where it is out of date and
    keeps no questions, `EngineError` where what it is scored with is not installed, and `SpecError` if a metric is none
    or fails.
    """
    run = None if metrics or rescore else fresh_run(folder)
    run = run or _renew(folder, say, metrics, rescore=rescore)
    return replace(run, note=run.note or _CHANGED) if data_changed(folder) else run


def fresh_run(folder: RunFolder) -> StoredRun | None:
    """Load the run in `folder` as it was scored; None where it is not, or where that cannot be read."""
    with suppress(RunFolderError):
        return stored_run(folder) if folder.is_scored else None
    return None


def _renew(folder: RunFolder, say: Callable[[str], None], metrics: Sequence[str], *, rescore: bool) -> StoredRun:
    record = folder.read_record()
    if metrics:
        names = {short_name(name): name for name in (*record.cell.metrics, *metrics)}
        record = replace(record, cell=validate(CellSpec, {**dict(record.cell), "metrics": list(names.values())}))
    code = record.cell.metrics if rescore else metrics
    for name in code:
        load_metric(name)
    if rescore:
        find_benchmark(record.cell.dataset)
    try:
        with folder.locked():
            folder.merge_shards()
            run = score_cell(folder, load_items(folder), record, code)
            if metrics:
                folder.write_record(record, scores_stay=True)
    except RunFolderError as error:
        run = score_cell(folder, load_items(folder), record, code, in_memory=True)
        if not isinstance(error, RunBusyError):
            say(f"{folder.name}: {_DERIVED} are out of date and cannot be made again: {error}")
        elif not run.complete:
            answered = run.metrics.selected - run.metrics.missing - run.metrics.failed
            run = replace(run, note=f"{RUNNING}: {answered:,} of {run.metrics.selected:,} questions answered")
        return run
    say(f"{folder.name}: made {_DERIVED} again")
    return run


def write_run(
    folder: RunFolder, items: AnySet, predictions: Iterable[Prediction], environment: Mapping[str, Any], **fields: Any
) -> StoredRun:
    """Write and score a run whose answers are known, such as another program's; `fields` are those of `begin_run`."""
    folder.create()
    with folder.locked():
        with folder.appending() as log:
            for prediction in predictions:
                log.append(prediction)
        folder.write_json(ENVIRONMENT, environment)
        # Written last: a folder without it is no run yet.
        begin_run(folder, items, **fields)
        return score_cell(folder, items)


def score_cell(
    folder: RunFolder,
    items: AnySet,
    record: RunRecord | None = None,
    code: Collection[str] = (),
    *,
    in_memory: bool = False,
) -> StoredRun:
    """Score the predictions in `folder` on all of these items, and write what is made of them unless `in_memory`.

    These are the Parquet file, `report.md`, and at last `metrics.json`. `items` are those that the folder holds, under
    its `record` if none is given; the metrics in `code` are run, and its others keep their scores. The folder must be
    locked where others may write it. Raises `RunFolderError` where it cannot be written, and `EngineError` where what a
    benchmark is scored with is not installed.
    """
    # Imported here: a run that is fresh needs none of what scores it.
    from medexam.experiments.report.run_blocks import run_report
    from medexam.experiments.store.derived_files import score_all, write_parquet

    record = record or folder.read_record()
    benchmark = find_stored_benchmark(record.cell.dataset, in_words=items.in_words)
    predictions = folder.read_predictions()
    scored = score_all(folder, record.cell.metrics, benchmark, items, predictions, code)
    run = stored_run(folder, scored.metrics, record)
    if not in_memory:
        (folder.path / METRICS).unlink(missing_ok=True)
        write_parquet(folder, benchmark, items, predictions, scored)
        folder.write(REPORT, run_report(run))
        folder.write_json(METRICS, scored.metrics.model_dump(mode="json"))
    return run
