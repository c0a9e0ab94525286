"""A fine-tuning in MLflow: its settings, its loss by step and what it scored. The folder is the truth."""

import json
import time

from medexam.experiments.finetune.encoder import RECORD, Finetuned
from medexam.experiments.track.copies import create_run, end_run
from medexam.experiments.track.payload import version_tags
from medexam.experiments.track.store import experiment_id, open_store

EXPERIMENT = "finetuning"


def track_finetuning(done: Finetuned, *, tracking_uri: str) -> str:
    """Send a fine-tuning to the MLflow store at `tracking_uri`; gives MLflow's id of the run.

    Raises `TrackingError` when the store cannot be reached or written.
    """
    way_out = f"the model is complete in {done.folder}, with its losses in {RECORD}"
    with open_store(tracking_uri, way_out=way_out) as client:
        from mlflow.entities import Metric, Param, RunTag

        record = done.record
        now = round(1000 * time.time())
        begun = now - round(1000 * record["seconds"])
        tags = {"medexam.kind": "finetuning", "medexam.folder": str(done.folder.resolve())}
        run_id = create_run(client, experiment_id(client, EXPERIMENT, tracking_uri), done.folder.name, tags, begun)
        metrics = [
            Metric(f"{stage}.loss", loss, now, step) for stage, steps in done.losses.items() for step, loss in steps
        ]
        for rule in ("squad", "spanish"):
            scores = record.get("validation", {}).get(rule, {})
            metrics += [Metric(f"validation.{rule}.{name}", float(value), now, 0) for name, value in scores.items()]
        known = {**record["settings"], "base": record["base"]["name"], "revision": record["base"]["revision"]}
        known |= {f"{stage}_sha256": data["sha256"] for stage, data in record["data"].items()}
        params = [Param(name, str(value)[:500]) for name, value in known.items()]
        marks = [RunTag(key, value) for key, value in version_tags(record["environment"]).items() if value]
        client.log_batch(run_id, metrics=metrics, params=params, tags=marks)
        client.log_text(run_id, json.dumps(record, ensure_ascii=False, indent=2) + "\n", RECORD)
        end_run(client, run_id, "FINISHED", now)
    return run_id
