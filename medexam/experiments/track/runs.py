"""What MLflow receives of stored runs: parameters, measures, the files of their folders, and a sample of questions.

Values come from `spec.json`, `environment.json` and the metrics; keys of providers are in none of them.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from math import inf
from typing import Any

from medexam.benchmarks.measures import measure_values
from medexam.errors import MedExamError
from medexam.experiments.compare.runs import run_names
from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.report.current import current_run
from medexam.experiments.report.escaping import disarm, paragraphs
from medexam.experiments.report.findings import findings, lead
from medexam.experiments.report.markdown import render_headline, render_table
from medexam.experiments.report.tables import comparison, split_families
from medexam.experiments.store.freshness import DERIVED, MADE_FROM
from medexam.experiments.store.items import read_items
from medexam.experiments.store.run_folder import PARQUET
from medexam.experiments.store.stored_run import AnyRun
from medexam.experiments.track.copies import NOTE, Copy, SentCopy, open_store, plain_files, put_copies, put_view
from medexam.experiments.track.traces import Asked, sample_keys
from medexam.tables import flatten
from medexam.text import hide_secrets

_NOTE_LENGTH = 5_000
"""Characters of an experiment's description that every version of MLflow takes; rows of the table are cut for it."""


def track(runs: Sequence[AnyRun], *, tracking_uri: str) -> list[SentCopy]:
    """Send runs to the MLflow store at `tracking_uri`, in the experiment that their spec names; return where each is.

    Raises `TrackingError` where the store cannot be reached or written.
    """
    with open_store(tracking_uri) as client:
        copies = put_copies(client, [_copy(run) for run in runs])
        for experiment_id in dict.fromkeys(copy.experiment_id for copy in copies):
            _describe(
                client,
                {
                    copy.run_id: run
                    for run, copy in zip(runs, copies, strict=True)
                    if copy.experiment_id == experiment_id
                },
                experiment_id,
            )
    return copies


def track_failed(cells: Sequence[AnyCell], why: str, *, tracking_uri: str) -> list[SentCopy]:
    """Send what is there of cells that an error ended: their runs, and a failed run for one that was not begun."""
    stored_runs: list[AnyRun] = []
    for planned in cells:
        # A second error must not hide the first.
        with suppress(MedExamError):
            stored_runs += [current_run(planned.folder, lambda _: None)] if planned.folder.exists() else []
    now = round(1000 * time.time())
    attempts = [
        Copy(
            experiment=planned.cell.name,
            name=f"{planned.cell.program.label} · {planned.cell.model.label}",
            kind="attempt",
            key=planned.run_id,
            began=now,
            ended=now,
            status="FAILED",
            params={"program": planned.cell.program.label, "model": planned.cell.model.label},
            tags={"medexam.run_id": planned.run_id, NOTE: disarm(paragraphs(hide_secrets(why)))},
        )
        for planned in cells
        if not planned.folder.exists()
    ]
    copies = track(stored_runs, tracking_uri=tracking_uri) if stored_runs else []
    with open_store(tracking_uri) as client:
        return [*copies, *put_copies(client, attempts)]


def _copy(run: AnyRun) -> Copy:
    record, environment, dataset = run.record, run.environment, run.record.cell.dataset
    values = run.benchmark.values(run.metrics) | measure_values(run.metrics.own, "own.")
    params = flatten({key: value for key, value in record.identity.items() if key != "words"}) | {
        "model": run.model or "none",
        "program": run.program,
        "dataset": dataset.name,
        "language": dataset.language,
        "dataset.version": record.dataset_version,
    }
    selection = flatten({"dataset": dataset.model_dump(mode="json")})
    ended = environment.get("ended_at") or environment.get("started_at")
    end = round(1000 * (datetime.fromisoformat(ended).timestamp() if ended else time.time()))
    answers = hashlib.sha256("\n".join(record.questions).encode()).hexdigest()
    outdated = () if run.files_fresh else (*DERIVED, MADE_FROM)
    return Copy(
        experiment=record.cell.name,
        name=run.title,
        kind="run",
        # When it began tells a run from one of the same spec on another machine.
        key=f"{record.run_id} {environment.get('started_at')}",
        began=end - round(1000 * (environment.get("asked_s") or 0)),
        ended=end,
        status="FINISHED" if run.complete else "FAILED" if run.metrics.failed else "KILLED",
        params=params,
        metrics=[(name, value, 0) for name, value in ({name: values[name] for name in _main(values)} | values).items()],
        tags={
            "medexam.run_id": record.run_id,
            "medexam.spec_digest": record.spec_digest,
            "medexam.run_dir": str(run.folder.path.resolve()),
            "medexam.status": run.status,
            "medexam.selection": "; ".join(f"{key}: {value}" for key, value in selection.items() if key not in params),
            "medexam.version": str(environment.get("medexam") or ""),
            "mlflow.source.git.commit": (environment.get("git_commit") or "").removesuffix("+changes"),
            NOTE: disarm("\n\n".join(filter(None, (paragraphs(record.description), render_headline(run))))),
        },
        dataset={
            "name": f"{dataset.name}-{dataset.language}",
            "digest": "".join(
                digest[:12] for digest in (record.dataset_fingerprint, record.dataset_golds or "", answers)
            ),
            "source": json.dumps({"uri": record.dataset_source}),
            "profile": json.dumps({"num_rows": run.metrics.selected, **run.benchmark.size(run.metrics)}),
        },
        files=[path for path in plain_files(run.folder.path) if path.name not in outdated],
        prompt=f"{run.program}-{dataset.language}",
        sample=partial(_read_sample, run),
    )


def _read_sample(run: AnyRun) -> list[Asked]:
    """Read the predictions of some questions, with what the run's table knows of their answers."""
    keys = sample_keys(run.record.questions, run.record.cell.trace_questions)
    table, marks = run.folder.path / PARQUET, {}
    if keys and run.files_fresh and table.is_file():
        import pyarrow.parquet

        columns = {"question", "gold", "right"} & set(pyarrow.parquet.read_schema(table).names)
        rows = pyarrow.parquet.read_table(table, columns=sorted(columns)).to_pylist()
        marks = {row["question"]: row for row in rows}
    with run.folder.opened_predictions() as predictions:
        answers = [(predictions[key], marks.get(key, {})) for key in keys if key in predictions]
    has_pictures = any(call.pictures for prediction, _ in answers for call in prediction.calls)
    pictures = {item.key: item.picture for item in read_items(run.folder).questions} if has_pictures else {}
    return [
        Asked(prediction, mark.get("gold"), mark.get("right"), pictures.get(prediction.question))
        for prediction, mark in answers
    ]


def _main(names: Any) -> list[str]:
    """Choose the metrics that a list shows: accuracy and exam score where a run has them, else its first two."""
    return [name for name in ("accuracy", "exam_score") if name in names] or list(names)[:2]


def _describe(client: Any, runs_by_id: Mapping[str, AnyRun], experiment_id: str) -> None:
    """Describe an experiment and name its runs by what tells them apart, unless it holds others beside these."""
    mlflow_runs, family = client.search_runs([experiment_id], "tags.`medexam.kind` = 'run'"), list(runs_by_id.values())
    if len(mlflow_runs) > len(family):
        return
    names = dict(zip(runs_by_id, run_names(family) if len(family) > 1 else [family[0].title], strict=True))
    for run in mlflow_runs:
        if run.info.run_name != names[run.info.run_id]:
            client.update_run(run.info.run_id, name=names[run.info.run_id])
    runs = split_families(family)[0]
    values = {id(run): run.benchmark.values(run.metrics) for run in runs}
    scores = _main(values[id(runs[0])])
    runs.sort(key=lambda run: [-values[id(run)].get(score, -inf) for score in scores])
    finding = disarm(" ".join(filter(None, dict.fromkeys([lead(runs), *findings(runs)]))))
    command = (
        f"`medexam report {runs[0].folder.path.resolve().parent} --html report.html` writes the page of every question."
    )
    rows = disarm(render_table(comparison(runs))).splitlines()
    while rows and len(note := "\n".join([finding, "", command, "", *rows])) > _NOTE_LENGTH:
        rows.pop()
    columns = [f"metrics.`{name}`" for name in (scores[0], f"{scores[0]}_low", f"{scores[0]}_high", *scores[1:])]
    put_view(
        client, experiment_id, [*columns, *(f"params.`{name}`" for name in ("program", "model", "language"))], note
    )
