"""A fine-tuning in MLflow: its settings, its loss by step and what it scored. The folder is the truth."""

import time

from medexam.experiments import Copy, SentCopy, send_copy
from medexam_companions.casimedicos.finetuning.encoder import RECORD, Finetuned


def track_finetuning(outcome: Finetuned, *, tracking_uri: str) -> SentCopy:
    """Send a fine-tuning to the MLflow store at `tracking_uri`.

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
        experiment="finetuning",
        name=outcome.folder.name,
        kind="finetuning",
        key=str(outcome.folder.resolve()),
        began=now - round(1000 * record["seconds"]),
        ended=now,
        params={name: str(value)[:500] for name, value in params.items()},
        metrics=[*losses, *scores],
        files=[outcome.folder / RECORD],
    )
    way_out = f"the model is complete in {outcome.folder}, with its losses in {RECORD}"
    return send_copy(copy, tracking_uri, way_out)
