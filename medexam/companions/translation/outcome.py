"""What came out of a translation: every reply judged, the errors counted by set-up, and one translation chosen.

It reads what a plan has read and asks nothing, so that it can be made again at any time.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from medexam.companions.translation.folder import MODEL_FILES, TranslationFolder
from medexam.companions.translation.layout import QuestionText
from medexam.companions.translation.plan import TranslationPlan, TranslationTask, keys_of
from medexam.companions.translation.selecting import Selection, SelectionRule, select
from medexam.companions.translation.validity import TranslationCandidate, TranslationFault, judge_reply
from medexam.companions.translation.writing import write_translation
from medexam.toolkit.data import find_files, read_embedded
from medexam.toolkit.runs import AnswererCount


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


def judge_tasks(tasks: Sequence[TranslationTask]) -> dict[str, list[TranslationCandidate]]:
    """Judge the candidates of each question that every one of `tasks` has a reply to."""
    return {key: [judge_task(task, key) for task in tasks] for key in keys_of(tasks)}


def judge_task(task: TranslationTask, key: str) -> TranslationCandidate:
    """Judge the candidate that the reply to one question is."""
    reply = task.replies[key]
    words = task.words
    return judge_reply(words.setup, task.sources[key], reply.reply, cut_off=reply.cut_off, keywords=words.keywords)


def find_outcome(plan: TranslationPlan) -> TranslationOutcome:
    """Judge and choose among the replies that `plan` has read."""
    candidates = judge_tasks(plan.tasks)
    selection = select(candidates)
    choices_by_setup = Counter(choice.candidate.setup for choice in selection.choices.values())
    return TranslationOutcome(
        source=plan.spec.dataset.language,
        target=plan.spec.target,
        model=" and ".join(dict.fromkeys(task.model.label for task in plan.tasks)),
        candidates=candidates,
        selection=selection,
        counts=tuple(
            _count(
                task, [alternatives[place] for alternatives in candidates.values()], choices_by_setup[task.words.setup]
            )
            for place, task in enumerate(plan.tasks)
        ),
        answered=_count_models(plan.folder, plan.tasks),
        mixed=any(len(_count_models(plan.folder, tasks)) > 1 for tasks in _by_role(plan.tasks)),
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


def _by_role(tasks: Sequence[TranslationTask]) -> list[list[TranslationTask]]:
    return [[task for task in tasks if task.role == role] for role in MODEL_FILES]


def _count_models(folder: TranslationFolder, tasks: Sequence[TranslationTask]) -> tuple[AnswererCount, ...]:
    replies = [reply for task in tasks for reply in task.replies.values()]
    names = {key: model.identity.name for role in MODEL_FILES for key, model in folder.read_models(role).items()}
    answerers = Counter((reply.answered_by, names.get(reply.answered_by or "") or reply.model) for reply in replies)
    return tuple(AnswererCount(key, name or "an unknown model", n) for (key, name), n in answerers.most_common())


def _count(task: TranslationTask, candidates: Sequence[TranslationCandidate], choices: int) -> SetupCount:
    faults = Counter(fault for candidate in candidates for fault in candidate.faults)
    valid = [candidate.text for candidate in candidates if candidate.valid]
    sources: dict[str, set[str]] = {}
    for text in valid:
        sources.setdefault(text.stem, set()).add(task.sources[text.key].stem)
    return SetupCount(
        setup=task.words.setup,
        judged=len(candidates),
        valid=len(valid),
        faults={fault.value: faults[fault] for fault in TranslationFault},
        same_as_source=sum(candidate.same_as_source for candidate in candidates),
        repeated=sum(len(sources[text.stem]) > 1 for text in valid),
        chosen=choices,
    )
