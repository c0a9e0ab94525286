"""What MLflow receives of stored runs: parameters, measures, the files of their folders, and a sample of questions.

Values come from `spec.json`, `environment.json` and the metrics; keys of providers are in none of them.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import Any

from medexam.errors import MedExamError
from medexam.experiments.compare.runs import run_names
from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.report.current import current_run
from medexam.experiments.report.findings import findings, lead
from medexam.experiments.report.markdown import disarm, paragraphs, render_table
from medexam.experiments.report.run_tables import describe_state
from medexam.experiments.report.tables import comparison, split_families
from medexam.experiments.store.freshness import DERIVED
from medexam.experiments.store.run_folder import PARQUET, RunFolder
from medexam.experiments.store.stored_run import StoredRun
from medexam.experiments.track.copies import NOTE, Copy, CopyIds, open_store, send_copies
from medexam.measures.shown import measure_values
from medexam.measures.tables import headline, metric_values
from medexam.predictions import Prediction
from medexam.tables import flatten
from medexam.text import hide_secrets


def track_runs(runs: Sequence[StoredRun], *, tracking_uri: str) -> list[CopyIds]:
    """Send runs to the MLflow store at `tracking_uri`, in the experiment that their spec names; return where each is.

    Raises `TrackingError` where the store cannot be reached or written.
    """
    copies = send_copies([_copy(run) for run in runs], tracking_uri)
    with open_store(tracking_uri) as client:
        for experiment_id in dict.fromkeys(ids.experiment_id for ids in copies):
            pairs = zip(copies, runs, strict=True)
            _describe(
                client, experiment_id, {ids.run_id: run for ids, run in pairs if ids.experiment_id == experiment_id}
            )
    return copies


def track_failed(cells: Sequence[AnyCell], why: str, *, tracking_uri: str) -> list[CopyIds]:
    """Send what is there of cells that an error ended: their runs, and a failed run for one that was not begun."""
    runs: list[StoredRun] = []
    attempts: list[Copy] = []
    tags = {NOTE: disarm(paragraphs(hide_secrets(why)))}
    for planned in cells:
        name, params = planned.cell.name, {"program": planned.cell.program.label, "model": planned.cell.model.label}
        title, key = " · ".join(params.values()), planned.run_id
        if not planned.folder.exists():
            attempts.append(Copy(experiment=name, name=title, key=key, status="FAILED", params=params, tags=tags))
            continue
        # A second error must not hide the first.
        with suppress(MedExamError):
            runs.append(current_run(planned.folder, lambda _: None))
    return [*track_runs(runs, tracking_uri=tracking_uri), *send_copies(attempts, tracking_uri)]


def _copy(run: StoredRun) -> Copy:
    record, environment, dataset = run.record, run.environment, run.record.cell.dataset
    values, own = _values(run), {key: value for key, value in record.identity.items() if key != "words"}
    names = {"model": run.model or "none", "program": run.program, "dataset": dataset.name}
    names |= {"language": dataset.language, "dataset.version": record.dataset_version}
    said = (paragraphs(record.description), describe_state(run), render_table(headline(run.metrics)))
    return Copy(
        experiment=record.cell.name,
        name=run.title,
        key=record.run_id,
        started_at=environment.get("started_at") or "",
        seconds=environment.get("asked_s") or 0.0,
        status="FINISHED" if run.complete else "FAILED" if run.metrics.failed else "KILLED",
        params=flatten({"dataset": dataset.model_dump(mode="json")}) | flatten(own) | names,
        # MLflow compares runs by the first one.
        metrics=[(name, values[name], 0) for name in dict.fromkeys((*_main(values), *values))],
        tags={
            "medexam.spec_digest": record.spec_digest,
            "medexam.run_dir": str(run.folder.path.resolve()),
            "mlflow.source.git.commit": (environment.get("git_commit") or "").removesuffix("+changes"),
            NOTE: disarm("\n\n".join(filter(None, said))),
        },
        dataset={
            "name": f"{dataset.name}-{dataset.language}",
            "digest": f"{record.dataset_fingerprint[:16]}{(record.dataset_golds or '')[:16]}",
            "source": json.dumps({"uri": record.dataset_source}),
            "profile": json.dumps({"num_rows": run.metrics.selected}),
        },
        files=[path for path in run.folder.path.iterdir() if run.files_fresh or path.name not in DERIVED],
        sample=lambda: read_sample(run.folder, record.cell.trace_questions, record.questions),
    )


def _values(run: StoredRun) -> dict[str, float]:
    return {**metric_values(run.metrics), **measure_values(run.metrics.own, "own.")}


def _main(values: Mapping[str, float]) -> list[str]:
    """Choose the metrics that a list shows: accuracy and exam score where a run has them, else two with intervals."""
    scores = [name for name in ("accuracy", "exam_score") if name in values]
    return scores or [name for name in values if f"{name}_low" in values][:2] or list(values)[:2]


def read_sample(
    folder: RunFolder, most: int, questions: Collection[str] = ()
) -> list[tuple[Prediction, Mapping[str, Any]]]:
    """Read the predictions of at most `most` questions, with what the run's table knows of their answers.

    They are always the same ones, and among those of a larger number; they are of `questions` where some are given.
    """
    table, facts = folder.path / PARQUET, {}
    with folder.opened_predictions() as predictions:
        keys = sorted(questions or predictions, key=lambda key: hashlib.sha256(key.encode()).digest())[:most]
        if keys and table.is_file():
            import pyarrow.parquet

            rows = pyarrow.parquet.read_table(table, filters=[("question", "in", keys)]).to_pylist()
            facts = {row["question"]: {name: row[name] for name in ("gold", "right") if name in row} for row in rows}
        return [(predictions[key], facts.get(key, {})) for key in keys if key in predictions]


def _describe(client: Any, experiment_id: str, runs_by_id: Mapping[str, StoredRun]) -> None:
    """Describe an experiment, share a view, and name its runs by what tells them apart, unless it holds others too."""
    runs = list(runs_by_id.values())
    if len(client.search_runs([experiment_id], "tags.`medexam.spec_digest` != ''")) > len(runs):
        return
    for run_id, name in zip(runs_by_id, run_names(runs) if len(runs) > 1 else [runs[0].title], strict=True):
        client.update_run(run_id, name=name)
    family = split_families(runs)[0]
    scores = _main(_values(family[0]))
    family.sort(key=lambda run: -_values(run).get(scores[0], -inf))
    finding = " ".join(filter(None, dict.fromkeys([lead(family), *findings(family)])))
    command = f"medexam report {family[0].folder.path.resolve().parent} --html report.html"
    table = render_table(comparison(family))
    note = disarm(f"{finding}\n\n`{command}` writes the page of every question.\n\n{table}\n")
    # Every version of MLflow takes 5,000 characters; a row that does not fit is left out.
    client.set_experiment_tag(experiment_id, NOTE, note[:5_000].rpartition("\n")[0])
    metrics = [f"metrics.`{name}`" for name in (scores[0], f"{scores[0]}_low", f"{scores[0]}_high", *scores[1:])]
    columns = [*metrics, *(f"params.`{name}`" for name in ("program", "model", "language"))]
    state = {"selectedColumns": columns, "orderByKey": columns[0], "orderByAsc": False, "runsHiddenMode": "SHOWALL"}
    client.set_experiment_tag(experiment_id, "mlflow.sharedViewState.medexam", json.dumps(state))
