"""Copies in an MLflow store, made by MLflow's public functions alone.

A copy holds what was sent last: where anything has changed, a new run takes the place of the old one, since MLflow
takes back no metric, parameter or input. Nothing is read back but ids and our own tags.
"""

import hashlib
import json
import os
import posixpath
import sqlite3
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock

from medexam.errors import MedExamError, TrackingError
from medexam.experiments.track.traces import Asked, check_traces, register_prompts, send_traces
from medexam.files import cache_dir
from medexam.library_logging import silent
from medexam.tables import mlflow_name
from medexam.text import hide_address, shorten

NOTE = "mlflow.note.content"
SEND_LATER = "what is answered is on disk; send it later with `medexam track FOLDER`"
_SENT, _KEY = "medexam.sent", "medexam.key"
"""Tags: the digest of all that was sent, which is set last, so a copy that was cut off never counts as whole; and the
digest of what tells a copy from others."""
_SQLITE, _URI, _EXPERIMENT = "sqlite:///", "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_ID"
_DEFAULTS = {
    # MLflow reports its use to its makers and waits minutes for a server that is down, unless told otherwise.
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    # Spans that are written together take a third of the time; what its queue does not hold, MLflow drops.
    "MLFLOW_ASYNC_TRACE_LOGGING_MAX_SPAN_BATCH_SIZE": "500",
    "MLFLOW_ASYNC_TRACE_LOGGING_MAX_QUEUE_SIZE": "1000000",
}


@dataclass(frozen=True, kw_only=True)
class Copy:
    """All that MLflow is to hold of one thing."""

    experiment: str
    name: str
    kind: str
    """What it is: a run, an optimization, a translation or a fine-tuning."""
    key: str
    """What tells it from others of its kind in its experiment."""
    began: int
    """Milliseconds since 1970, as `ended`."""
    ended: int
    status: str = "FINISHED"
    """FINISHED, FAILED or KILLED."""
    params: Mapping[str, str] = field(default_factory=dict)
    metrics: Sequence[tuple[str, float, int]] = ()
    """Name, value and step."""
    tags: Mapping[str, str] = field(default_factory=dict)
    dataset: Mapping[str, str] | None = None
    """`name`, `digest`, `source` and `profile` of what was asked."""
    files: Sequence[Path] = ()
    prompt: str = ""
    """How its prompts are named in MLflow's registry."""
    sample: Callable[[], Sequence[Asked]] = list
    """Reads the predictions that are sent as traces, and whose common words are registered as prompts."""

    def digest(self) -> str:
        """Hash all that is sent, but for the name and the times."""
        files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in self.files}
        values = [self.status, self.params, self.metrics, self.tags, self.dataset, files]
        return hashlib.sha256(json.dumps(values, sort_keys=True, default=dict).encode()).hexdigest()


class SentCopy(NamedTuple):
    """Where MLflow keeps a copy."""

    run_id: str
    experiment_id: str


def own_tracking_uri(runs_dir: Path) -> str:
    """Return the SQLite store that a runs directory keeps beside its runs."""
    return f"{_SQLITE}{runs_dir.resolve() / 'mlflow.db'}"


def default_tracking_uri(runs_dir: Path) -> str:
    """Return the store or server that `MLFLOW_TRACKING_URI` names; without it, that of the runs directory."""
    return os.environ.get(_URI) or own_tracking_uri(runs_dir)


def sqlite_path(tracking_uri: str) -> Path | None:
    """Return the database file of a SQLite store; None for any other store."""
    return Path(tracking_uri.removeprefix(_SQLITE)).absolute() if tracking_uri.startswith(_SQLITE) else None


def view_address(server: str, experiment_id: str) -> str:
    """Return the page of an experiment's runs in the view that `put_view` shares."""
    return f"{server}/#/experiments/{experiment_id}/runs?viewStateShareKey=medexam&workflowType=machine_learning"


@contextmanager
def open_store(tracking_uri: str, way_out: str = SEND_LATER) -> Iterator[Any]:
    """Open an `MlflowClient` for `tracking_uri`, which the whole process uses meanwhile; MLflow logs nothing.

    Commands of this machine take turns, since two would both send what neither finds. Whatever goes wrong inside the
    block becomes a `TrackingError` that ends in `way_out`.
    """
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    # Imported here: it takes over a second, and the defaults above must be known before.
    try:
        import mlflow
    except ImportError:
        raise TrackingError(f"MLflow is not installed: pip install 'medexam[mlflow]'; {way_out}") from None
    path = sqlite_path(tracking_uri)
    own = {name: os.environ.pop(name, None) for name in (_URI, _EXPERIMENT, "MLFLOW_EXPERIMENT_NAME")}
    lock = path or cache_dir() / "mlflow" / hashlib.sha256(tracking_uri.encode()).hexdigest()[:16]
    with silent("mlflow", "alembic", "urllib3"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            # Everybody who may write the folder may take the lock.
            with FileLock(lock.with_name(f".{lock.name}.lock"), 600, lock.parent.stat().st_mode & 0o666):
                if path is not None and not path.exists():
                    _make_database(path)
                elif path is not None:
                    # MLflow tries a file that is no database again for minutes.
                    with closing(sqlite3.connect(path)) as database:
                        database.execute("select count(*) from sqlite_master")
                mlflow.set_tracking_uri(tracking_uri)
                yield mlflow.MlflowClient()
        except MedExamError:
            raise
        except Exception as error:
            # Without its cause, whose message may hold the password of the address.
            detail = f"{type(error).__name__}: {shorten(' '.join(str(error).split()), 300)}"
            raise TrackingError(f"MLflow at {hide_address(tracking_uri)} took nothing ({detail}); {way_out}") from None
        finally:
            mlflow.set_tracking_uri(None)
            os.environ.pop(_EXPERIMENT, None)
            os.environ.update({name: value for name, value in own.items() if value is not None})


def _make_database(path: Path) -> None:
    """Make the store under another name first: MLflow refuses one for good that was cut off between its tables."""
    from mlflow import MlflowClient

    draft = path.with_name(f".{path.name}.draft")
    for name in (draft.name, f"{draft.name}-journal"):
        draft.with_name(name).unlink(missing_ok=True)
    # SQLite itself would let no group write, whatever the umask says.
    draft.touch()
    MlflowClient(f"{_SQLITE}{draft}")
    draft.replace(path)


def send_copy(copy: Copy, tracking_uri: str, way_out: str = SEND_LATER) -> SentCopy:
    """Send a copy to a store that holds nothing of it, or an older one; raises `TrackingError` as `open_store` does."""
    with open_store(tracking_uri, way_out) as client:
        return put_copies(client, [copy])[0]


def put_copies(client: Any, copies: Sequence[Copy]) -> list[SentCopy]:
    """Send each copy unless the store holds it; an older one goes, with its traces."""
    sent, expected, digests = [], {}, {}
    for copy in copies:
        experiment_id = _find_experiment(client, copy.experiment)
        digest, key = copy.digest(), hashlib.sha256(f"{copy.kind} {copy.key}".encode()).hexdigest()[:16]
        found = client.search_runs([experiment_id], f"tags.`{_KEY}` = '{key}'")
        run_id = next((run.info.run_id for run in found if run.data.tags.get(_SENT) == digest), None)
        if run_id is None:
            run_id = _send(client, experiment_id, copy, {_KEY: key, "medexam.kind": copy.kind})
            sample = [asked for asked in copy.sample() if asked.prediction.calls]
            # MLflow lists prompts in the experiment that the process names.
            os.environ[_EXPERIMENT] = experiment_id
            register_prompts(client, sample, copy.prompt, run_id)
            send_traces(sample, copy.began, experiment_id, run_id)
            expected[experiment_id, run_id], digests[run_id] = len(sample), digest
        sent.append(SentCopy(run_id, experiment_id))
        for old in (run.info.run_id for run in found if run.info.run_id != run_id):
            if old_traces := client.search_traces(locations=[experiment_id], run_id=old, include_spans=False):
                client.delete_traces(experiment_id, trace_ids=[trace.info.trace_id for trace in old_traces])
            client.delete_run(old)
    check_traces(client, expected)
    for run_id, digest in digests.items():
        client.set_tag(run_id, _SENT, digest)
    return sent


def put_view(client: Any, experiment_id: str, columns: Sequence[str], note: str) -> None:
    """Keep a description of an experiment, and a shared view of its runs with these columns, the best first."""
    state = {"selectedColumns": columns, "orderByKey": columns[0], "orderByAsc": False, "runsHiddenMode": "SHOWALL"}
    client.set_experiment_tag(experiment_id, "mlflow.sharedViewState.medexam", json.dumps(state))
    client.set_experiment_tag(experiment_id, NOTE, note)


def plain_files(folder: Path) -> list[Path]:
    """Return the files of a folder that are not hidden, without what lies in folders of its own."""
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def _find_experiment(client: Any, name: str) -> str:
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        path = sqlite_path(os.environ[_URI])
        place = (path.parent / "mlartifacts" / name).as_uri() if path else None
        # The page of this kind opens on runs; others open on traces.
        kind = {"mlflow.experimentKind": "custom_model_development"}
        return str(client.create_experiment(name, artifact_location=place, tags=kind))
    if experiment.lifecycle_stage != "active":
        raise TrackingError(
            f"the MLflow experiment {name} was deleted from {hide_address(os.environ[_URI])}: restore it with `mlflow "
            f"experiments restore -x {experiment.experiment_id}`, or choose another name in the spec"
        )
    return str(experiment.experiment_id)


def _send(client: Any, experiment_id: str, copy: Copy, tags: Mapping[str, str]) -> str:
    from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag

    run_id = str(client.create_run(experiment_id, start_time=copy.began, run_name=copy.name).info.run_id)
    params, metrics = _storable(copy.params), _storable(name for name, *_ in copy.metrics)
    source = {"mlflow.source.name": "medexam", "mlflow.source.type": "LOCAL", "mlflow.user": os.environ.get("USER", "")}
    tags = {**source, **copy.tags, **tags}
    client.log_batch(
        run_id,
        metrics=[Metric(metrics[name], value, copy.ended, step) for name, value, step in copy.metrics],
        params=[Param(params[name], value[:6_000]) for name, value in copy.params.items()],
        tags=[RunTag(name, value[:8_000]) for name, value in tags.items() if value],
    )
    if copy.dataset is not None:
        dataset, context = Dataset(source_type="local", **copy.dataset), InputTag("mlflow.data.context", "evaluation")
        client.log_inputs(run_id, datasets=[DatasetInput(dataset, [context])])
    # With a server, MLflow prints the run's address on standard output, where our results stand.
    with redirect_stdout(StringIO()):
        client.set_terminated(run_id, status=copy.status, end_time=copy.ended)
    for path in copy.files:
        client.log_artifact(run_id, str(path))
    return run_id


def _storable(names: Iterable[str]) -> dict[str, str]:
    """Map each name to one of its own that MLflow takes: the same where possible."""
    stored: dict[str, str] = {}
    for name in sorted(dict.fromkeys(names), key=lambda name: mlflow_name(name) != name):
        # MLflow reads a name as a path, and refuses one that is not the shortest for its place.
        short = posixpath.normpath(mlflow_name(name)[:200]).strip("/. ") or "_"
        while short in stored.values():
            short += "_"
        stored[name] = short
    return stored
