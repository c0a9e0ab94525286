"""A translation in MLflow: a run of its own with the errors by set-up, the selection and, once measured, the quality.

Sending it again updates it. The folder is the truth; MLflow receives a copy.
"""

import json
from typing import Any

from medexam import __version__
from medexam.experiments.track.store import experiment_id, open_store
from medexam.experiments.translate.outcome import TranslationOutcome
from medexam.experiments.translate.plan import TranslationPlan
from medexam.experiments.translate.quality import Quality

EXPERIMENT = "translations"
_TAG = "medexam.translation"


def track_translation(
    plan: TranslationPlan, outcome: TranslationOutcome, quality: Quality | None = None, *, tracking_uri: str
) -> str:
    """Send what came out to the MLflow store at `tracking_uri`; gives MLflow's id of the run.

    Raises `TrackingError` when the store cannot be reached or written.
    """
    tags = {
        _TAG: str(plan.folder.path.resolve()),
        "medexam.kind": "translation",
        "medexam.version": __version__,
        "mlflow.source.name": "medexam",
        "mlflow.source.type": "LOCAL",
    }
    params = {
        "dataset": plan.exam_set.name,
        "source": outcome.source,
        "target": outcome.target,
        "model": outcome.model,
        "engine": plan.spec.model.engine,
    }
    with open_store(tracking_uri, way_out="the translation is complete on disk; run the same again") as client:
        # Imported here: the store sets what MLflow must know before it is imported.
        from mlflow.entities import Metric, Param, RunTag

        experiment = experiment_id(client, EXPERIMENT, tracking_uri)
        condition = f"tags.`{_TAG}` = '{tags[_TAG]}'"
        found = client.search_runs([experiment], filter_string=condition, max_results=1)
        run = found[0] if found else client.create_run(experiment, run_name=plan.folder.name, tags=tags)
        run_id, at = str(run.info.run_id), int(run.info.start_time)
        metrics = [Metric(name, value, at, 0) for name, value in _metrics(outcome, quality).items()]
        client.log_batch(
            run_id,
            metrics=metrics,
            params=[Param(name, value) for name, value in params.items()],
            tags=[RunTag(name, value) for name, value in tags.items()],
        )
        client.log_text(run_id, _json(outcome.document()), "selection.json")
        if quality is not None:
            client.log_text(run_id, _json(quality.document()), "quality.json")
        client.set_terminated(run_id, status="FINISHED" if not outcome.pending else "KILLED")
    return run_id


def _metrics(outcome: TranslationOutcome, quality: Quality | None) -> dict[str, float]:
    """Name -> value: `valid.SETUP`, `errors.SETUP.FAULT`, `rule.RULE`, and what was measured."""
    values: dict[str, Any] = {
        "questions": len(outcome.candidates),
        "chosen": len(outcome.selection.choices),
        "discarded": len(outcome.selection.discarded),
        "owed": outcome.pending,
        **{f"rule.{rule.value}": number for rule, number in outcome.rules.items()},
    }
    for count in outcome.counts:
        values |= {f"valid.{count.setup}": count.valid, f"same_as_source.{count.setup}": count.same_as_source}
        values[f"repeated.{count.setup}"] = count.repeated
        values |= {f"errors.{count.setup}.{fault.value}": number for fault, number in count.faults.items()}
    if quality is not None:
        for row in quality.measured:
            what = row.what.replace(" ", "_")
            values |= {f"{what}.bleu.{row.setup}": row.bleu, f"{what}.bert_f1.{row.setup}": row.bert_f1}
        values |= {f"questions_that_lost_terms.{row.setup}": row.questions for row in quality.terms}
    return {name: float(value) for name, value in values.items() if value is not None}


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
