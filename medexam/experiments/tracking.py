"""MLflow receives a copy of stored runs: one parent run an experiment, one child run a cell.

Sending a run twice updates it. The run folder stays the truth: nothing is read back from MLflow but ids, and whatever
happens here, the run is complete on disk.
"""

import getpass
import io
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from medexam.experiments.mlflow_payload import (
    DIGEST_LENGTH,
    run_metrics,
    run_params,
    run_tags,
    started_at,
    version_tags,
    yearly_metrics,
)
from medexam.experiments.mlflow_store import default_tracking_uri, experiment_id, open_store
from medexam.experiments.run_folder import (
    CORPUS_MAP,
    ENVIRONMENT,
    METRICS,
    PARQUET,
    PREDICTIONS,
    REPORT,
    SPEC,
    RunRecord,
)
from medexam.experiments.summary import AnyMetrics, AnyRun, is_exam_run
from medexam.metrics import Metrics

__all__ = ["TrackedRun", "create_run", "default_tracking_uri", "end_run", "find_run", "track"]

ARTIFACTS = (SPEC, ENVIRONMENT, METRICS, REPORT, PREDICTIONS, PARQUET, CORPUS_MAP)


@dataclass(frozen=True)
class TrackedRun:
    """Where MLflow keeps a run."""

    run_id: str
    """The run's own id, the name of its folder."""
    mlflow_run_id: str
    parent_run_id: str
    """MLflow's id of the experiment's run."""
    experiment_id: str


def track(runs: Sequence[AnyRun], *, tracking_uri: str) -> list[TrackedRun]:
    """Send `runs` to the MLflow store at `tracking_uri`, in order; a run that is already there is updated.

    A run is known by its id and the time it was begun, an experiment by its digest. The MLflow experiment is named
    after the spec. Raises `TrackingError` when the store cannot be reached or written.
    """
    if not runs:
        return []
    families: dict[tuple[str, str], list[AnyRun]] = {}
    for run in runs:
        families.setdefault((run.record.cell.name, run.record.experiment_digest), []).append(run)
    tracked: dict[int, TrackedRun] = {}
    with open_store(tracking_uri) as client:
        for (name, _), family in families.items():
            store = _Store(client, experiment_id(client, name, tracking_uri))
            parent = store.put_parent(family)
            for run in family:
                tracked[id(run)] = store.put_run(run, parent)
                _trace(client, run, tracked[id(run)], tracking_uri)
            store.end(parent, family)
    return [tracked[id(run)] for run in runs]


@dataclass(frozen=True)
class _Store:
    """One MLflow experiment and how runs get into it."""

    client: Any
    experiment_id: str

    def put_parent(self, family: Sequence[AnyRun]) -> str:
        """MLflow's id of the run that stands for the whole experiment."""
        record = family[0].record
        known = {"medexam.kind": "experiment", "medexam.experiment_digest": record.experiment_digest}
        tags = {**version_tags(family[0].environment), "mlflow.note.content": record.description}
        name = f"{record.cell.name} {record.experiment_digest}"
        started = min(_millis(run, "started_at") for run in family)
        run_id = find_run(self.client, self.experiment_id, known) or create_run(
            self.client, self.experiment_id, name, known, started
        )
        self._log(run_id, tags=tags)
        return run_id

    def put_run(self, run: AnyRun, parent: str) -> TrackedRun:
        """One cell under its parent: parameters, metrics, tags, data set and files."""
        known = {"medexam.run_id": run.record.run_id, "medexam.started_at": started_at(run)}
        parentage = {"mlflow.parentRunId": parent}
        run_id = find_run(self.client, self.experiment_id, known) or create_run(
            self.client, self.experiment_id, run.title, {**known, **parentage}, _millis(run, "started_at")
        )
        self._log(run_id, tags={**run_tags(run), **parentage}, run=run)
        self.client.log_inputs(run_id, datasets=[_dataset_input(run)])
        for name in ARTIFACTS:
            path = run.folder.path / name
            if path.exists():
                self.client.log_artifact(run_id, str(path))
        self.end(run_id, [run])
        return TrackedRun(run.record.run_id, run_id, parent, self.experiment_id)

    def end(self, run_id: str, runs: Sequence[AnyRun]) -> None:
        """Close a run: FAILED while any of `runs` owes a question."""
        status = "FINISHED" if all(run.complete for run in runs) else "FAILED"
        end_run(self.client, run_id, status, max(_millis(run, "ended_at") for run in runs))

    def _log(self, run_id: str, *, tags: Mapping[str, str], run: AnyRun | None = None) -> None:
        """One batch; its numbers are dated by the end of the run, so that sending them again adds none."""
        from mlflow.entities import Metric, Param, RunTag

        metrics, params = [], []
        if run is not None:
            at = _millis(run, "ended_at")
            metrics = [Metric(name, value, at, 0) for name, value in run_metrics(run.metrics).items()]
            for year, values in yearly_metrics(run.metrics).items():
                metrics += [Metric(name, value, at, year) for name, value in values.items()]
            params = [Param(key, value) for key, value in run_params(run).items()]
        marks = [RunTag(key, value) for key, value in tags.items() if value]
        self.client.log_batch(run_id, metrics=metrics, params=params, tags=marks)


def find_run(client: Any, experiment_id: str, tags: Mapping[str, str]) -> str | None:
    """MLflow's id of the run in an experiment that carries all of these tags; None where there is none."""
    conditions = " and ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items())
    found = client.search_runs([experiment_id], filter_string=conditions, max_results=1)
    return str(found[0].info.run_id) if found else None


def create_run(client: Any, experiment_id: str, name: str, tags: Mapping[str, str], start_time: int) -> str:
    """MLflow's id of a new run of whoever is logged in; `start_time` in milliseconds since 1970."""
    owner = {"mlflow.user": user} if (user := _user()) else {}
    run = client.create_run(experiment_id, start_time=start_time, run_name=name, tags={**tags, **owner})
    return str(run.info.run_id)


def end_run(client: Any, run_id: str, status: str, end_time: int) -> None:
    """Close a run at `end_time`, milliseconds since 1970, as FINISHED, FAILED or KILLED."""
    # With a server, MLflow prints the run's address on standard output, where our results stand.
    with redirect_stdout(io.StringIO()):
        client.set_terminated(run_id, status=status, end_time=end_time)


def _dataset_input(run: AnyRun) -> Any:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    record, metrics = run.record, run.metrics
    dataset = Dataset(
        name=f"{record.cell.dataset.name}-{record.cell.dataset.language}",
        digest=_data_digest(record),
        source_type="local",
        source=json.dumps({"uri": record.dataset_source}),
        profile=json.dumps({"num_rows": metrics.selected, **_profile(metrics)}),
    )
    return DatasetInput(dataset, [InputTag("mlflow.data.context", "evaluation")])


def _data_digest(record: RunRecord) -> str:
    """The beginnings of both fingerprints: what was asked, and what it was scored with, where the run tells."""
    if record.dataset_golds is None:
        return record.dataset_fingerprint[:DIGEST_LENGTH]
    half = DIGEST_LENGTH // 2
    return record.dataset_fingerprint[:half] + record.dataset_golds[:half]


def _profile(metrics: AnyMetrics) -> dict[str, int]:
    return {"exams": len(metrics.by_exam)} if isinstance(metrics, Metrics) else {"groups": len(metrics.by_group)}


def _trace(client: Any, run: AnyRun, tracked: TrackedRun, tracking_uri: str) -> None:
    if not run.record.cell.trace_questions or not is_exam_run(run):
        return
    # Imported here: it plans the run again, which takes DSPy.
    from medexam.experiments.tracing import trace_run

    trace_run(
        client,
        run,
        mlflow_run_id=tracked.mlflow_run_id,
        experiment_id=tracked.experiment_id,
        tracking_uri=tracking_uri,
    )


def _millis(run: AnyRun, moment: str) -> int:
    """`started_at` or `ended_at` in milliseconds since 1970; now, where the run folder does not tell."""
    text = run.environment.get(moment)
    return round(1000 * (datetime.fromisoformat(text).timestamp() if text else time.time()))


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None
