"""Copies in an MLflow store, made by MLflow's public functions alone, and MLflow's UI on it.

A copy holds what was sent last: where anything has changed, a new run takes the place of the old one, since MLflow
takes back no metric, parameter or input. Calls become traces as they are stored. Nothing is read back but ids and our
own tags.
"""

import hashlib
import json
import os
import re
import sqlite3
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from os.path import commonprefix
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from filelock import FileLock

from medexam.errors import MedExamError, TrackingError
from medexam.library_logging import silent
from medexam.predictions import Prediction, Status
from medexam.text import hide_address, shorten

NOTE = "mlflow.note.content"
_SENT, _KEY, _STARTED = "medexam.sent", "medexam.key", "medexam.started_at"
"""Tags: the digest of all that is sent, set last, so that a copy that was cut off never counts as whole; the digest of
its key; and when it began, which tells it from one of another machine."""
_SQLITE, _URI, _EXPERIMENT = "sqlite:///", "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_ID"
_GIVEN = {"messages", "prompt", "pictures", "choices", "texts"}
"""Fields of a call that say what the model is given."""
_DEFAULTS = {
    # MLflow reports its use to its makers and waits minutes for a server that is down, unless told otherwise.
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    # Results stand on standard output.
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    # Spans that are written together take a third of the time; what its queue does not hold, MLflow drops.
    "MLFLOW_ASYNC_TRACE_LOGGING_MAX_SPAN_BATCH_SIZE": "500",
    "MLFLOW_ASYNC_TRACE_LOGGING_MAX_QUEUE_SIZE": "1000000",
}


class CopyIds(NamedTuple):
    """Where a copy lies in its store."""

    run_id: str
    experiment_id: str


@dataclass(frozen=True, kw_only=True)
class Copy:
    """All that MLflow is to hold of one thing: a run, an optimization or a translation."""

    experiment: str
    name: str
    key: str
    """What tells it from others in its experiment."""
    started_at: str = ""
    """ISO 8601; empty: now."""
    seconds: float = 0.0
    """How long it took."""
    status: str = "FINISHED"
    params: Mapping[str, str]
    metrics: Sequence[tuple[str, float, int]] = ()
    """Name, value and step."""
    tags: Mapping[str, str] = field(default_factory=dict)
    dataset: Mapping[str, str] | None = None
    """`name`, `digest`, `source` and `profile` of what was asked."""
    files: Sequence[Path] = ()
    sample: Callable[[], Sequence[tuple[Prediction, Mapping[str, Any]]]] = tuple
    """Reads the predictions that are sent as traces, each with what is known beside it, such as its gold."""


def own_tracking_uri(runs_dir: Path) -> str:
    """Return the SQLite store that a runs directory keeps beside its runs."""
    return f"{_SQLITE}{runs_dir.resolve() / 'mlflow.db'}"


def default_tracking_uri(runs_dir: Path) -> str:
    """Return the store or server that `MLFLOW_TRACKING_URI` names; without it, that of the runs directory."""
    return os.environ.get(_URI) or own_tracking_uri(runs_dir)


def sqlite_path(tracking_uri: str) -> Path | None:
    """Return the database file of a SQLite store; None for any other store."""
    return Path(tracking_uri.removeprefix(_SQLITE)).absolute() if tracking_uri.startswith(_SQLITE) else None


@contextmanager
def open_store(tracking_uri: str) -> Iterator[Any]:
    """Open an `MlflowClient` for `tracking_uri`, which the whole process uses meanwhile; MLflow logs nothing.

    Raises `TrackingError` for whatever goes wrong inside the block.
    """
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    way_out = "all is on disk; send it later with `medexam track FOLDER` or the same command"
    # Imported here: it takes over a second, and the defaults above must be known before.
    try:
        import mlflow
    except ImportError:
        raise TrackingError(f"MLflow is not installed: pip install 'medexam[mlflow]'; {way_out}") from None
    own = {name: os.environ.pop(name, None) for name in (_URI, _EXPERIMENT, "MLFLOW_EXPERIMENT_NAME")}
    with silent("mlflow", "alembic", "urllib3"), warnings.catch_warnings(), ExitStack() as stack:
        warnings.simplefilter("ignore")
        try:
            if path := sqlite_path(tracking_uri):
                path.parent.mkdir(parents=True, exist_ok=True)
                # Commands take turns, since two would both send what neither finds.
                lock, mode = path.with_name(f".{path.name}.lock"), path.parent.stat().st_mode & 0o666
                stack.enter_context(FileLock(lock, 600, mode))
                if not path.exists():
                    # Made elsewhere first: MLflow refuses one for good that was cut off between its tables.
                    (draft := path.with_name(f".{path.name}.new")).write_bytes(b"")
                    mlflow.MlflowClient(f"{_SQLITE}{draft}")
                    draft.replace(path)
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


def send_copies(copies: Sequence[Copy], tracking_uri: str) -> list[CopyIds]:
    """Send each copy unless the store holds it; raises `TrackingError` as `open_store` does."""
    with open_store(tracking_uri) as client:
        return [_put(client, copy, _find_experiment(client, copy.experiment)) for copy in copies]


def _put(client: Any, copy: Copy, experiment_id: str) -> CopyIds:
    """Send a copy unless the store holds it; an older one goes, with its traces."""
    files = sorted(path for path in copy.files if path.is_file() and path.name[0] != ".")
    contents = [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]
    # All that is sent but for the name and the times, which continuing changes.
    digest = _hash([copy.status, copy.params, copy.metrics, copy.tags, copy.dataset, contents])
    tags = {_KEY: _hash(copy.key), _STARTED: copy.started_at}
    runs = client.search_runs([experiment_id], f"tags.`{_KEY}` = '{tags[_KEY]}'")
    runs = [run for run in runs if run.data.tags.get(_STARTED, copy.started_at) == copy.started_at]
    olds = {run.info.run_id: run.data.tags.get(_SENT) for run in runs}
    ids = next((CopyIds(old, experiment_id) for old in olds if olds[old] == digest), None)
    if ids is None:
        ids = _send(client, experiment_id, copy, tags, files)
        client.set_tag(ids.run_id, _SENT, digest)
    for old in olds.keys() - {ids.run_id}:
        if traces := _find_traces(client, CopyIds(old, experiment_id)):
            client.delete_traces(experiment_id, trace_ids=traces)
        client.delete_run(old)
    return ids


def _hash(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=dict).encode()).hexdigest()[:32]


def _find_traces(client: Any, ids: CopyIds) -> list[str]:
    traces = client.search_traces(locations=[ids.experiment_id], run_id=ids.run_id, include_spans=False)
    return [trace.info.trace_id for trace in traces]


def _find_experiment(client: Any, name: str) -> str:
    if (experiment := client.get_experiment_by_name(name)) is not None:
        if experiment.lifecycle_stage != "active":
            way_out = f"`mlflow experiments restore -x {experiment.experiment_id}`, or choose another name in the spec"
            raise TrackingError(f"the MLflow experiment {name} was deleted: {way_out}")
        return str(experiment.experiment_id)
    path = sqlite_path(os.environ[_URI])
    place = (path.parent / "mlartifacts" / name).as_uri() if path else None
    # The page of this kind opens on runs; others open on traces.
    kind = {"mlflow.experimentKind": "custom_model_development"}
    return str(client.create_experiment(name, artifact_location=place, tags=kind))


def _send(client: Any, experiment_id: str, copy: Copy, tags: Mapping[str, str], files: Sequence[Path]) -> CopyIds:
    import mlflow
    from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param

    source = {"mlflow.source.name": "medexam", "mlflow.source.type": "LOCAL", "mlflow.user": os.environ.get("USER", "")}
    tags = {name: value[:8_000] for name, value in {**source, **copy.tags, **tags}.items() if value}
    begun = round(1000 * (datetime.fromisoformat(copy.started_at).timestamp() if copy.started_at else time.time()))
    ended = begun + round(1000 * copy.seconds)
    run_id = client.create_run(experiment_id, begun, tags, copy.name).info.run_id
    client.log_batch(
        run_id,
        metrics=[Metric(_storable(name), value, ended, step) for name, value, step in copy.metrics],
        params=[Param(_storable(name), value[:6_000]) for name, value in copy.params.items()],
    )
    if copy.dataset is not None:
        dataset, context = Dataset(source_type="local", **copy.dataset), InputTag("mlflow.data.context", "evaluation")
        client.log_inputs(run_id, datasets=[DatasetInput(dataset, [context])])
    client.set_terminated(run_id, status=copy.status, end_time=ended)
    for path in files:
        client.log_artifact(run_id, str(path))
    ids, sample = CopyIds(run_id, experiment_id), [pair for pair in copy.sample() if pair[0].calls]
    _register_prompt(client, [prediction.calls[0].messages for prediction, _ in sample], ids, copy.params)
    for prediction, facts in sample:
        _send_trace(prediction, facts, ids, 1_000_000 * begun)
    # MLflow sends traces in threads that only log their failures.
    mlflow.flush_trace_async_logging()
    if sample and (count := len(_find_traces(client, ids))) < len(sample):
        raise TrackingError(f"MLflow took {count} of {len(sample)} traces; `trace_questions: 0` sends none")
    return ids


def _storable(name: str) -> str:
    """Return a name as MLflow takes it, which reads names as paths; one that it refuses ends in a digest of its own."""
    text = re.sub(r"[^\w. -]", "_", name, flags=re.ASCII)[:200].strip(". ")
    return text if text == name else f"{text}_{_hash(name)[:6]}"


def _register_prompt(client: Any, calls: Sequence[Sequence[Any]], ids: CopyIds, params: Mapping[str, str]) -> None:
    """Link a run to the turns that all its first calls begin with; each text is registered once, under its digest."""
    turns = commonprefix([[(turn["role"], turn["content"]) for turn in messages] for messages in calls])  # noqa: RUF071
    template = [{"role": role, "content": text} for role, text in (*turns, ("user", "{{question}}"))]
    # MLflow takes 100,000 characters.
    if len(calls) < 2 or not turns or len(json.dumps(template)) > 100_000:
        return
    name, alias = f"{params['program']}-{params['language']}", f"words-{_hash(template)[:12]}"
    # MLflow lists prompts that are registered or loaded in the experiment that the process names.
    os.environ[_EXPERIMENT] = ids.experiment_id
    prompt = client.load_prompt(f"prompts:/{name}@{alias}", allow_missing=True, cache_ttl_seconds=0)
    if prompt is None:
        prompt = client.register_prompt(name, template)
        client.set_prompt_alias(name, alias, prompt.version)
    client.link_prompt_version_to_run(ids.run_id, prompt)


def _send_trace(prediction: Prediction, facts: Mapping[str, Any], ids: CopyIds, begin: int) -> None:
    """Send a trace of a question, with a span for each call."""
    import mlflow

    calls, end = prediction.calls, begin + round(1e9 * (prediction.latency_s or 0))
    root = mlflow.start_span_no_context(
        prediction.question,
        "CHAIN",
        inputs=calls[0].messages[-1]["content"] if calls[0].messages else calls[0].prompt,
        tags={"medexam.question": prediction.question, "medexam.right": str(facts.get("right")).lower()},
        # MLflow would send the address of the folder's git repository, which may hold a password.
        metadata={"mlflow.sourceRun": ids.run_id, "mlflow.source.git.repoURL": ""},
        experiment_id=ids.experiment_id,
        start_time_ns=begin,
    )
    for call in calls:
        given = call.model_dump(mode="json", include=_GIVEN, exclude_none=True)
        tokens = {"input_tokens": call.prompt_tokens or 0, "output_tokens": call.completion_tokens or 0}
        tokens["total_tokens"] = sum(tokens.values())
        span = mlflow.start_span_no_context(
            "ask",
            "CHAT_MODEL",
            parent_span=root,
            inputs={**given, **call.sampling, **call.fields},
            attributes={"mlflow.message.format": "openai", "model": call.model, "mlflow.chat.tokenUsage": tokens},
            start_time_ns=begin,
        )
        reply = {"role": "assistant", "content": call.text, "tool_calls": call.tool_calls or None}
        choice = {"message": reply, "finish_reason": call.finish_reason}
        outputs = call.fault or {"choices": [choice], "logprobs": call.logprobs}
        span.end(outputs=outputs, status="ERROR" if call.fault else "OK", end_time_ns=end)
    stored = prediction.model_dump(mode="json", exclude={"question", "calls"}, exclude_none=True)
    answer = {name: stored[name] for name in ("answer", "text") if name in stored}
    failed = prediction.status is Status.FAILED
    root.end(outputs=answer | dict(facts) | stored, status="ERROR" if failed else "OK", end_time_ns=end)


def view_address(server: str, experiment_id: str) -> str:
    """Return the page of an experiment's runs in the view that `track` shares."""
    return f"{server}/#/experiments/{experiment_id}/runs?viewStateShareKey=medexam&workflowType=machine_learning"


def experiment_pages(tracking_uri: str, server: str) -> dict[str, str]:
    """Map each experiment in the store to the address of its runs in the UI: a list with scores, the best first.

    Raises `TrackingError` when there is no store, or it is a server with its own UI.
    """
    path = sqlite_path(tracking_uri)
    if tracking_uri.startswith(("http://", "https://")) or (path is not None and not path.is_file()):
        raise TrackingError(
            f"no MLflow store at {hide_address(tracking_uri)}: a server has its own UI for a browser; else "
            "run an experiment first, send stored runs with `medexam track RUN`, or name another --runs-dir"
        )
    with open_store(tracking_uri) as client:
        experiments = client.search_experiments(filter_string="name != 'Default'")
        return {one.name: view_address(server, one.experiment_id) for one in experiments}


def serve_ui(tracking_uri: str, *, host: str, port: int) -> NoReturn:
    """Become MLflow's server, which Ctrl-C ends with its workers."""
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", tracking_uri, "--workers", "1"]
    if (path := sqlite_path(tracking_uri)) is not None:
        command += ["--artifacts-destination", (path.parent / "mlartifacts").as_uri()]
    # A lower level would show how uvicorn is interrupted.
    command += ["--host", host, "--port", str(port), "--uvicorn-opts", "--log-level=critical"]
    # A module in the user's folder must not stand for one of MLflow's.
    safe = {"PYTHONSAFEPATH": "1", "PYTHONWARNINGS": "ignore"}
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", **safe}
    os.execve(sys.executable, command, environment)  # noqa: S606 - no shell is meant
