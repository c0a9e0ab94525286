"""MLflow receives a copy of stored runs: one run a cell, and one an experiment for its page and its charts.

Runs lie side by side, so that every list shows each with its scores. A run of an earlier version, which nested them,
lies so once it is sent again.

A run that is sent again is replaced where it has changed, so that MLflow holds what the folder holds and nothing else.
The run folder stays the truth: nothing is read back from MLflow but ids, and whatever happens here, the run is complete
on disk.
"""

import hashlib
import json
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from medexam.benchmarks.measures import measure_values
from medexam.datasets.kept import reads_kept
from medexam.errors import MedExamError, RunFolderError
from medexam.experiments.report.escaping import disarm, paragraphs
from medexam.experiments.report.tables import split_families
from medexam.experiments.store.answerers import MODELS
from medexam.experiments.store.freshness import DERIVED, MADE_FROM
from medexam.experiments.store.run_folder import CORPUS_MAP, ENVIRONMENT, PREDICTIONS, SPEC
from medexam.experiments.store.stored_run import AnyRun, ExamRun
from medexam.experiments.track.charts import render_charts
from medexam.experiments.track.copies import (
    OVERVIEW,
    PARENT,
    SENT,
    Copy,
    create_run,
    end_run,
    find_tracked_runs,
    put_copy,
)
from medexam.experiments.track.database import find_sent, sqlite_path
from medexam.experiments.track.payload import DIGEST_LENGTH, run_params, run_tags, started_at, version_tags
from medexam.experiments.track.run_list import NOTE, describe_experiment, main_scores, put_view, sort_best_first
from medexam.experiments.track.store import default_tracking_uri, experiment_id, open_store
from medexam.files import write_whole
from medexam.plugins import __version__

__all__ = ["TrackedRun", "attach_map", "default_tracking_uri", "track"]

ARTIFACTS = (SPEC, ENVIRONMENT, MODELS, PREDICTIONS, CORPUS_MAP)
"""What a run is sent with besides its derived files, where they say what the run says."""
PAGE = "report.html"
PAGE_ANSWERS = 20_000
"""Answers of an experiment whose page is sent; that of more takes minutes, and `medexam report --html` writes it."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrackedRun:
    """Where MLflow keeps a run."""

    run_id: str
    """The run's own id, the name of its folder."""
    mlflow_run_id: str
    parent_run_id: str
    """MLflow's id of the run that holds the experiment's page and charts."""
    experiment_id: str


def track(runs: Sequence[AnyRun], *, tracking_uri: str, page: bool = False, only_new: bool = False) -> list[TrackedRun]:
    """Send `runs` to the MLflow store at `tracking_uri`, in order; a run that is there as it was before is replaced.

    A run is known by its id and the time it was begun, an experiment by its digest. The MLflow experiment is named
    after the spec. With `page`, the run of each experiment gets the HTML page of its runs. With `only_new`, MLflow is
    not imported for what a SQLite store holds already. Raises `TrackingError` when the store cannot be reached or
    written.
    """
    families: dict[tuple[str, str], list[AnyRun]] = {}
    for run in runs:
        families.setdefault((run.record.cell.name, run.record.experiment_digest), []).append(run)
    tracked: dict[int, TrackedRun] = {}
    for key, family in list(families.items()):
        stored_runs = _find_tracked(family, tracking_uri, page=page) if only_new else None
        if stored_runs is not None:
            tracked |= {id(run): tracked_run for run, tracked_run in zip(family, stored_runs, strict=True)}
            del families[key]
    if families:
        tracked |= _send(families, tracking_uri, page=page)
    return [tracked[id(run)] for run in runs]


def _find_tracked(family: Sequence[AnyRun], tracking_uri: str, *, page: bool) -> list[TrackedRun] | None:
    """Find where a SQLite store holds each run of an experiment as its folder does; None if it may not hold all."""
    path = sqlite_path(tracking_uri)
    if path is None or not path.exists():
        return None
    try:
        experiment = find_sent(path, family[0].record.cell.name, _digest(family, page=page))
    except OSError:  # A file that cannot be read is told where the run is sent.
        return None
    if experiment is None or not experiment.children.keys() >= {run.record.run_id for run in family}:
        return None
    ids = [run.record.run_id for run in family]
    return [
        TrackedRun(run_id, experiment.children[run_id], experiment.parent, experiment.experiment_id) for run_id in ids
    ]


def _digest(family: Sequence[AnyRun], *, page: bool) -> str:
    """Hash by SHA-256 all that an experiment's runs are sent with, and the page if they get one."""
    digests = [_copy(run).digest for run in family]
    return hashlib.sha256(json.dumps([digests, page, __version__]).encode()).hexdigest()


def _send(
    families: Mapping[tuple[str, str], Sequence[AnyRun]], tracking_uri: str, *, page: bool
) -> dict[int, TrackedRun]:
    """Send the families, and return where each run is, by its `id`."""
    tracked: dict[int, TrackedRun] = {}
    with reads_kept():
        # A large run is planned again before MLflow takes its memory.
        traces = _collect_traces([run for family in families.values() for run in family])
        prompts = _collect_prompts([run for family in families.values() for run in family])
        way_out = send_later([run for family in families.values() for run in family])
        with open_store(tracking_uri, way_out=way_out) as client:
            for (name, _), family in families.items():
                store = _Store(client, experiment_id(client, name, tracking_uri), set())
                overview = store.put_overview(family)
                for run in family:
                    tracked[id(run)] = store.put_run(run, overview)
                    if id(run) in prompts:
                        store.put_prompts(prompts.pop(id(run)), tracked[id(run)].mlflow_run_id)
                    if id(run) in traces:
                        store.put_traces(run, traces.pop(id(run)), tracked[id(run)].mlflow_run_id, tracking_uri)
                store.put_answer(family, overview, page=page)
                store.end_overviews()
                client.set_tag(overview, SENT, _digest(family, page=page))
    return tracked


def send_later(runs: Iterable[AnyRun]) -> str:
    """Say what is on the disk whatever MLflow does, and how it is sent another time."""
    pending = sum(count_pending(run) for run in runs)
    state = f"what is answered is on disk, {pending:,} pending" if pending else "the run is complete on disk"
    return f"{state}; send it later with `medexam track RUN`, or elsewhere with --tracking-uri"


def count_pending(run: AnyRun) -> int:
    """Count the selected questions that are not asked yet, or failed."""
    return int(run.metrics.selected - run.metrics.n)


def attach_map(run: ExamRun, picture: Path, tracking_uri: str) -> str | None:
    """Copy a picture into a run's folder as `map.png`, and send the run with it to MLflow.

    The id of the MLflow run; None where the store does not know the run, which is then not made. Raises
    `RunFolderError` where the folder cannot be written and `TrackingError` where the store cannot be reached.
    """
    copy = run.folder.path / CORPUS_MAP
    try:
        if not (copy.exists() and copy.samefile(picture)):
            write_whole(copy, picture.read_bytes())
    except OSError as error:
        raise RunFolderError(f"cannot write {copy}: {error}; name another run with --run") from None
    database = sqlite_path(tracking_uri)
    if database is not None and not database.exists():
        return None
    key_tags = {"medexam.run_id": run.record.run_id, "medexam.started_at": started_at(run)}
    with open_store(tracking_uri, way_out=send_later([run])) as client:
        experiment = client.get_experiment_by_name(run.record.cell.name)
        if experiment is None or not find_tracked_runs(client, experiment.experiment_id, key_tags):
            return None
    (tracked,) = track([run], tracking_uri=tracking_uri)
    return tracked.mlflow_run_id


@dataclass(frozen=True)
class _Store:
    """One MLflow experiment and how runs get into it."""

    client: Any
    experiment_id: str
    overviews: set[str]
    """MLflow's ids of the overviews that got or lost a run."""

    def put_overview(self, family: Sequence[AnyRun]) -> str:
        """Return MLflow's id of the run that stands for the whole experiment."""
        record = family[0].record
        key_tags = {"medexam.kind": "experiment", "medexam.experiment_digest": record.experiment_digest}
        tags = {**version_tags(family[0].environment), "mlflow.runName": f"page and charts of {record.cell.name}"}
        matches = find_tracked_runs(self.client, self.experiment_id, key_tags)
        if matches:
            run_id = str(matches[0].info.run_id)
        else:
            start = min(map(_began, family))
            run_id = create_run(self.client, self.experiment_id, tags["mlflow.runName"], key_tags, start)
        for key, value in tags.items():
            self.client.set_tag(run_id, key, value)
        return run_id

    def put_run(self, run: AnyRun, overview: str) -> TrackedRun:
        """Put one cell: parameters, metrics, tags, data set and files."""
        run_id, replaced = put_copy(self.client, self.experiment_id, _copy(run, {OVERVIEW: overview}))
        old_tags = (old_run.data.tags for old_run in replaced)
        self.overviews.update(
            {overview, *(tags[key] for tags in old_tags for key in (OVERVIEW, PARENT) if key in tags)}
        )
        return TrackedRun(run.record.run_id, run_id, overview, self.experiment_id)

    def put_answer(self, family: Sequence[AnyRun], overview: str, *, page: bool) -> None:
        """Put what an experiment's runs found where its lists show it: page, charts, descriptions and the first view.

        A family that is only a part of the experiment's runs leaves its description as it is.
        """
        client, runs = self.client, sort_best_first(split_families(family)[0])
        values = list(runs[0].benchmark.values(runs[0].metrics))
        put_view(client, self.experiment_id, values)
        page_name = self.put_page(family, overview) if page else None
        scores = main_scores(values)
        charts = {f"charts/{name}": text for name, text in render_charts(runs, scores[0]).items()} if scores else {}
        for name, text in charts.items():
            client.log_text(overview, text, name)
        note = describe_experiment(
            runs, experiment_id=self.experiment_id, overview=overview, charts=list(charts), page=page_name
        )
        description = disarm(paragraphs(family[0].record.description))
        client.set_tag(overview, NOTE, "\n\n".join(filter(None, (description, note))))
        if len(self.find_runs(overview)) <= len(family):
            client.set_experiment_tag(self.experiment_id, NOTE, note)

    def find_runs(self, overview: str) -> list[Any]:
        """Find the runs of an overview, those too that an earlier version nested below it."""
        tags = ({OVERVIEW: overview}, {PARENT: overview})
        return [run for tag in tags for run in find_tracked_runs(self.client, self.experiment_id, tag)]

    def put_traces(self, run: AnyRun, traces: Sequence[Any], mlflow_run_id: str, tracking_uri: str) -> None:
        """Put the traces of a run's sampled questions, whatever it had before."""
        from medexam.experiments.track.traces import send_traces

        send_traces(
            self.client,
            run,
            traces,
            mlflow_run_id=mlflow_run_id,
            experiment_id=self.experiment_id,
            tracking_uri=tracking_uri,
        )

    def put_prompts(self, prompts: Mapping[str, Any], mlflow_run_id: str) -> None:
        """Put what a run asked with into the prompt registry, each text once, and link it to the run."""
        from medexam.experiments.track.prompts import register

        register(self.client, prompts, mlflow_run_id, self.experiment_id)

    def put_page(self, family: Sequence[AnyRun], overview: str) -> str | None:
        """Put the page of an experiment's runs among the overview's files; None where no page holds them all."""
        answers = sum(len(run.record.questions) for run in family)
        if answers > PAGE_ANSWERS or len(split_families(family)) > 1:
            return None
        # Imported here: the page takes DSPy and matplotlib.
        from medexam.experiments.report.page import write_page

        with TemporaryDirectory() as folder:
            path = Path(folder) / PAGE
            try:
                write_page(family, path)
            except MedExamError as error:
                _log.warning("no page of %s in MLflow: %s", family[0].record.cell.name, error)
                return None
            self.client.log_artifact(overview, str(path))
        return PAGE

    def end_overviews(self) -> None:
        """Close each overview as its runs ended, and delete one that has none any more."""
        for overview in self.overviews:
            runs = [run.info for run in self.find_runs(overview)]
            if runs:
                last_end = max(int(run.end_time or run.start_time) for run in runs)
                end_run(self.client, overview, _worst(run.status for run in runs), last_end)
            else:
                self.client.delete_run(overview)


def _copy(run: AnyRun, tags: Mapping[str, str] | None = None) -> Copy:
    """Build what MLflow is to hold of a run, with these tags beside its own."""
    values = run.benchmark.values(run.metrics) | measure_values(run.metrics.own, "own.")
    # Some views of MLflow show metrics in the order in which they came.
    values = {name: values[name] for name in main_scores(values)} | values
    names = (*ARTIFACTS, *((*DERIVED, MADE_FROM) if run.files_fresh else ()))
    return Copy(
        name=run.title,
        key_tags={"medexam.run_id": run.record.run_id, "medexam.started_at": started_at(run)},
        began=_began(run),
        ended=_millis(run, "ended_at"),
        status=_status(run),
        tags={**run_tags(run), **(tags or {})},
        params=run_params(run),
        metrics=[(name, value, 0) for name, value in values.items()],
        dataset=_describe_dataset(run),
        files=[path for name in names if (path := run.folder.path / name).is_file()],
    )


def _status(run: AnyRun) -> str:
    """Return FAILED where a question failed, KILLED where some were not asked yet and none failed."""
    if run.complete:
        return "FINISHED"
    return "FAILED" if run.metrics.failed else "KILLED"


def _worst(statuses: Iterable[str]) -> str:
    """Return how an experiment ended whose runs ended so."""
    kinds = set(statuses)
    return "FAILED" if "FAILED" in kinds else "FINISHED" if kinds == {"FINISHED"} else "KILLED"


def _describe_dataset(run: AnyRun) -> dict[str, str]:
    """Describe what was asked, by the first digits of three hashes: data, golds if known, and selection.

    MLflow keeps one input for each name and digest, whatever a later one says of its size.
    """
    record, metrics = run.record, run.metrics
    selected = hashlib.sha256("\n".join(record.questions).encode()).hexdigest()
    prints = [record.dataset_fingerprint, *filter(None, [record.dataset_golds]), selected]
    return {
        "name": f"{record.cell.dataset.name}-{record.cell.dataset.language}",
        "digest": "".join(fingerprint[: DIGEST_LENGTH // 3] for fingerprint in prints),
        "source": json.dumps({"uri": record.dataset_source}),
        "profile": json.dumps({"num_rows": metrics.selected, **run.benchmark.size(metrics)}),
    }


def _collect_traces(runs: Sequence[AnyRun]) -> dict[int, list[Any]]:
    """Collect the traces of each run that wants some, as `collect_traces` finds them."""
    traced = [run for run in runs if run.record.cell.trace_questions != 0 and run.benchmark.right_or_wrong]
    if not traced:
        return {}
    # Imported here: runs are planned again, which takes DSPy.
    from medexam.experiments.track.traces import collect_traces

    return collect_traces(traced)


def _collect_prompts(runs: Sequence[AnyRun]) -> dict[int, Mapping[str, Any]]:
    """Collect what each run that asks a model asked with, as `collect_prompts` finds it."""
    asking = [run for run in runs if run.record.cell.program.asks_model and run.benchmark.right_or_wrong]
    if not asking:
        return {}
    from medexam.experiments.track.prompts import collect_prompts

    return {**collect_prompts(asking)}


def _began(run: AnyRun) -> int:
    """Return when the run would have begun had it asked without a break, so that MLflow shows how long it asked."""
    asked_s = run.environment.get("asked_s")
    return _millis(run, "started_at") if asked_s is None else _millis(run, "ended_at") - round(1000 * asked_s)


def _millis(run: AnyRun, moment: str) -> int:
    """Convert `started_at` or `ended_at` to milliseconds since 1970; now, where the run folder does not tell."""
    text = run.environment.get(moment)
    return round(1000 * (datetime.fromisoformat(text).timestamp() if text else time.time()))
