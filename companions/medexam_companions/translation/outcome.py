"""What came out of a translation: every reply judged, the errors counted by set-up, one translation chosen, written.

It reads what a plan has read and asks nothing, so that it can be made again at any time.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medexam.datasets import find_files, read_embedded, render_record, write_exam_table
from medexam.experiments import count_answerers, open_store, send_copy
from medexam.specs import ModelSpec
from medexam_companions.translation.layout import QuestionText
from medexam_companions.translation.plan import QUALITY, TranslationPlan, read_candidates
from medexam_companions.translation.selecting import RULES, Choice, select
from medexam_companions.translation.validity import TranslationCandidate, TranslationFault


@dataclass(frozen=True)
class TranslationOutcome:
    """What a translation has come to so far."""

    candidates: Mapping[str, Sequence[TranslationCandidate]]
    """By question, in the order of the exams and the set-ups; only questions that every set-up has replied to."""
    choices: Mapping[str, Choice]
    """What is kept of each question that has a valid translation."""
    document: Mapping[str, Any]
    """What `selection.json` and `--json` say, JSON-ready."""
    mixed: bool
    """Whether set-ups that one model should answer have replies of several."""

    @property
    def pending(self) -> int:
        """Replies that are still to be asked for."""
        return int(self.document["owed_replies"])

    @property
    def texts(self) -> dict[str, QuestionText]:
        """The words that were chosen, by question."""
        return {key: choice.candidate.text for key, choice in self.choices.items()}

    def valid_texts(self) -> dict[str, dict[str, QuestionText]]:
        """Collect the valid translations by set-up, and the chosen ones under `selected`."""
        texts: dict[str, dict[str, QuestionText]] = {count["setup"]: {} for count in self.document["setups"]}
        for key, alternatives in self.candidates.items():
            for candidate in alternatives:
                if candidate.valid:
                    texts[candidate.setup][key] = candidate.text
        return {**texts, "selected": self.texts}


def find_outcome(plan: TranslationPlan) -> TranslationOutcome:
    """Judge and choose among the replies that `plan` has read."""
    cells, sources = plan.runs.runs, plan.sources
    runs = [read_candidates(setup, cell) for setup, cell in zip(plan.spec.setups, cells, strict=True)]
    candidates = {key: [run[key] for run in runs] for key in sources if all(key in run for run in runs)}
    choices = select(candidates)
    answered: dict[ModelSpec, Counter[tuple[str | None, str]]] = {}
    for cell in cells:
        counts = answered.setdefault(cell.cell.model, Counter())
        for count in count_answerers(cell.folder, cell.folder.read_record()) if cell.folder.exists() else ():
            counts[count.print, count.name] += count.answers
    totals: Counter[tuple[str | None, str]] = sum(answered.values(), Counter())
    rules = Counter(choice.rule for choice in choices.values())
    document = {
        "source": plan.spec.dataset.language,
        "target": plan.spec.target,
        "model": " and ".join(dict.fromkeys(cell.cell.model.label for cell in cells)),
        "answered_by": [
            {"print": key, "name": name, "answers": answers} for (key, name), answers in totals.most_common()
        ],
        "questions": len(candidates),
        "owed_replies": sum(len(cell.pending) for cell in cells),
        "setups": [
            _count(setup, [each[place] for each in candidates.values()], choices, sources)
            for place, setup in enumerate(plan.spec.setups)
        ],
        "rules": {rule: rules[rule] for rule in RULES},
        "discarded": [key for key in candidates if key not in choices],
        "choices": {
            key: {"setup": choice.candidate.setup, "rule": choice.rule, "similarity": choice.similarity}
            for key, choice in choices.items()
        },
    }
    return TranslationOutcome(candidates, choices, document, any(len(counts) > 1 for counts in answered.values()))


def _count(
    setup: str,
    candidates: Sequence[TranslationCandidate],
    choices: Mapping[str, Choice],
    sources: Mapping[str, QuestionText],
) -> dict[str, Any]:
    """Count how one set-up did, in questions; one with two faults counts under both.

    `repeated` are valid ones whose stem is that of another question's translation too, though their sources differ: a
    model that gives back its example, or always says the same.
    """
    faults = Counter(fault for candidate in candidates for fault in candidate.faults)
    valid = [candidate.text for candidate in candidates if candidate.valid]
    stems: dict[str, set[str]] = {}
    for text in valid:
        stems.setdefault(text.stem, set()).add(sources[text.key].stem)
    return {
        "setup": setup,
        "judged": len(candidates),
        "valid": len(valid),
        "faults": {fault.value: faults[fault] for fault in TranslationFault},
        "same_as_source": sum(candidate.same_as_source for candidate in candidates),
        "repeated": sum(len(stems[text.stem]) > 1 for text in valid),
        "chosen": sum(choice.candidate.setup == setup for choice in choices.values()),
    }


def write_data_set(plan: TranslationPlan, outcome: TranslationOutcome) -> tuple[Path, int] | None:
    """Write the chosen translations as `TARGET.parquet` in the folder; return its path and number of questions.

    The source goes beside it, so that both languages can be asked and compared as one data set; a file of the source
    that is there already is left alone. Pictures go along if the source holds their bytes; otherwise their names do.
    None where no question has a translation. Raises `OSError`.
    """
    if not outcome.texts:
        return None
    dataset, source, target = plan.spec.dataset, plan.spec.dataset.language, plan.spec.target
    files = find_files(dataset.name, source, dataset.path)
    pictures = read_embedded(files)
    origin = f"{plan.exam_set.name} {plan.exam_set.version}, {source}"
    source_path, path = (plan.folder.path / f"{language}.parquet" for language in (source, target))
    if source_path.resolve() not in {file.resolve() for file in files}:
        _write_table(source_path, plan, plan.sources, f"{origin} (medexam)", pictures)
    origin = f"{origin} to {target} by {outcome.document['model']} (medexam)"
    return path, _write_table(path, plan, outcome.texts, origin, pictures)


def _write_table(
    path: Path, plan: TranslationPlan, texts: Mapping[str, QuestionText], origin: str, pictures: Mapping[Any, Any]
) -> int:
    """Write those of the questions that `texts` has words for, with these words; return how many they are.

    `origin` says in the file what it was made from.
    """
    golds = plan.exam_set.golds
    records = [
        render_record(
            question.exam,
            question.number,
            texts[question.key].stem,
            texts[question.key].options,
            golds[question.key].number,
            # Pictures that the source does not hold are named.
            pictures.get(
                (question.exam.name, question.number), question.image and {"bytes": None, "path": question.image}
            )
            if pictures
            else question.image,
        )
        for question in plan.exam_set.questions
        if question.key in texts
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_exam_table(path, records, origin, with_pictures=bool(pictures))
    return len(records)


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
