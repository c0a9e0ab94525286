"""Copies in MLflow that hold what was sent last, and nothing of what was sent before.

MLflow takes back no metric, parameter or input, and of several values at one step it shows the largest. A copy that is
no longer true is therefore replaced: a new run is filled, then the old one is deleted with its traces and its files.
Both carry the tags by which we know them. What MLflow keeps of deleted runs, `mlflow gc` clears.
"""

import getpass
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from medexam.experiments.track.names import original_names, storable_names

SENT = "medexam.sent"
"""Tag: the digest of all that a run was sent, with all its children's. It is set last, so that a copy that was cut off
never counts as whole."""
PARENT = "mlflow.parentRunId"
OVERVIEW = "medexam.overview"
"""Tag: MLflow's id of the run that holds the page and the charts of a run's experiment."""
SOURCE = {"mlflow.source.name": "medexam", "mlflow.source.type": "LOCAL"}
"""Tags that say in MLflow's words what made a run."""
SPANS = "mlflow.trace.spansLocation"
"""Tag by which MLflow says that it keeps a trace's spans."""
_PAGE = 100
"""Runs, traces, parameters or tags that MLflow takes or gives at once."""
_PLAIN = re.compile(r"[\w.,:+ -]+")
"""A value that a filter of MLflow takes between quotes."""
_METRICS_AT_ONCE = 800
"""MLflow takes 1,000 values of all kinds at once."""


@dataclass(frozen=True)
class Copy:
    """All that MLflow is to hold of one thing."""

    name: str
    key_tags: Mapping[str, str]
    """Tags that tell it from everything else in its experiment."""
    began: int
    """Milliseconds since 1970."""
    ended: int
    """Milliseconds since 1970; its metrics are dated by it."""
    status: str = "FINISHED"
    """FINISHED, FAILED or KILLED."""
    tags: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    metrics: Sequence[tuple[str, float, int]] = ()
    """Name, value and step."""
    dataset: Mapping[str, str] | None = None
    """`name`, `digest`, `source` and `profile` of what was asked."""
    context: str = "evaluation"
    """What the data set was used for."""
    files: Sequence[Path] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    """Name of a file -> what stands in it."""

    @property
    def digest(self) -> str:
        """SHA-256 of all that is sent, but for the times."""
        files = {path.name: _hash_file(path) for path in self.files}
        parts = [self.name, self.status, {**self.tags, **self.key_tags}, self.params, self.metrics, self.dataset]
        return hashlib.sha256(
            json.dumps([*parts, files, self.texts], sort_keys=True, default=dict).encode()
        ).hexdigest()


def _hash_file(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def put_copy(client: Any, experiment_id: str, copy: Copy) -> tuple[str, list[Any]]:
    """Return MLflow's id of the run that holds `copy`, and the runs it replaced; one that holds it already stays."""
    runs = find_tracked_runs(client, experiment_id, copy.key_tags)
    current_ids = [str(run.info.run_id) for run in runs if run.data.tags.get(SENT) == copy.digest]
    run_id = current_ids[0] if current_ids else send_copy(client, experiment_id, copy)
    outdated = [run for run in runs if run.info.run_id != run_id]
    for run in outdated:
        _delete(client, run)
    return run_id, outdated


def send_copy(client: Any, experiment_id: str, copy: Copy) -> str:
    """Send `copy` as a new run, and return MLflow's id of it."""
    run_id = create_run(client, experiment_id, copy.name, copy.key_tags, copy.began)
    metrics = [(name, value, copy.ended, step) for name, value, step in copy.metrics]
    log_values(client, run_id, metrics, copy.params, copy.tags)
    if copy.dataset is not None:
        client.log_inputs(run_id, datasets=[dataset_input(copy.dataset, copy.context)])
    for path in copy.files:
        client.log_artifact(run_id, str(path))
    for name, text in copy.texts.items():
        client.log_text(run_id, text, name)
    end_run(client, run_id, copy.status, copy.ended)
    client.set_tag(run_id, SENT, copy.digest)
    return run_id


def log_values(
    client: Any,
    run_id: str,
    metrics: Sequence[tuple[str, float, int, int]],
    params: Mapping[str, str],
    tags: Mapping[str, str],
) -> None:
    """Write metrics (name, value, milliseconds since 1970, step), parameters, and the tags that are not empty.

    Names that MLflow refuses are replaced, and kept as tags. A request holds no more than MLflow takes at once.
    """
    from mlflow.entities import Metric, Param, RunTag

    metric_names = storable_names(name for name, *_ in metrics)
    param_names = storable_names(params)
    tags = {**tags, **original_names(param_names), **original_names(metric_names)}
    batches = zip_longest(
        _slices([Metric(metric_names[name], *point) for name, *point in metrics], _METRICS_AT_ONCE),
        _slices([Param(param_names[name], value) for name, value in params.items()], _PAGE),
        _slices([RunTag(name, value) for name, value in tags.items() if value], _PAGE),
        fillvalue=(),
    )
    for some_metrics, some_params, some_tags in batches:
        client.log_batch(run_id, metrics=some_metrics, params=some_params, tags=some_tags)


def _slices(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (values[start : start + size] for start in range(0, len(values), size))


def dataset_input(dataset: Mapping[str, str], context: str) -> Any:
    """Build a run's input from a data set; `context` says what it was used for."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    return DatasetInput(Dataset(source_type="local", **dataset), [InputTag("mlflow.data.context", context)])


def find_tracked_runs(client: Any, experiment_id: str, tags: Mapping[str, str]) -> list[Any]:
    """Find MLflow's runs in an experiment that carry all of these tags."""
    # MLflow's filters have no escape for a quote, so a value with one is compared here.
    plain = {key: value for key, value in tags.items() if _PLAIN.fullmatch(value)}
    conditions = " and ".join(f"tags.`{key}` = '{value}'" for key, value in plain.items())
    runs = _pages(client.search_runs, [experiment_id], filter_string=conditions)
    return [run for run in runs if all(run.data.tags.get(key) == value for key, value in tags.items())]


def find_traces(client: Any, experiment_id: str, run_id: str) -> dict[str, bool]:
    """Map the id of each trace that is linked to a run to whether its spans were sent."""
    traces = _pages(client.search_traces, locations=[experiment_id], run_id=run_id, include_spans=False)
    return {str(trace.info.trace_id): SPANS in trace.info.tags for trace in traces}


def _pages(search: Callable[..., Any], *arguments: Any, **conditions: Any) -> Iterator[Any]:
    """Yield everything that a search of MLflow finds, page by page."""
    token = None
    while True:
        page = search(*arguments, **conditions, max_results=_PAGE, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def create_run(client: Any, experiment_id: str, name: str, tags: Mapping[str, str], start_time: int) -> str:
    """Create a run of the user who is logged in; return MLflow's id. `start_time` is in milliseconds since 1970."""
    owner = {"mlflow.user": user} if (user := _user()) else {}
    run = client.create_run(experiment_id, start_time=start_time, run_name=name, tags={**tags, **owner})
    return str(run.info.run_id)


def end_run(client: Any, run_id: str, status: str, end_time: int) -> None:
    """Close a run at `end_time`, milliseconds since 1970, as FINISHED, FAILED or KILLED."""
    # With a server, MLflow prints the run's address on standard output, where our results stand.
    with redirect_stdout(io.StringIO()):
        client.set_terminated(run_id, status=status, end_time=end_time)


def _delete(client: Any, run: Any) -> None:
    """Delete a run with its traces and, where the store lets us, its files."""
    from mlflow.exceptions import MlflowException
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    run_id, experiment_id = str(run.info.run_id), str(run.info.experiment_id)
    traces = list(find_traces(client, experiment_id, run_id))
    for start in range(0, len(traces), _PAGE):
        client.delete_traces(experiment_id, trace_ids=traces[start : start + _PAGE])
    client.delete_run(run_id)
    # Some stores, such as buckets that only grow, delete no file.
    with suppress(MlflowException, OSError, NotImplementedError):
        get_artifact_repository(run.info.artifact_uri, tracking_uri=client.tracking_uri).delete_artifacts()


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None
