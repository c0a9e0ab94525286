"""What came out of a translation: every reply judged, the errors counted by set-up, and one translation chosen.

It reads what a plan has read and asks nothing, so that it can be made again at any time.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from medexam.datasets import find_files, read_embedded
from medexam.experiments import AnswererCount, count_answerers, read_models
from medexam_companions.translation.folder import MODEL_FILES
from medexam_companions.translation.layout import QuestionText
from medexam_companions.translation.plan import SetupRun, TranslationPlan
from medexam_companions.translation.selecting import Selection, SelectionRule, select
from medexam_companions.translation.validity import TranslationCandidate, TranslationFault
from medexam_companions.translation.writing import write_translation


@dataclass(frozen=True)
class SetupCount:
    """How one set-up did. Counts of questions."""

    setup: str
    judged: int
    valid: int
    faults: Mapping[str, int]
    """By `Fault`. A question with two faults counts under both."""
    same_as_source: int
    """Left as they were; among the valid ones too."""
    repeated: int
    """Valid ones whose stem is that of another question's translation too, though their sources differ: a model that
    gives back its example, or always says the same."""
    chosen: int


@dataclass(frozen=True)
class TranslationOutcome:
    """What a translation has come to so far."""

    source: str
    target: str
    model: str
    candidates: Mapping[str, Sequence[TranslationCandidate]]
    """By question, in the order of the exams and the set-ups; only questions that every set-up has replied to."""
    selection: Selection
    counts: tuple[SetupCount, ...]
    answered: tuple[AnswererCount, ...]
    """Which models gave how many of the replies, the most first."""
    mixed: bool
    """Whether set-ups that one model should answer have replies of several."""
    pending: int
    """Replies that are still to be asked for."""

    @property
    def texts(self) -> dict[str, QuestionText]:
        """The words that were chosen, by question."""
        return {key: choice.candidate.text for key, choice in self.selection.choices.items()}

    @property
    def rules(self) -> dict[SelectionRule, int]:
        """How many questions each rule decided."""
        counts = Counter(choice.rule for choice in self.selection.choices.values())
        return {rule: counts[rule] for rule in SelectionRule}

    def document(self) -> dict[str, Any]:
        """Build what `selection.json` and `--json` say, JSON-ready."""
        return {
            "source": self.source,
            "target": self.target,
            "model": self.model,
            "answered_by": [answered._asdict() for answered in self.answered],
            "questions": len(self.candidates),
            "owed_replies": self.pending,
            "setups": [asdict(count) for count in self.counts],
            "rules": {rule.value: number for rule, number in self.rules.items()},
            "discarded": list(self.selection.discarded),
            "choices": {
                key: {"setup": choice.candidate.setup, "rule": choice.rule.value, "similarity": choice.similarity}
                for key, choice in self.selection.choices.items()
            },
        }


def find_outcome(plan: TranslationPlan) -> TranslationOutcome:
    """Judge and choose among the replies that `plan` has read."""
    first, *others = plan.setups
    keys = [key for key in first.candidates if all(key in run.candidates for run in others)]
    candidates = {key: [run.candidates[key] for run in plan.setups] for key in keys}
    selection = select(candidates)
    choices_by_setup = Counter(choice.candidate.setup for choice in selection.choices.values())
    return TranslationOutcome(
        source=plan.spec.dataset.language,
        target=plan.spec.target,
        model=" and ".join(dict.fromkeys(run.cell.cell.model.label for run in plan.setups)),
        candidates=candidates,
        selection=selection,
        counts=tuple(
            _count(run, [run.candidates[key] for key in keys], plan.sources, choices_by_setup[run.words.setup])
            for run in plan.setups
        ),
        answered=_count_models(plan.setups),
        mixed=any(len(_count_models([run for run in plan.setups if run.role == role])) > 1 for role in MODEL_FILES),
        pending=plan.pending,
    )


def write_data_set(plan: TranslationPlan, outcome: TranslationOutcome) -> tuple[Path, int] | None:
    """Write the chosen translations as `TARGET.parquet` in the folder; return its path and number of questions.

    The source goes beside it, so that both languages can be asked and compared as one data set; a file of the source
    that is there already is left alone. None where no question has a translation. Raises `DatasetError` where nothing
    can be written.
    """
    if not outcome.texts:
        return None
    dataset, exams = plan.spec.dataset, plan.exam_set
    files = find_files(dataset.name, dataset.language, dataset.path)
    pictures = read_embedded(files)
    source_path = plan.folder.path / f"{outcome.source}.parquet"
    if source_path.resolve() not in {file.resolve() for file in files}:
        origin = f"{exams.name} {exams.version}, {outcome.source} (medexam)"
        write_translation(source_path, exams.questions, exams.golds, plan.sources, origin=origin, pictures=pictures)
    path = plan.folder.path / f"{outcome.target}.parquet"
    origin = f"{exams.name} {exams.version}, {outcome.source} to {outcome.target} by {outcome.model} (medexam)"
    texts = outcome.texts
    return path, write_translation(path, exams.questions, exams.golds, texts, origin=origin, pictures=pictures)


def _count_models(setups: Sequence[SetupRun]) -> tuple[AnswererCount, ...]:
    counts: Counter[tuple[str | None, str]] = Counter()
    for run in setups:
        folder, keys = run.cell.folder, {task.key for task in run.cell.question_set.questions}
        for count in count_answerers(folder.scan_predictions(), keys, read_models(folder)):
            counts[count.print, count.name] += count.answers
    return tuple(AnswererCount(key, name, answers) for (key, name), answers in counts.most_common())


def _count(
    run: SetupRun, candidates: Sequence[TranslationCandidate], texts: Mapping[str, QuestionText], choices: int
) -> SetupCount:
    faults = Counter(fault for candidate in candidates for fault in candidate.faults)
    valid = [candidate.text for candidate in candidates if candidate.valid]
    sources: dict[str, set[str]] = {}
    for text in valid:
        sources.setdefault(text.stem, set()).add(texts[text.key].stem)
    return SetupCount(
        setup=run.words.setup,
        judged=len(candidates),
        valid=len(valid),
        faults={fault.value: faults[fault] for fault in TranslationFault},
        same_as_source=sum(candidate.same_as_source for candidate in candidates),
        repeated=sum(len(sources[text.stem]) > 1 for text in valid),
        chosen=choices,
    )
