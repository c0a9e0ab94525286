"""A fine-tuning in MLflow: its settings, its loss by step and what it scored. The folder is the truth."""

import json
import time

from medexam.companions.finetuning.encoder import RECORD, Finetuned
from medexam.toolkit.tracking import Copy, experiment_id, open_store, send_copy, version_tags

EXPERIMENT = "finetuning"


def track_finetuning(outcome: Finetuned, *, tracking_uri: str) -> str:
    """Send a fine-tuning to the MLflow store at `tracking_uri`. Return MLflow's id of the run.

    Raises `TrackingError` when the store cannot be reached or written.
    """
    record, now = outcome.record, round(1000 * time.time())
    params = {**record["settings"], "base": record["base"]["name"], "revision": record["base"]["revision"]}
    params |= {f"{stage}_sha256": data["sha256"] for stage, data in record["data"].items()}
    losses = [(f"{stage}.loss", loss, step) for stage, steps in outcome.losses.items() for step, loss in steps]
    scores = [
        (f"validation.{rule}.{name}", float(value), 0)
        for rule in ("squad", "spanish")
        for name, value in record.get("validation", {}).get(rule, {}).items()
    ]
    copy = Copy(
        name=outcome.folder.name,
        key_tags={"medexam.kind": "finetuning", "medexam.folder": str(outcome.folder.resolve())},
        began=now - round(1000 * record["seconds"]),
        ended=now,
        tags=version_tags(record["environment"]),
        params={name: str(value)[:500] for name, value in params.items()},
        metrics=[*losses, *scores],
        texts={RECORD: json.dumps(record, ensure_ascii=False, indent=2) + "\n"},
    )
    way_out = f"the model is complete in {outcome.folder}, with its losses in {RECORD}"
    with open_store(tracking_uri, way_out=way_out) as client:
        return send_copy(client, experiment_id(client, EXPERIMENT, tracking_uri), copy)
