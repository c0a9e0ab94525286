"""How good a translation is: the round trip, the published translation as reference, and what must survive.

The round trip asks a model again, in the same folder; the rest reads. Which numbers these are and under which
signature they were computed stands in `quality.json`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from medexam.datasets import load_exam_set
from medexam.errors import DatasetError, SpecError
from medexam.experiments import Plan, join_plans, name_part
from medexam.specs import CATALOGUE
from medexam_companions.translation.benchmark import add_texts
from medexam_companions.translation.layout import QuestionText, render_layout, text_of
from medexam_companions.translation.outcome import TranslationOutcome
from medexam_companions.translation.plan import SetupRun, TranslationPlan, plan_runs
from medexam_companions.translation.program import load_setups
from medexam_companions.translation.scores import BertScore, score_bleu
from medexam_companions.translation.terms import KINDS, Term, find_terms, missing_terms

SELECTED = "selected"
"""Stands instead of a set-up for the translations that were chosen."""
Texts = Mapping[str, QuestionText]
What = Literal["round trip", "reference"]


@dataclass(frozen=True)
class TextScores:
    """Scores of some texts against others."""

    what: What
    setup: str
    """The set-up that translated; `selected` for the chosen translations."""
    questions: int
    invalid: int
    """Back-translations that fail the checks; they are scored as they are."""
    bleu: float
    """Of all texts together, 0 to 100."""
    bert_f1: float | None
    """The mean over the questions; None where BERTScore was left out."""


@dataclass(frozen=True)
class TermCount:
    """Terms of the sources, and those that their translations lack."""

    setup: str
    questions: int
    """Questions that lack at least one."""
    terms: Mapping[str, int]
    """By kind; one that stands in a question several times counts once."""
    lost: Mapping[str, int]
    """By kind."""
    missing: Mapping[str, Sequence[Term]]
    """What is missing, by question."""


@dataclass(frozen=True)
class Quality:
    """All that was found of one translation."""

    source: str
    target: str
    measured: tuple[TextScores, ...]
    terms: tuple[TermCount, ...]
    signatures: tuple[str, ...]
    """Of BLEU and of BERTScore, as far as they were computed."""

    def document(self) -> dict[str, Any]:
        """Build what `quality.json` and `--json` say, JSON-ready."""
        terms = [asdict(count) | {"missing": _missing(count)} for count in self.terms]
        return {
            "source": self.source,
            "target": self.target,
            "signatures": list(self.signatures),
            "measured": [asdict(score) for score in self.measured],
            "terms": terms,
        }


def plan_back(
    plan: TranslationPlan, outcome: TranslationOutcome, setup: str, *, only_selected: bool = False
) -> tuple[Plan, dict[str, SetupRun]]:
    """Plan the runs that translate back, by the set-up that translated; `setup` names the words to ask with.

    `only_selected` translates back the chosen ones alone, under `selected`; else all valid ones are. Raises `SpecError`
    where the words do not know the languages.
    """
    spec = plan.spec
    (words,) = load_setups((setup,), spec.target, spec.dataset.language, spec.words)
    texts = valid_texts(plan, outcome)
    selected = texts.pop(SELECTED)
    if only_selected:
        texts = {SELECTED: selected}
    plans, back_runs = [], {}
    for name, translations in texts.items():
        if not translations:
            continue
        keys = add_texts(plan.folder.path, translations.values(), spec.target, plan.sources)
        runs, (back_runs[name],) = plan_runs(spec, plan.folder, f"back-{name_part(name)}", spec.target, keys, (words,))
        plans.append(runs)
    return join_plans(plans), back_runs


def measure_back(
    plan: TranslationPlan, outcome: TranslationOutcome, back_runs: Mapping[str, SetupRun], bert: BertScore | None
) -> tuple[list[TextScores], list[str]]:
    """Score the round trip by set-up and for the chosen ones; return the signatures of the scores too.

    Questions whose reply is still pending are left out.
    """
    candidates = {name: run.candidates for name, run in back_runs.items()}
    if SELECTED not in candidates:
        setups = {key: choice.candidate.setup for key, choice in outcome.selection.choices.items()}
        candidates[SELECTED] = {
            key: candidates[setup][key] for key, setup in setups.items() if key in candidates.get(setup, {})
        }
    texts = {name: {key: each.text for key, each in by_key.items()} for name, by_key in candidates.items()}
    invalid = {name: sum(not each.valid for each in by_key.values()) for name, by_key in candidates.items()}
    return _measure("round trip", texts, plan.sources, bert, invalid)


def measure_reference(
    plan: TranslationPlan, outcome: TranslationOutcome, bert: BertScore | None
) -> tuple[list[TextScores], list[str]]:
    """Score the translations against the data set's own in the target language.

    Raises `SpecError` where it has none, and `DatasetError` where it cannot be read.
    """
    dataset, target = plan.spec.dataset, plan.spec.target
    if target not in CATALOGUE[dataset.name].languages:
        raise SpecError(f"--reference: {dataset.name} is not published in {target}")
    # A path names the file of one language.
    path = dataset.path if dataset.path is not None and dataset.path.is_dir() else None
    target_dataset = dataset.model_copy(update={"language": target, "path": path, "limit": None})
    references = {question.key: text_of(question) for question in load_exam_set(target_dataset).questions}
    texts_by_setup = {
        name: {key: text for key, text in texts.items() if key in references}
        for name, texts in valid_texts(plan, outcome).items()
    }
    if not any(texts_by_setup.values()):
        raise DatasetError(f"--reference: none of the questions is in {dataset.name} {target}")
    return _measure("reference", texts_by_setup, references, bert, {})


def count_terms(plan: TranslationPlan, outcome: TranslationOutcome) -> tuple[TermCount, ...]:
    """Count the terms of their sources that the valid translations of each set-up, and the chosen ones, keep."""
    sources = plan.sources
    return tuple(count_kept(name, texts, sources) for name, texts in valid_texts(plan, outcome).items())


def count_kept(setup: str, texts: Texts, sources: Texts) -> TermCount:
    """Count the terms in `sources` that `texts` keep; `sources` hold at least the keys of `texts`."""
    terms: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    missing_by_key = {}
    for key, text in texts.items():
        terms.update(term.kind for term in find_terms(sources[key]))
        if lost_terms := missing_terms(sources[key], text):
            missing_by_key[key] = lost_terms
            lost.update(term.kind for term in lost_terms)
    return TermCount(
        setup,
        len(missing_by_key),
        {kind: terms[kind] for kind in KINDS},
        {kind: lost[kind] for kind in KINDS},
        missing_by_key,
    )


def valid_texts(plan: TranslationPlan, outcome: TranslationOutcome) -> dict[str, Texts]:
    """Collect the valid translations by set-up, and the chosen ones under `selected`."""
    by_setup: dict[str, Texts] = {
        run.words.setup: {
            key: alternatives[place].text
            for key, alternatives in outcome.candidates.items()
            if alternatives[place].valid
        }
        for place, run in enumerate(plan.setups)
    }
    return {**by_setup, SELECTED: outcome.texts}


def _measure(
    what: What, by_setup: Mapping[str, Texts], references: Texts, bert: BertScore | None, invalid: Mapping[str, int]
) -> tuple[list[TextScores], list[str]]:
    """Score each set-up that has texts, and return the signatures that the scores were computed under too."""
    rows, signatures = [], []
    for setup, texts in by_setup.items():
        if not texts:
            continue
        layouts = [render_layout(text) for text in texts.values()]
        reference_layouts = [render_layout(references[key]) for key in texts]
        bleu, f1 = score_bleu(layouts, reference_layouts), None
        signatures.append(bleu.signature)
        if bert is not None:
            scores = bert.score(layouts, reference_layouts)
            f1 = sum(scores) / len(scores)
            signatures.append(bert.signature)
        rows.append(TextScores(what, setup, len(texts), invalid.get(setup, 0), bleu.score, f1))
    return rows, list(dict.fromkeys(signatures))


def _missing(count: TermCount) -> dict[str, list[str]]:
    return {key: [f"{term.kind} {term.spelling}" for term in terms] for key, terms in count.missing.items()}
