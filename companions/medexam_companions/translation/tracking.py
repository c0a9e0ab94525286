"""A translation in MLflow: a run of its own with the errors by set-up, the selection and, once measured, the quality.

The folder is the truth; MLflow receives a copy, which a later one replaces.
"""

import time
from collections.abc import Mapping
from typing import Any

from medexam.experiments import Copy, SentCopy, send_copy
from medexam_companions.translation.folder import QUALITY, SELECTION
from medexam_companions.translation.outcome import TranslationOutcome
from medexam_companions.translation.plan import TranslationPlan


def track_translation(plan: TranslationPlan, outcome: TranslationOutcome, *, tracking_uri: str) -> SentCopy:
    """Send what came out, with `quality.json` where that is there, to the MLflow store at `tracking_uri`.

    Raises `TrackingError` when the store cannot be reached or written.
    """
    now = round(1000 * time.time())
    quality = plan.folder.read_json(QUALITY) if (plan.folder.path / QUALITY).exists() else None
    params = {"dataset": plan.exam_set.name, "source": outcome.source, "target": outcome.target}
    copy = Copy(
        experiment="translations",
        name=plan.folder.name,
        kind="translation",
        key=str(plan.folder.path.resolve()),
        began=now,
        ended=now,
        status="KILLED" if outcome.pending else "FINISHED",
        params={**params, "model": outcome.model, "engine": plan.spec.model.engine},
        metrics=[(name, value, 0) for name, value in _metrics(outcome, quality).items()],
        files=[path for name in (SELECTION, QUALITY) if (path := plan.folder.path / name).exists()],
    )
    return send_copy(copy, tracking_uri, "the translation is complete on disk; the same command sends it")


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
