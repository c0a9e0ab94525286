"""A translation in MLflow: a run with the counts by set-up, the selection and, once measured, the quality."""

from typing import Any

from medexam.experiments import open_store, send_copy
from medexam_companions.translation.outcome import TranslationOutcome
from medexam_companions.translation.plan import QUALITY, TranslationPlan


def track_translation(plan: TranslationPlan, outcome: TranslationOutcome, *, tracking_uri: str) -> Any:
    """Send what came out, with `quality.json` where that is there; raises `TrackingError` as `open_store` does."""
    document, path = outcome.document, plan.folder.path
    values = {"questions": document["questions"], "owed": outcome.pending, "chosen": len(outcome.choices)}
    values |= {f"rule.{rule}": number for rule, number in document["rules"].items()}
    for row in document["setups"]:
        values |= {f"{name}.{row['setup']}": value for name, value in {**row, **row["faults"]}.items()}
    for row in plan.folder.read_json(QUALITY)["measured"] if (path / QUALITY).exists() else ():
        values |= {f"{row['what']}.{name}.{row['setup']}": row[name] for name in ("bleu", "bert_f1")}
    status = "KILLED" if outcome.pending else "FINISHED"
    params = {name: document[name] for name in ("source", "target", "model")} | {"dataset": plan.exam_set.name}
    metrics = [(name, float(value), 0) for name, value in values.items() if isinstance(value, int | float)]
    files, key = list(path.iterdir()), str(path.resolve())
    with open_store(tracking_uri) as client:
        return send_copy(client, "translations", path.name, key, status, params, {}, metrics, files=files)
