"""What MLflow is told of a run, as plain values: parameters and tags.

Parameters are what the run's digest covers: MLflow never lets a parameter change, and neither does a run's identity.
The values come from `spec.json`, `environment.json` and the metrics; keys of providers are in none of them.
"""

from collections.abc import Mapping
from typing import Any

from medexam.experiments.report.escaping import disarm, paragraphs
from medexam.experiments.report.markdown import render_headline
from medexam.experiments.store.answerers import describe_answerers
from medexam.experiments.store.stored_run import AnyRun
from medexam.experiments.track.copies import SOURCE
from medexam.tables import flatten

PARAM_LENGTH = 6_000
TAG_LENGTH = 8_000
DIGEST_LENGTH = 36
"""MLflow's limits, in characters."""
ALL_TRACED = 500
"""Questions of a run that all have traces unless its spec says otherwise."""
SAMPLE = 100
"""Questions that have traces if a run has more."""


def run_params(run: AnyRun) -> dict[str, str]:
    """Map short names to what a reader chooses runs by, and dotted keys of the spec to all else that answers depend on.

    The words of the prompts are left out: the digest covers them, and the artifacts hold them whole.
    """
    dataset = run.record.cell.dataset
    identity = {key: value for key, value in run.record.identity.items() if key != "words"}
    short_params = {
        "model": run.model or "none",
        "program": run.program,
        "dataset": dataset.name,
        "language": dataset.language,
    }
    params = short_params | flatten(identity) | {"dataset.version": run.record.dataset_version}
    return {key: value[:PARAM_LENGTH] for key, value in params.items()}


def run_tags(run: AnyRun) -> dict[str, str]:
    """Collect what tells the run, where it lies and in which state it is; without its parent.

    How it was set up otherwise is in `spec.json` and `environment.json`.
    """
    record, params = run.record, run_params(run)
    sample = describe_sample(run)
    asked = (
        f"Data set: {record.cell.dataset.name} ({record.cell.dataset.language}), version {record.dataset_version}, "
        f"from {record.dataset_source}. Model: {run.model or 'none'}. Spec: spec.json among the artifacts; what "
        "answered: environment.json beside it."
    )
    note = (paragraphs(record.description), render_headline(run), sample and f"Its traces are {sample}.", asked)
    dataset = flatten({"dataset": record.cell.dataset.model_dump(mode="json")})
    selection = {key.removeprefix("dataset."): value for key, value in dataset.items() if key not in params}
    tags = {
        "medexam.kind": "run",
        "medexam.run_id": record.run_id,
        "medexam.started_at": started_at(run),
        "medexam.spec_digest": record.spec_digest,
        "medexam.experiment_digest": record.experiment_digest,
        "medexam.run_dir": str(run.folder.path.resolve()),
        "medexam.status": run.status,
        "medexam.selection": "; ".join(f"{key}: {value}" for key, value in selection.items()),
        "mlflow.note.content": disarm("\n\n".join(filter(None, note))),
        **version_tags(run.environment),
    }
    if run.mixed:
        tags["medexam.mixed_models"] = describe_answerers(run.answerers)
    return {key: value[:TAG_LENGTH] for key, value in tags.items() if value}


def version_tags(environment: Mapping[str, Any]) -> dict[str, str]:
    """Return the version of this package and the commit that ran."""
    commit = environment.get("git_commit") or ""
    return {
        "medexam.version": str(environment.get("medexam") or ""),
        **SOURCE,
        "mlflow.source.git.commit": commit.removesuffix("+changes"),
    }


def started_at(run: AnyRun) -> str:
    """Return when the run was begun; with its id it tells a run from one of the same spec on another machine."""
    return str(run.environment.get("started_at") or "unknown")


def count_traced(run: AnyRun) -> int:
    """Count the questions of which a run's traces are sent, at most."""
    questions, limit = len(run.record.questions), run.record.cell.trace_questions
    if limit is None:
        limit = questions if questions <= ALL_TRACED else SAMPLE
    return min(questions, limit) if run.benchmark.right_or_wrong else 0


def describe_sample(run: AnyRun) -> str:
    """Say which part of a run's questions has traces; empty if all have, or none has."""
    traced, questions = count_traced(run), len(run.record.questions)
    return f"a sample of {traced:,} of {questions:,} questions" if 0 < traced < questions else ""
