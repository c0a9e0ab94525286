"""What is made of a run's answers: `metrics.json`, `report.md` and the Parquet file, now or again at any later time."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from medexam.benchmarks import Benchmark, find_benchmark
from medexam.datasets.fingerprints import digest_files
from medexam.errors import DatasetError, EngineError, MedExamError, RunBusyError, RunFolderError
from medexam.experiments.report.markdown import run_report
from medexam.experiments.score.own import score_all
from medexam.experiments.score.scoring import rescore
from medexam.experiments.store.data_changes import describe_golds, load_stored
from medexam.experiments.store.freshness import DERIVED, Freshness, Say, metric_sources, read_sources, record_made
from medexam.experiments.store.parquet import write_parquet
from medexam.experiments.store.run_folder import METRICS, REPORT, RunFolder
from medexam.experiments.store.stored_run import RUNNING, AnyRun, load_run, shown_as_scored, stored_run
from medexam.predictions import Status
from medexam.questions import AnySet

SURE_S = 10.0
"""Seconds after which the rate of a run says how long it takes still."""
_DERIVED = ", ".join(DERIVED[:-1]) + f" and {DERIVED[-1]}"


def renew(folder: RunFolder, freshness: Freshness, say: Say) -> AnyRun:
    """Make the derived files in `folder` anew, which are out of date as `freshness` says, and return the run as
    `current_run` tells.
    """
    reason = ", ".join(freshness.changed)
    try:
        try:
            with folder.locked():
                folder.merge_shards()
                record = folder.read_record()
                items = load_stored(record)
                gold_note = describe_golds(folder, record, items)
                run = score_cell(folder, items)
        except RunBusyError:
            run = replace(rescore(folder), files_fresh=False)
            if run.complete:
                return run
            metrics = run.metrics
            answered = metrics.selected - metrics.missing - metrics.failed
            left = describe_time_left(run.environment, answered, metrics.selected, datetime.now(UTC))
            return replace(run, note=f"{RUNNING}: {answered:,} of {metrics.selected:,} questions answered{left}")
        except RunFolderError as error:
            run = replace(rescore(folder), files_fresh=False)
            say(f"{folder.name}: {_DERIVED} are out of date ({reason}) and cannot be made again: {error}")
            return run
    except (DatasetError, EngineError) as error:
        return _as_scored(folder, freshness, error)
    say(gold_note or f"{folder.name}: made {_DERIVED} again: {reason}")
    return run


def describe_time_left(environment: Mapping[str, Any], answered: int, selected: int, now: datetime) -> str:
    """Describe how long a run that is asked `now` takes still, such as `, about 2 min left`; empty where it is unknown.

    It is known in the first invocation only, after a tenth of the questions and 10 seconds: no answer keeps its time.
    """
    start_text = environment.get("started_at")
    # Both are the same moment until something ended: a later invocation, or what it wrote behind, moves `ended_at`.
    if not start_text or start_text != environment.get("ended_at"):
        return ""
    elapsed_s = (now - datetime.fromisoformat(start_text)).total_seconds()
    if elapsed_s < SURE_S or not selected <= 10 * answered < 10 * selected:
        return ""
    left_s = elapsed_s * (selected - answered) / answered
    if left_s < 90:
        return f", about {max(1, round(left_s))} s left"
    return f", about {left_s / 60:.0f} min left" if left_s < 90 * 60 else f", about {left_s / 3600:.1f} h left"


def _as_scored(folder: RunFolder, freshness: Freshness, error: MedExamError) -> AnyRun:
    """Load the run as it was scored, where its numbers are those of its answers, although they cannot be made anew."""
    reason = ", ".join(freshness.changed)
    try:
        run = load_run(folder)
    except RunFolderError:
        stands = False
    else:
        is_stale = freshness.answers_changed
        stands = _counts_agree(run) if is_stale is None else not is_stale
    if not stands:
        raise type(error)(
            f"the scores of run {folder.name} are out of date ({reason}) and cannot be made again: {error}"
        )
    return replace(run, note=shown_as_scored(str(error)), files_fresh=False)


def _counts_agree(run: AnyRun) -> bool:
    """Return whether metrics without a record of their sources count what the folder holds now."""
    outcomes = run.folder.read_outcomes()
    counts = Counter(outcomes[key].status if key in outcomes else None for key in run.record.questions)
    metrics = run.metrics
    return (metrics.selected, metrics.unanswered, metrics.failed, metrics.missing) == (
        len(run.record.questions),
        counts[Status.UNANSWERED],
        counts[Status.FAILED],
        counts[None],
    )


def score_cell(folder: RunFolder, items: AnySet) -> AnyRun:
    """Score the predictions in `folder` on all of these items and write what is made of them.

    These are `metrics.json`, `report.md`, the Parquet file, and what they were made from; `spec.json` then says which
    items and golds these were. The folder must be locked where others may write it. Raises `RunFolderError` where
    it cannot be written, and `EngineError` where what a benchmark is scored with is not installed.
    """
    benchmark = _record_scored(folder, items)
    # What a benchmark of the user's own loads need not know of files.
    sources = read_sources(folder, items.files_digest or digest_files(folder.read_record().cell.dataset))
    with folder.opened_predictions() as predictions:
        scored, own = score_all(folder, benchmark, items, predictions)
        folder.write_json(METRICS, scored.metrics.model_dump(mode="json"))
        write_parquet(folder, benchmark, items, predictions, scored)
        run = stored_run(folder, scored.metrics, predictions if scored.metrics.failed else {}, own.warnings)
        folder.write_text(REPORT, run_report(run, predictions))
    record_made(folder, sources | metric_sources(own.digests))
    return run


def _record_scored(folder: RunFolder, items: AnySet) -> Benchmark[Any, Any, Any]:
    record = folder.read_record()
    golds = None if record.schema == 1 else items.golds_fingerprint
    new_record = replace(record, dataset_golds=golds, questions=tuple(item.key for item in items.questions))
    if new_record != record:
        folder.write_record(new_record)
    return find_benchmark(record.cell.dataset)
