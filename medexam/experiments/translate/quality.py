"""How good a translation is: the round trip, the published translation as reference, and what must survive.

The round trip asks a model again, in the same folder; the rest reads. Which numbers these are and under which
signature they were computed stands in `quality.json`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from medexam.datasets import load_exam_set
from medexam.datasets.catalogue import CATALOGUE
from medexam.datasets.translate import (
    KINDS,
    QuestionText,
    Term,
    find_terms,
    missing_terms,
    render_layout,
    text_of,
)
from medexam.errors import DatasetError, SpecError
from medexam.experiments.translate.outcome import TranslationOutcome, judge_task
from medexam.experiments.translate.plan import Task, TranslationPlan, plan_task
from medexam.experiments.translate.prompts import load_setups
from medexam.experiments.translate.scores import BertScore, score_bleu

SELECTED = "selected"
"""Stands in the place of a set-up for the translations that were chosen."""
Texts = Mapping[str, QuestionText]
What = Literal["round trip", "reference"]


@dataclass(frozen=True)
class Measured:
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
    measured: tuple[Measured, ...]
    terms: tuple[TermCount, ...]
    signatures: tuple[str, ...]
    """Of BLEU and of BERTScore, as far as they were computed."""

    def document(self) -> dict[str, Any]:
        """What `quality.json` and `--json` say, JSON-ready."""
        terms = [asdict(count) | {"missing": _missing(count)} for count in self.terms]
        return {
            "source": self.source,
            "target": self.target,
            "signatures": list(self.signatures),
            "measured": [asdict(one) for one in self.measured],
            "terms": terms,
        }


def plan_back(
    plan: TranslationPlan, outcome: TranslationOutcome, setup: str, *, only_selected: bool = False
) -> dict[str, Task]:
    """What translating back has to ask, by the set-up that translated; `setup` names the words that are asked with.

    `only_selected` translates back the chosen ones alone, under `selected`; else all valid ones are. Raises `SpecError`
    where the words do not know the languages.
    """
    spec = plan.spec
    (words,) = load_setups((setup,), spec.target, spec.dataset.language, spec.words)
    if only_selected:
        texts: dict[str, Texts] = {SELECTED: outcome.texts}
    else:
        texts = {
            task.words.setup: {
                key: offered[place].text for key, offered in outcome.candidates.items() if offered[place].valid
            }
            for place, task in enumerate(plan.tasks)
        }
    forward = {SELECTED: "", **{task.words.setup: task.digest for task in plan.tasks}}
    return {
        name: plan_task(plan, f"back-{name}-{setup}", words, sources, data={"forward": forward[name]})
        for name, sources in texts.items()
    }


def measure_back(
    plan: TranslationPlan, outcome: TranslationOutcome, back: Mapping[str, Task], bert: BertScore | None
) -> tuple[list[Measured], list[str]]:
    """The scores of the round trip by set-up and for the chosen ones, and the signatures they were computed under.

    Questions whose reply is still pending are left out.
    """
    found: dict[str, dict[str, tuple[QuestionText, bool]]] = {}
    for name, task in back.items():
        candidates = {key: judge_task(task, key) for key in task.replies}
        found[name] = {key: (one.text, one.valid) for key, one in candidates.items()}
    if SELECTED not in found:
        chosen = {key: choice.candidate.setup for key, choice in outcome.selection.choices.items()}
        found[SELECTED] = {key: found[setup][key] for key, setup in chosen.items() if key in found[setup]}
    sources = plan.sources
    measured, signatures = [], []
    for name, texts in found.items():
        if texts:
            invalid = sum(not valid for _, valid in texts.values())
            row, signed = _measure("round trip", name, {k: text for k, (text, _) in texts.items()}, sources, bert)
            measured.append(Measured(**{**asdict(row), "invalid": invalid}))
            signatures += signed
    return measured, list(dict.fromkeys(signatures))


def measure_reference(
    plan: TranslationPlan, outcome: TranslationOutcome, bert: BertScore | None
) -> tuple[list[Measured], list[str]]:
    """The scores of the translations against the data set's own in the target language.

    Raises `SpecError` where it has none, and `DatasetError` where it cannot be read.
    """
    dataset, target = plan.spec.dataset, plan.spec.target
    if target not in CATALOGUE[dataset.name].languages:
        raise SpecError(f"--reference: {dataset.name} is not published in {target}")
    # A path names the file of one language.
    path = dataset.path if dataset.path is not None and dataset.path.is_dir() else None
    wanted = dataset.model_copy(update={"language": target, "path": path, "limit": None})
    published = {question.key: text_of(question) for question in load_exam_set(wanted).questions}
    measured, signatures = [], []
    for name, texts in valid_texts(plan, outcome).items():
        known = {key: text for key, text in texts.items() if key in published}
        if known:
            row, signed = _measure("reference", name, known, published, bert)
            measured.append(row)
            signatures += signed
    if not measured:
        raise DatasetError(f"--reference: none of the questions stands in {dataset.name} {target}")
    return measured, list(dict.fromkeys(signatures))


def count_terms(plan: TranslationPlan, outcome: TranslationOutcome) -> tuple[TermCount, ...]:
    """What the valid translations of each set-up, and the chosen ones, keep of the terms in their sources."""
    sources = plan.sources
    return tuple(count_kept(name, texts, sources) for name, texts in valid_texts(plan, outcome).items())


def count_kept(setup: str, texts: Texts, sources: Texts) -> TermCount:
    """What `texts` keep of the terms in `sources`, which hold at least their keys."""
    terms: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    missing = {}
    for key, text in texts.items():
        terms.update(term.kind for term in find_terms(sources[key]))
        if gone := missing_terms(sources[key], text):
            missing[key] = gone
            lost.update(term.kind for term in gone)
    return TermCount(
        setup, len(missing), {kind: terms[kind] for kind in KINDS}, {kind: lost[kind] for kind in KINDS}, missing
    )


def valid_texts(plan: TranslationPlan, outcome: TranslationOutcome) -> dict[str, Texts]:
    """The valid translations by set-up, and the chosen ones under `selected`."""
    by_setup: dict[str, Texts] = {
        task.words.setup: {key: offered[at].text for key, offered in outcome.candidates.items() if offered[at].valid}
        for at, task in enumerate(plan.tasks)
    }
    return {**by_setup, SELECTED: outcome.texts}


def _measure(
    what: What, setup: str, texts: Texts, references: Texts, bert: BertScore | None
) -> tuple[Measured, list[str]]:
    written = [render_layout(text) for text in texts.values()]
    wanted = [render_layout(references[key]) for key in texts]
    bleu = score_bleu(written, wanted)
    signatures = [bleu.signature]
    f1: float | None = None
    if bert is not None:
        scores = bert.score(written, wanted)
        f1 = sum(scores) / len(scores)
        signatures.append(bert.signature)
    return Measured(what, setup, len(texts), 0, bleu.score, f1), signatures


def _missing(count: TermCount) -> dict[str, list[str]]:
    return {key: [f"{term.kind} {term.spelling}" for term in terms] for key, terms in count.missing.items()}
