"""How good a translation is: the round trip, and the published translation as reference.

The round trip asks a model again, in the same folder; the rest reads. Which numbers these are and under which
signature they were computed stands in `quality.json`.
"""

from collections.abc import Mapping
from typing import Any

from medexam.datasets import load_exam_set
from medexam.errors import DatasetError, SpecError
from medexam.experiments import Plan
from medexam.specs import CATALOGUE
from medexam_companions.translation.layout import QuestionText, text_of
from medexam_companions.translation.outcome import TranslationOutcome
from medexam_companions.translation.plan import TranslationPlan, plan_texts, read_candidates
from medexam_companions.translation.program import load_setups
from medexam_companions.translation.scores import BertScore, compare_texts

Texts = Mapping[str, QuestionText]


def plan_back(plan: TranslationPlan, outcome: TranslationOutcome) -> Plan:
    """Plan the run that translates the chosen translations back, in the words of the last set-up."""
    spec = plan.spec
    words = load_setups(spec.setups[-1:], spec.target, spec.dataset.language, spec.words, plain=spec.base is not None)
    return plan_texts(spec, plan.folder.path, "back", outcome.texts.values(), spec.target, words)


def score_back(plan: TranslationPlan, back: Plan, bert: BertScore | None) -> list[dict[str, Any]]:
    """Score the round trip of the chosen translations; questions whose reply is still pending are left out.

    `invalid` back-translations fail the checks, and are scored as they are.
    """
    candidates = read_candidates("back", back.runs[0])
    invalid = sum(not candidate.valid for candidate in candidates.values())
    texts = {key: candidate.text for key, candidate in candidates.items()}
    return [row | {"invalid": invalid} for row in _score("round trip", {"selected": texts}, plan.sources, bert)]


def score_reference(plan: TranslationPlan, outcome: TranslationOutcome, bert: BertScore | None) -> list[dict[str, Any]]:
    """Score the valid translations of each set-up, and the chosen ones, against the data set's own.

    Raises `SpecError` where it has none, and `DatasetError` where it cannot be read.
    """
    dataset, target = plan.spec.dataset, plan.spec.target
    if target not in CATALOGUE[dataset.name].languages:
        raise SpecError(f"--reference: {dataset.name} is not published in {target}")
    # A path names the file of one language.
    path = dataset.path if dataset.path is not None and dataset.path.is_dir() else None
    published = load_exam_set(dataset.model_copy(update={"language": target, "path": path, "limit": None}))
    references = {question.key: text_of(question) for question in published.questions}
    rows = _score("reference", outcome.valid_texts(), references, bert)
    if not rows:
        raise DatasetError(f"--reference: none of the questions is in {dataset.name} {target}")
    return rows


def _score(
    what: str, texts_by_setup: Mapping[str, Texts], references: Texts, bert: BertScore | None
) -> list[dict[str, Any]]:
    """Score the texts of each set-up that have a reference; a set-up without any has no row."""
    rows = []
    for setup, texts in texts_by_setup.items():
        keys = [key for key in texts if key in references]
        if not keys:
            continue
        bleu, f1, signatures = compare_texts([texts[key] for key in keys], [references[key] for key in keys], bert)
        row = {"what": what, "setup": setup, "questions": len(keys), "invalid": 0, "bleu": bleu, "bert_f1": f1}
        rows.append(row | {"signatures": signatures})
    return rows
