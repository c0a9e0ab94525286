"""What MLflow is told of a run, as plain values: parameters and tags.

Parameters are what the run's digest covers: MLflow never lets a parameter change, and neither does a run's identity.
What may change when a run is continued (the selection of questions, where the server listens) goes into tags. The
values come from `spec.json`, `environment.json` and the metrics; keys of providers are in none of them.
"""

from collections.abc import Mapping
from typing import Any

from medexam.experiments.report.markdown import headline
from medexam.experiments.store.answerers import describe_answerers
from medexam.experiments.store.stored_run import AnyRun
from medexam.experiments.track.copies import SOURCE
from medexam.formatting import flatten

PARAM_LENGTH = 6_000
TAG_LENGTH = 8_000
DIGEST_LENGTH = 36
"""MLflow's limits, in characters."""


def run_params(run: AnyRun) -> dict[str, str]:
    """Dotted key of the spec -> value, for everything that an answer of the run depends on.

    The words of the prompts are left out: the tag `medexam.program.prompt` names them, the digest covers them, and the
    artifacts hold them whole.
    """
    identity = {key: value for key, value in run.record.identity.items() if key != "words"}
    params = flatten(identity) | {"dataset.version": run.record.dataset_version}
    return {key: value[:PARAM_LENGTH] for key, value in params.items()}


def run_tags(run: AnyRun) -> dict[str, str]:
    """What the run is called, what it ran on and which questions it was last asked; without its parent."""
    record, environment = run.record, run.environment
    asked = record.cell.program.asks_model
    cell = record.cell.model_dump(mode="json", include={"dataset", "program", *(["model"] if asked else [])})
    params = run_params(run)
    engine = environment.get("engine") or {}
    tags = {
        "medexam.kind": "run",
        "medexam.run_id": record.run_id,
        "medexam.started_at": started_at(run),
        "medexam.spec_digest": record.spec_digest,
        "medexam.experiment_digest": record.experiment_digest,
        "medexam.run_dir": str(run.folder.path.resolve()),
        "medexam.status": run.status,
        "medexam.program": run.program,
        **{f"medexam.{key}": value for key, value in flatten(cell).items() if key not in params},
        **{f"medexam.ran.{key}": value for key, value in flatten({"engine": engine}).items()},
        "mlflow.note.content": "\n\n".join(part for part in (record.description, headline(run)) if part),
        **version_tags(environment),
    }
    if run.model is not None:
        tags["medexam.model"] = run.model
    if asked:
        tags["medexam.engine"] = record.cell.model.engine
    if run.mixed:
        tags["medexam.mixed_models"] = describe_answerers(run.answerers)
    return {key: value[:TAG_LENGTH] for key, value in tags.items() if value}


def version_tags(environment: Mapping[str, Any]) -> dict[str, str]:
    """Version of this package and the commit that ran."""
    commit = environment.get("git_commit") or ""
    return {
        "medexam.version": str(environment.get("medexam") or ""),
        "medexam.git_commit": commit,
        **SOURCE,
        "mlflow.source.git.commit": commit.removesuffix("+changes"),
    }


def started_at(run: AnyRun) -> str:
    """When the run was begun; with its id it tells a run from one of the same spec on another machine."""
    return str(run.environment.get("started_at") or "unknown")
