"""The MLflow store: how it is reached, where its artifacts go, and what an outage becomes.

The only module that opens MLflow. Runs are named by their ids in every call: no active run, no autologging. It knows
nothing of exams.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from medexam.errors import MedExamError, TrackingError
from medexam.experiments.track.database import (
    SQLITE,
    artifact_root,
    is_damaged,
    make_database,
    sqlite_path,
    writing_alone,
)
from medexam.experiments.track.time_limits import TimeLimits
from medexam.library_logging import silent
from medexam.text import hide_address, shorten

NOISY_LOGGERS = ("mlflow", "alembic", "urllib3")
DEFAULTS = {
    # MLflow reports its use to its makers and waits minutes for a server that is down, unless told otherwise.
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}
NOT_INSTALLED = "MLflow is not installed: pip install 'medexam[mlflow]'"
SEND_LATER = "the run folders keep everything; `medexam track RUN` sends it later"
EXPERIMENT_TAGS = {"mlflow.experimentKind": "custom_model_development"}
"""The kind whose page in the UI opens on runs and their charts; others open on traces, of which there are none."""


def named_tracking_uri() -> str | None:
    """Return the store or server that MLflow's own variable `MLFLOW_TRACKING_URI` names; None without it."""
    return os.environ.get("MLFLOW_TRACKING_URI") or None


def own_tracking_uri(runs_dir: Path) -> str:
    """Return the SQLite store that a runs directory keeps beside its runs."""
    return f"{SQLITE}{runs_dir.resolve() / 'mlflow.db'}"


def default_tracking_uri(runs_dir: Path) -> str:
    """Return the store or server that `MLFLOW_TRACKING_URI` names; without it, that of the runs directory."""
    return named_tracking_uri() or own_tracking_uri(runs_dir)


def send_to_store(
    send: Callable[..., object],
    *arguments: object,
    tracking_uri: str | None,
    runs_dir: Path,
    say: Callable[[str], None],
) -> None:
    """Call `send` with a store, by default `default_tracking_uri`; an outage is only said: folders are complete."""
    try:
        send(*arguments, tracking_uri=tracking_uri or default_tracking_uri(runs_dir))
    except TrackingError as error:
        say(str(error))


@contextmanager
def open_store(tracking_uri: str, *, way_out: str = SEND_LATER, writes: bool = True) -> Iterator[Any]:
    """Open an `MlflowClient` for `tracking_uri`; log lines of MLflow and its database tools stay silent meanwhile.

    Of those that `writes`, one at a time is let in on this machine: two would both send what neither finds there.
    Each call of the client ends in time, as `TimeLimits` says. Whatever goes wrong inside the block becomes a
    `TrackingError` that ends in `way_out`.
    """
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    # Imported here: it takes over a second, and the defaults above must be known before. It sets levels of loggers.
    try:
        from mlflow import MlflowClient
    except ImportError:
        raise TrackingError(f"{NOT_INSTALLED}; {way_out}") from None

    path, limits, address = sqlite_path(tracking_uri), TimeLimits(), hide_address(tracking_uri)
    with silent(*NOISY_LOGGERS):
        try:
            if path is not None:
                make_database(path)
            with writing_alone(tracking_uri) if writes else nullcontext():
                yield limits.bound(limits.call(MlflowClient, tracking_uri=tracking_uri))
        except MedExamError:
            raise
        except Exception as error:
            # Without its cause, whose message may hold the password of the address.
            raise _outage(address, error, way_out, path) from None


def tracing_client(client: Any, tracking_uri: str) -> Any:
    """Open a client for traces that shares the time limits of `client`, which `open_store` gave."""
    from mlflow.tracing.client import TracingClient

    return client.limits.bound(TracingClient(tracking_uri))


def start_traces(client: Any, summaries: Sequence[Any]) -> None:
    """Store the summaries of traces by the client that `tracing_client` gave.

    MLflow writes each in two transactions. In a database that this process writes itself, all are written in one.
    """
    if not client.limits.call(_start_at_once, client.unbound, summaries):
        for summary in summaries:
            client.start_trace(summary)


def _start_at_once(client: Any, summaries: Sequence[Any]) -> bool:
    """Store the summaries in one transaction; False if that is not sure, and each is to be sent on its own.

    All are of one experiment, which is looked up once.
    """
    store = client.store
    sessions = getattr(store, "ManagedSessionMaker", None)
    if sessions is None or not summaries:
        return False
    try:
        experiment = store.get_experiment(summaries[0].experiment_id)
        with sessions(read_only=False) as session:

            @contextmanager
            def shared(**_: Any) -> Iterator[Any]:
                yield session

            transaction = session.get_transaction()
            store.ManagedSessionMaker, store.get_experiment = shared, lambda _: experiment
            for summary in summaries:
                store.start_trace(summary)
            # MLflow rolls back where it meets a trace that is there: those before it are then not written.
            return session.get_transaction() is transaction
    except Exception:  # Sent one by one, the summary that fails says why.
        return False
    finally:
        store.ManagedSessionMaker = sessions
        vars(store).pop("get_experiment", None)


def experiment_id(client: Any, name: str, tracking_uri: str) -> str:
    """Return the id of the MLflow experiment `name`, which is made where it does not exist.

    Raises `TrackingError` when it was deleted in the store.
    """
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        root = artifact_root(tracking_uri)
        if root is not None:
            root.mkdir(parents=True, exist_ok=True)
        location = (root / name).as_uri() if root else None
        return str(client.create_experiment(name, artifact_location=location, tags=EXPERIMENT_TAGS))
    if experiment.lifecycle_stage != "active":
        raise TrackingError(
            f"the MLflow experiment {name} was deleted from {tracking_uri}: restore it with "
            f"`mlflow experiments restore -x {experiment.experiment_id}`, or choose another name in the spec"
        )
    return str(experiment.experiment_id)


def _outage(address: str, error: Exception, way_out: str, path: Path | None) -> TrackingError:
    detail = shorten(" ".join(str(error).split()), 300)
    if path is not None and is_damaged(path):
        way_out += f"; the database is damaged: restore it, or move {path} away, and a new one is made"
    return TrackingError(f"MLflow at {address} took nothing ({type(error).__name__}: {detail}); {way_out}")
