"""A translation in MLflow: a run of its own with the errors by set-up, the selection and, once measured, the quality.

The folder is the truth; MLflow receives a copy, which a later one replaces.
"""

import json
import time
from collections.abc import Mapping
from typing import Any

from medexam import __version__
from medexam.companions.translation.folder import QUALITY, SELECTION
from medexam.companions.translation.outcome import TranslationOutcome
from medexam.companions.translation.plan import TranslationPlan
from medexam.toolkit.tracking import SOURCE, Copy, experiment_id, open_store, put_copy

EXPERIMENT = "translations"


def track_translation(plan: TranslationPlan, outcome: TranslationOutcome, *, tracking_uri: str) -> str:
    """Send what came out to the MLflow store at `tracking_uri`; return MLflow's id of the run.

    What `quality.json` of the folder holds is sent too.

    Raises `TrackingError` when the store cannot be reached or written.
    """
    now = round(1000 * time.time())
    documents = {SELECTION: outcome.document()}
    if (plan.folder.path / QUALITY).exists():
        documents[QUALITY] = plan.folder.read_json(QUALITY)
    copy = Copy(
        name=plan.folder.name,
        key_tags={"medexam.translation": str(plan.folder.path.resolve())},
        began=now,
        ended=now,
        status="KILLED" if outcome.pending else "FINISHED",
        tags={"medexam.kind": "translation", "medexam.version": __version__, **SOURCE},
        params={
            "dataset": plan.exam_set.name,
            "source": outcome.source,
            "target": outcome.target,
            "model": outcome.model,
            "engine": plan.spec.model.engine,
        },
        metrics=[(name, value, 0) for name, value in _metrics(outcome, documents.get(QUALITY)).items()],
        texts={name: json.dumps(text, ensure_ascii=False, indent=2) + "\n" for name, text in documents.items()},
    )
    with open_store(tracking_uri, way_out="the translation is complete on disk; the same command sends it") as client:
        return put_copy(client, experiment_id(client, EXPERIMENT, tracking_uri), copy)[0]


def _metrics(outcome: TranslationOutcome, quality: Mapping[str, Any] | None) -> dict[str, float]:
    """Map names to values: `valid.SETUP`, `errors.SETUP.FAULT`, `rule.RULE`, and what was measured."""
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
        values |= {f"errors.{count.setup}.{fault}": number for fault, number in count.faults.items()}
    if quality is not None:
        for row in quality["measured"]:
            comparison, setup = row["what"].replace(" ", "_"), row["setup"]
            values |= {f"{comparison}.bleu.{setup}": row["bleu"], f"{comparison}.bert_f1.{setup}": row["bert_f1"]}
        values |= {f"questions_that_lost_terms.{row['setup']}": row["questions"] for row in quality["terms"]}
    return {name: float(value) for name, value in values.items() if value is not None}
