"""What is made of a run's answers: `metrics.json`, `report.md` and the Parquet file, now or again at any later time."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from medexam.benchmarks.registry import find_stored_benchmark
from medexam.errors import RunBusyError, RunFolderError
from medexam.experiments.report.markdown import run_report
from medexam.experiments.score.own import score_all
from medexam.experiments.store.data_changes import check_items
from medexam.experiments.store.freshness import DERIVED, Say, record_made
from medexam.experiments.store.items import begin_run, digest_data
from medexam.experiments.store.parquet import write_parquet
from medexam.experiments.store.run_folder import METRICS, REPORT, RunFolder, describe_items
from medexam.experiments.store.stored_run import RUNNING, AnyRun, stored_run
from medexam.questions import AnySet

SURE_S = 10.0
"""Seconds after which the rate of a run says how long it takes still."""
_DERIVED = ", ".join(DERIVED[:-1]) + f" and {DERIVED[-1]}"


def renew(folder: RunFolder, reason: str, say: Say, code: Collection[str] = ()) -> AnyRun:
    """Make the derived files in `folder` anew for this reason, and return the run as `current_run` tells.

    The metrics in `code` are run; others of the user's own keep their scores.
    """
    try:
        with folder.locked():
            folder.merge_shards()
            checked = check_items(folder)
            if checked.text_note is None:
                begin_run(folder, replace(folder.read_record(), **describe_items(checked.items)), checked.items)
            run = score_cell(folder, checked.items, code=code, note=checked.text_note)
    except RunBusyError:
        run = _score(folder, code)
        if run.complete:
            return run
        metrics = run.metrics
        answered = metrics.selected - metrics.missing - metrics.failed
        left = describe_time_left(run.environment, answered, metrics.selected, datetime.now(UTC))
        return replace(run, note=f"{RUNNING}: {answered:,} of {metrics.selected:,} questions answered{left}")
    except RunFolderError as error:
        run = _score(folder, code)
        say(f"{folder.name}: {_DERIVED} are out of date ({reason}) and cannot be made again: {error}")
        return run
    say(checked.gold_note or f"{folder.name}: made {_DERIVED} again: {reason}")
    return run


def _score(folder: RunFolder, code: Collection[str]) -> AnyRun:
    """Score the run in `folder`; nothing is written."""
    checked = check_items(folder)
    with folder.opened_predictions() as predictions:
        scored = score_all(folder, _benchmark_of(folder, checked.items), checked.items, predictions, code)
        run = stored_run(folder, scored.metrics, predictions if scored.metrics.failed else {})
    return replace(run, note=checked.text_note, files_fresh=False)


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


def score_cell(folder: RunFolder, items: AnySet, *, code: Collection[str] = (), note: str | None = None) -> AnyRun:
    """Score the predictions in `folder` on all of these items and write what is made of them.

    These are `metrics.json`, `report.md`, the Parquet file, and what they were made from. `items` are those that the
    folder holds; the metrics in `code` are run; `note` is what a reader should know. The folder must be locked where
    others may write it. Raises `RunFolderError` where it cannot be written, and `EngineError` where what a benchmark
    is scored with is not installed.
    """
    benchmark = _benchmark_of(folder, items)
    with folder.opened_predictions() as predictions:
        scored = score_all(folder, benchmark, items, predictions, code)
        folder.write_json(METRICS, scored.metrics.model_dump(mode="json"))
        write_parquet(folder, benchmark, items, predictions, scored)
        run = replace(stored_run(folder, scored.metrics, predictions if scored.metrics.failed else {}), note=note)
        folder.write_text(REPORT, run_report(run, predictions))
    record_made(folder, digest_data(items, folder.read_record().cell.dataset), note)
    return run


def _benchmark_of(folder: RunFolder, items: AnySet) -> Any:
    return find_stored_benchmark(folder.read_record().cell.dataset, in_words=items.in_words)
