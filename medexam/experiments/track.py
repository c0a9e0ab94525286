"""Copies of stored runs in an MLflow store, made by MLflow's public functions alone, and MLflow's UI on it.

A copy holds what was sent last: where anything has changed, a new run takes the place of the old one, since MLflow
takes back no metric, parameter or input. Nothing is read back but ids and our own tags.
"""

import hashlib
import json
import logging
import os
import re
import sqlite3
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import datetime
from heapq import nsmallest
from os.path import commonprefix
from pathlib import Path
from typing import Any, NoReturn

from filelock import FileLock

from medexam.errors import MedExamError, TrackingError
from medexam.experiments.compare.runs import run_names
from medexam.experiments.optimize.optimization import REPORT, Optimization
from medexam.experiments.plan.cells import PlannedCell
from medexam.experiments.report.current import current_run
from medexam.experiments.report.findings import findings
from medexam.experiments.report.markdown import disarm, paragraphs, render_table
from medexam.experiments.report.run_tables import comparison, describe_state, split_families
from medexam.experiments.store.run_folder import DERIVED, PARQUET, RunFolder
from medexam.experiments.store.stored_run import StoredRun
from medexam.files import open_parquet, parquet_rows
from medexam.measures.tables import headline, metric_values
from medexam.predictions import Prediction, Status
from medexam.process import errors_only
from medexam.specs import CellSpec
from medexam.tables import flatten
from medexam.text import hide_address, hide_secrets, shorten

NOTE = "mlflow.note.content"
RUNS_PAGE = "{}/#/experiments/{}/runs?viewStateShareKey=medexam&workflowType=machine_learning"
"""Where a server shows an experiment's runs, by its id, in the view that `_describe` shares."""
_SENT, _KEY, _STARTED = "medexam.sent", "medexam.key", "medexam.started_at"
"""Tags: the digest of all that is sent, set last, so that a copy that was cut off never counts as whole; the digest of
its key; and when it began, which tells it from one of another machine."""
Sample = Sequence[tuple[Prediction, Mapping[str, Any]]]
"""Predictions that become traces, each with what is known beside it, such as its gold."""
_SQLITE, _URI, _EXPERIMENT = "sqlite:///", "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_ID"
_DEFAULTS = {
    # MLflow reports its use to its makers and waits minutes for a server that is down, unless told otherwise.
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    # Results stand on standard output.
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    # Each flush of MLflow's threads waits up to a second.
    "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false",
}


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
    """Open a store for the whole process, without MLflow's log; raises `TrackingError` for what goes wrong inside."""
    os.environ.update(_DEFAULTS | os.environ)
    way_out = "all is on disk; send it later with `medexam track FOLDER` or the same command"
    # Imported here: it takes over a second, and the defaults above must be known before.
    try:
        import mlflow
    except ImportError:
        raise TrackingError(f"MLflow is not installed: pip install 'medexam[mlflow]'; {way_out}") from None
    own = {name: os.environ.pop(name, None) for name in (_URI, _EXPERIMENT, "MLFLOW_EXPERIMENT_NAME")}
    quiet = errors_only("mlflow", "alembic", "urllib3", level=logging.CRITICAL + 1)
    with quiet, warnings.catch_warnings(), ExitStack() as stack:
        warnings.simplefilter("ignore")
        try:
            if path := sqlite_path(tracking_uri):
                path.parent.mkdir(parents=True, exist_ok=True)
                # Commands take turns, since two would both send what neither finds.
                mode = path.parent.stat().st_mode & 0o666
                stack.enter_context(FileLock(path.with_name(f".{path.name}.lock"), 600, mode))
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


def track_runs(runs: Sequence[StoredRun], *, tracking_uri: str) -> list[Any]:
    """Send runs to an MLflow store, in the experiment that their spec names; raises `TrackingError` as `open_store`."""
    with open_store(tracking_uri) as client:
        copies = [_send_run(client, run) for run in runs]
        for experiment_id in dict.fromkeys(copy.experiment_id for copy in copies):
            pairs = [pair for pair in zip(copies, runs, strict=True) if pair[0].experiment_id == experiment_id]
            _describe(client, experiment_id, *map(list, zip(*pairs, strict=True)))
    return copies


def track_changes(runs: Sequence[StoredRun], *, tracking_uri: str) -> list[Any]:
    """Send runs as `track_runs` does, but none if neither they nor a SQLite store have changed since they were sent.

    MLflow, which takes over a second to import, is not imported then.
    """
    if (path := sqlite_path(tracking_uri)) is None:
        return track_runs(runs, tracking_uri=tracking_uri)
    mark = path.with_name(f".{path.name}.sent")
    if mark.exists() and mark.read_text() == _stamp(path, runs):
        return []
    copies = track_runs(runs, tracking_uri=tracking_uri)
    mark.write_text(_stamp(path, runs))
    return copies


def _stamp(path: Path, runs: Sequence[StoredRun]) -> str:
    files = [*path.parent.glob(f"{path.name}*"), *(file for run in runs for file in run.folder.path.iterdir())]
    stats = {str(file): file.stat() for file in files if file.name[0] != "."}
    return _hash({name: (stat.st_mtime_ns, stat.st_size) for name, stat in stats.items()})


def track_failed(cells: Sequence[PlannedCell], why: str, *, tracking_uri: str) -> list[Any]:
    """Send what is there of cells that an error ended: their runs, and a failed run for one that was not begun."""
    runs, copies, tags = [], [], {NOTE: disarm(paragraphs(hide_secrets(why)))}
    with open_store(tracking_uri) as client:
        for planned in cells:
            if planned.folder.exists():
                # A second error must not hide the first.
                with suppress(MedExamError):
                    runs.append(current_run(planned.folder, lambda _: None))
            else:
                params = {"program": planned.cell.program.label, "model": planned.cell.model.label}
                title = " · ".join(params.values())
                copies.append(send_copy(client, planned.cell.name, title, planned.run_id, "FAILED", params, tags))
    return [*track_runs(runs, tracking_uri=tracking_uri), *copies]


def track_optimization(optimization: Optimization, *, tracking_uri: str) -> Any:
    """Send an optimization: its curve by trial, its report, its best program, and how that asked.

    The program is a file, `program.json`: `mlflow.dspy.log_model` would pickle the module and DSPy's settings.
    """
    best, cell, folder = optimization.best, optimization.cell, optimization.work
    values = {"trials": float(len(optimization.trials)), "calls": optimization.calls, "tokens": optimization.tokens}
    if best is not None:
        accuracy, (low, high) = best.accuracy
        values |= {"validation_accuracy": accuracy, "validation_accuracy_low": low, "best_trial": best.number}
        values |= {"validation_accuracy_high": high}
    names = {"program": cell.program.label, "model": cell.model.label, "language": cell.dataset.language}
    tags = {"medexam.ending": optimization.ending, "medexam.run_dir": str(folder.path.resolve())}
    program, report = best and RunFolder(folder.programs / best.digest), folder.path / REPORT
    with open_store(tracking_uri) as client:
        return send_copy(
            client,
            cell.name,
            f"optimize · {optimization.title}",
            folder.name,
            {"interrupted": "KILLED", "failed": "FAILED"}.get(optimization.ending, "FINISHED"),
            _params(cell, optimization.identity) | names,
            tags | {NOTE: report.read_text(encoding="utf-8") if report.exists() else ""},
            [(name, float(value), 0) for name, value in values.items()]
            + [("score", trial.score, trial.number) for trial in optimization.trials],
            started_at=optimization.started_at,
            seconds=optimization.seconds,
            files=list(folder.path.iterdir()),
            sample=lambda: read_sample(program, cell.trace_questions) if program else (),
        )


def _send_run(client: Any, run: StoredRun) -> Any:
    record, environment, values = run.record, run.environment, metric_values(run.metrics)
    dataset = record.cell.dataset
    names = {"model": run.model or "none", "program": run.program, "dataset": dataset.name}
    names |= {"language": dataset.language, "dataset.version": record.dataset_version}
    notes = paragraphs(record.description), describe_state(run), render_table(headline(run.metrics))
    return send_copy(
        client,
        record.cell.name,
        run.title,
        record.run_id,
        "FINISHED" if run.complete else "FAILED" if run.metrics.failed else "KILLED",
        _params(record.cell, record.identity) | names,
        {
            "medexam.spec_digest": record.spec_digest,
            "medexam.run_dir": str(run.folder.path.resolve()),
            "mlflow.source.git.commit": (environment.get("git_commit") or "").removesuffix("+changes"),
            NOTE: disarm("\n\n".join(filter(None, notes))),
        },
        # MLflow compares runs by the first one.
        [(name, values[name], 0) for name in dict.fromkeys((*_main(run), *values))],
        started_at=environment.get("started_at") or "",
        seconds=environment.get("asked_s") or 0.0,
        dataset={
            "name": f"{dataset.name}-{dataset.language}",
            "digest": f"{record.dataset_fingerprint[:16]}{(record.dataset_golds or '')[:16]}",
            "source": json.dumps({"uri": record.dataset_source}),
            "profile": json.dumps({"num_rows": run.metrics.selected}),
        },
        files=[path for path in run.folder.path.iterdir() if run.folder.is_scored or path.name not in DERIVED],
        sample=lambda: read_sample(run.folder, record.cell.trace_questions, record.questions),
    )


def _params(cell: CellSpec, identity: Mapping[str, Any]) -> dict[str, str]:
    """Flatten what an answer depends on but words and steps, which stand as the spec says them."""
    stated = cell.model_dump(mode="json", include={"dataset", "program"})
    return flatten({**identity, "program": None, "words": None}) | flatten(stated)


def _main(run: StoredRun) -> list[str]:
    """Name the metrics that a list shows: the first two measures."""
    values = metric_values(run.metrics)
    return [name for name in run.metrics.measures if name in values][:2] or list(values)[:1]


def _describe(client: Any, experiment_id: str, copies: Sequence[Any], runs: Sequence[StoredRun]) -> None:
    """Describe an experiment, share a view, and name its runs by what tells them apart, unless it holds others too."""
    if len(client.search_runs([experiment_id], "tags.`medexam.spec_digest` != ''")) > len(runs):
        return
    for copy, name in zip(copies, run_names(runs) if len(runs) > 1 else [runs[0].title], strict=True):
        client.update_run(copy.run_id, name=name)
    family = split_families(runs)[0]
    scores = _main(family[0])
    family.sort(key=lambda run: -metric_values(run.metrics).get(scores[0], float("-inf")))
    command = f"medexam report {family[0].folder.path.resolve().parent} --html report.html"
    table = render_table(comparison(family))
    note = disarm(f"{' '.join(findings(family))}\n\n`{command}` writes the page of every question.\n\n{table}\n")
    # Every version of MLflow takes 5,000 characters; a row that does not fit is left out.
    client.set_experiment_tag(experiment_id, NOTE, note[:5_000].rpartition("\n")[0])
    metrics = [f"metrics.`{name}`" for name in (scores[0], f"{scores[0]}_low", f"{scores[0]}_high", *scores[1:])]
    columns = [*metrics, *(f"params.`{name}`" for name in ("program", "model", "language"))]
    state = {"selectedColumns": columns, "orderByKey": columns[0], "orderByAsc": False, "runsHiddenMode": "SHOWALL"}
    client.set_experiment_tag(experiment_id, "mlflow.sharedViewState.medexam", json.dumps(state))


def read_sample(folder: RunFolder, most: int, questions: Collection[str] = ()) -> Sample:
    """Read the predictions of at most `most` questions, with what the run's table knows of their answers.

    They are always the same ones, and among those of a larger number; they are of `questions` where some are given.
    """
    table, facts = folder.path / PARQUET, {}
    all_keys = questions or folder.read_predictions()
    keys = nsmallest(most, all_keys, key=lambda key: hashlib.sha256(key.encode()).digest())
    predictions = folder.read_predictions({*keys}) if keys else {}
    if keys and table.is_file():
        with open_parquet(table) as file:
            columns = [name for name in ("question", "gold", "right") if name in file.schema_arrow.names]
            facts = {row.pop("question"): row for row in parquet_rows(file, columns) if row["question"] in keys}
    return [(predictions[key], facts.get(key, {})) for key in keys if key in predictions]


def send_copy(
    client: Any,
    experiment: str,
    name: str,
    key: str,
    status: str,
    params: Mapping[str, str],
    tags: Mapping[str, str],
    metrics: Sequence[tuple[str, float, int]] = (),
    *,
    started_at: str = "",
    seconds: float = 0.0,
    dataset: Mapping[str, str] | None = None,
    files: Sequence[Path] = (),
    sample: Callable[[], Sample] = tuple,
) -> Any:
    """Send a run, an optimization or a translation unless the store holds it; an older copy goes, with its traces.

    `key` tells it from others in its experiment; a metric is name, value and step; `started_at` is ISO 8601 or now.
    """
    from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param

    experiment_id = _find_experiment(client, experiment)
    files = sorted(path for path in files if path.is_file() and path.name[0] != ".")
    contents = []
    for path in files:
        with path.open("rb") as stream:
            contents.append((path.name, hashlib.file_digest(stream, "sha256").hexdigest()))
    # All that is sent but for the name and the times, which continuing changes.
    digest, key = _hash([status, params, metrics, tags, dataset, contents]), _hash(key)
    olds = client.search_runs([experiment_id], f"tags.`{_KEY}` = '{key}'")
    olds = [run for run in olds if run.data.tags.get(_STARTED, started_at) == started_at]
    copy = next((run.info for run in olds if run.data.tags.get(_SENT) == digest), None)
    if copy is None:
        own = {"mlflow.source.name": "medexam", "mlflow.source.type": "LOCAL", **tags, _KEY: key, _STARTED: started_at}
        own["mlflow.user"] = os.environ.get("USER", "")
        begun = round(1000 * (datetime.fromisoformat(started_at).timestamp() if started_at else time.time()))
        ended = begun + round(1000 * seconds)
        copy = client.create_run(experiment_id, begun, {tag: own[tag][:8_000] for tag in own if own[tag]}, name).info
        points = [Metric(_storable(name), value, ended, step) for name, value, step in metrics]
        client.log_batch(copy.run_id, points, [Param(_storable(name), params[name][:6_000]) for name in params])
        if dataset is not None:
            context = [InputTag("mlflow.data.context", "evaluation")]
            client.log_inputs(copy.run_id, [DatasetInput(Dataset(source_type="local", **dataset), context)])
        client.set_terminated(copy.run_id, status=status, end_time=ended)
        for path in files:
            client.log_artifact(copy.run_id, str(path))
        _send_traces(client, copy, [pair for pair in sample() if pair[0].calls], params)
        client.set_tag(copy.run_id, _SENT, digest)
    for old in olds:
        if old.info.run_id != copy.run_id:
            if traces := _find_traces(client, old.info):
                client.delete_traces(experiment_id, trace_ids=traces)
            client.delete_run(old.info.run_id)
    return copy


def _hash(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=dict).encode()).hexdigest()[:32]


def _find_traces(client: Any, run: Any) -> list[str]:
    traces = client.search_traces(locations=[run.experiment_id], run_id=run.run_id, include_spans=False)
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
    return str(client.create_experiment(name, place, {"mlflow.experimentKind": "custom_model_development"}))


def _storable(name: str) -> str:
    """Return a name as MLflow takes it, which reads names as paths; one that it refuses ends in a digest of its own."""
    text = re.sub(r"[^\w. -]", "_", name, flags=re.ASCII)[:200].strip(". ")
    return text if text == name else f"{text}_{_hash(name)[:6]}"


def _send_traces(client: Any, run: Any, sample: Sample, params: Mapping[str, str]) -> None:
    """Send a trace of each question, and link the run to the prompt that all first calls begin with."""
    import mlflow

    turns = [[(turn["role"], turn["content"]) for turn in prediction.calls[0].messages] for prediction, _ in sample]
    shared = [*commonprefix(turns), ("user", "{{question}}")]  # noqa: RUF071
    template = [{"role": role, "content": text} for role, text in shared]
    # MLflow takes 100,000 characters.
    if len(sample) > 1 and len(template) > 1 and len(json.dumps(template)) <= 100_000:
        name, alias = f"{params['program']}-{params['language']}", f"words-{_hash(template)[:12]}"
        # MLflow lists prompts that are registered or loaded in the experiment that the process names.
        os.environ[_EXPERIMENT] = run.experiment_id
        prompt = client.load_prompt(f"prompts:/{name}@{alias}", allow_missing=True, cache_ttl_seconds=0)
        if prompt is None:
            prompt = client.register_prompt(name, template)
            client.set_prompt_alias(name, alias, prompt.version)
        client.link_prompt_version_to_run(run.run_id, prompt)
    begin = 1_000_000 * run.start_time
    for prediction, facts in sample:
        sent_at = time.monotonic()
        first, end = prediction.calls[0], begin + round(1e9 * (prediction.latency_s or 0))
        root = mlflow.start_span_no_context(
            prediction.question,
            "CHAIN",
            inputs=first.messages[-1]["content"] if first.messages else first.prompt,
            tags={"medexam.question": prediction.question, "medexam.right": str(facts.get("right")).lower()},
            # MLflow would send the address of the folder's git repository, which may hold a password.
            metadata={"mlflow.sourceRun": run.run_id, "mlflow.source.git.repoURL": ""},
            experiment_id=run.experiment_id,
            start_time_ns=begin,
        )
        for call in prediction.calls:
            inputs = {"messages", "prompt", "pictures", "choices", "texts"}
            tokens = {"input_tokens": call.prompt_tokens or 0, "output_tokens": call.completion_tokens or 0}
            tokens["total_tokens"] = sum(tokens.values())
            span = mlflow.start_span_no_context(
                "ask",
                "CHAT_MODEL",
                root,
                call.model_dump(mode="json", include=inputs, exclude_none=True) | call.sampling | call.fields,
                {"mlflow.message.format": "openai", "model": call.model, "mlflow.chat.tokenUsage": tokens},
                start_time_ns=begin,
            )
            reply = {"role": "assistant", "content": call.text, "tool_calls": call.tool_calls or None}
            choices = [{"message": reply, "finish_reason": call.finish_reason}]
            outputs = call.fault or {"choices": choices, "logprobs": call.logprobs}
            span.end(outputs, status="ERROR" if call.fault else "OK", end_time_ns=end)
        stored = prediction.model_dump(mode="json", exclude={"question", "calls"}, exclude_none=True)
        answer = {name: stored[name] for name in ("answer", "text") if name in stored}
        status = "ERROR" if prediction.status is Status.FAILED else "OK"
        root.end(answer | dict(facts) | stored, status=status, end_time_ns=end)
        # MLflow only logs that a trace was not taken.
        if time.monotonic() - sent_at > 20:
            break
    if sample and (count := len(_find_traces(client, run))) < len(sample):
        raise TrackingError(f"MLflow took {count} of {len(sample)} traces; `trace_questions: 0` sends none")


def serve_ui(tracking_uri: str, *, host: str, port: int) -> NoReturn:
    """Say where experiments are shown, and become MLflow's server; raises `TrackingError` without a store."""
    server, path = f"http://{host}:{port}", sqlite_path(tracking_uri)
    if tracking_uri.startswith(("http://", "https://")) or (path is not None and not path.is_file()):
        raise TrackingError(
            f"no MLflow store at {hide_address(tracking_uri)}: a server has its own UI for a browser; else "
            "run an experiment first, send stored runs with `medexam track RUN`, or name another --runs-dir"
        )
    with open_store(tracking_uri) as client:
        experiments = client.search_experiments(filter_string="name != 'Default'")
    sys.stderr.write(f"MLflow UI at {server}, ready in a few seconds; Ctrl-C ends it\n")
    sys.stderr.writelines(f"  {one.name}: {RUNS_PAGE.format(server, one.experiment_id)}\n" for one in experiments)
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", tracking_uri, "--workers", "1"]
    command += [] if path is None else ["--artifacts-destination", (path.parent / "mlartifacts").as_uri()]
    # A lower level would show how uvicorn is interrupted.
    command += ["--host", host, "--port", str(port), "--uvicorn-opts", "--log-level=critical"]
    # A module in the user's folder must not stand for one of MLflow's.
    os.environ |= {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "PYTHONSAFEPATH": "1", "PYTHONWARNINGS": "ignore"}
    os.execv(sys.executable, command)  # noqa: S606 - no shell is meant
