"""`medexam compare`: stored runs against a baseline, on the questions that all of them have scored.

It reads the runs' predictions and the answer keys of their data sets; nothing is asked and nothing is written.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import replace
from pathlib import Path

from medexam.answer_key import AnswerKey
from medexam.datasets import ExamSet, load_exam_set
from medexam.errors import DatasetError, SpecError
from medexam.experiments.comparison import Comparison, Dropped, Flipped, Group, Pair, describe_all, describe_dropped
from medexam.experiments.ranking import mixed_notes
from medexam.experiments.run_folder import RunFolder, RunRecord, find_runs, owed
from medexam.experiments.stored_questions import Q, stored_questions
from medexam.experiments.summary import AnyRun, ExamRun, find_answerers, stored_run
from medexam.metrics import compute_metrics
from medexam.metrics.paired import adjust_holm, compare_pair, complementarity, judge
from medexam.predictions import Prediction, Status
from medexam.questions import Question
from medexam.specs import DatasetSpec

Predictions = Mapping[str, Prediction]


def find_compared(paths: Sequence[Path]) -> list[RunFolder]:
    """The run folders named by `paths`, as `find_runs` finds them, two or more; the baseline first.

    That is the first run, but of a folder of runs the first that does not mix models.

    Raises `SpecError` where a run is named twice or is the only one, and `RunFolderError` for a path without a run.
    """
    named = [path for path in paths if RunFolder(path).exists()]
    twice = [path for path, times in Counter(path.resolve() for path in named).items() if times > 1]
    if twice:
        raise SpecError(
            f"run {twice[0].name} is given twice, and there is nothing to compare it with; name each run once"
        )
    folders = find_runs(paths)
    if len(folders) < 2:
        raise SpecError(
            f"{folders[0].path} is the only run: give the baseline and one run or more to compare with it, or a folder "
            "that holds them; `medexam report` shows a single run"
        )
    if not RunFolder(paths[0]).exists():
        baseline = next((folder for folder in folders if not _mixes(folder)), folders[0])
        folders.sort(key=lambda folder: folder is not baseline)
    return folders


def _mixes(folder: RunFolder) -> bool:
    return len(find_answerers(folder, folder.read_record())) > 1


def compare_runs(folders: Sequence[RunFolder]) -> Comparison:
    """Compare the runs in `folders`, two or more, with the first one.

    Raises `DatasetError` where they asked different data sets, where no question is scored by all of them, or where a
    data set cannot be read or lacks a question that was asked.
    """
    records = [folder.read_record() for folder in folders]
    check_one_data_set(records)
    sets: dict[DatasetSpec, ExamSet] = {}
    for record in records:
        if record.cell.dataset not in sets:
            sets[record.cell.dataset] = load_exam_set(record.cell.dataset)
    keys = [sets[record.cell.dataset].key for record in records]
    predictions = [folder.read_predictions() for folder in folders]
    baseline = stored_questions(records[0], sets[records[0].cell.dataset])
    kept, dropped = find_common(
        baseline, records, predictions, lambda question: len({key[question].number for key in keys}) == 1
    )
    check_any_common(kept, folders, dropped)
    key = keys[0]
    runs = tuple(
        stored_run(folder, compute_metrics(kept, key, found), found)
        for folder, found in zip(folders, predictions, strict=True)
    )
    names = run_names(runs)
    return Comparison(
        runs=runs,
        names=names,
        asked=tuple(len(record.questions) for record in records),
        owed=tuple(len(owed(record.questions, found)) for record, found in zip(records, predictions, strict=True)),
        questions=tuple(question.key for question in kept),
        dropped=dropped,
        pairs=_pairs(runs, names, kept, key, predictions),
        together=complementarity(kept, key, predictions),
        flipped=_flipped(kept, key, predictions),
        notes=(*note_differences(records), *mixed_notes(runs)),
    )


def run_names(runs: Sequence[AnyRun]) -> tuple[str, ...]:
    """A name for each run, as short as tells all apart.

    Its program, with model, language or both where that is needed; else the ids of the runs that share their program,
    or all their paths. Behind it stands whether it mixes models.
    """
    programs = Counter(run.program for run in runs)

    def language(run: AnyRun) -> str:
        dataset = run.record.cell.dataset
        return " ".join([dataset.language, *dataset.form])

    ways: tuple[Callable[[AnyRun], str], ...] = (
        lambda run: run.program,
        lambda run: " ".join(filter(None, (run.program, run.model))),
        lambda run: f"{run.program} {language(run)}",
        lambda run: " ".join(filter(None, (run.program, run.model, language(run)))),
        lambda run: run.program if programs[run.program] == 1 else run.folder.name,
    )
    for way in ways:
        names = tuple(mark_mixed(run, way(run)) for run in runs)
        if len(set(names)) == len(names):
            return names
    return tuple(mark_mixed(run, str(run.folder.path)) for run in runs)


def mark_mixed(run: AnyRun, name: str) -> str:
    """The run's name in tables and pictures, which says so if its answers are of several models."""
    return f"{name} (mixed models)" if run.mixed else name


def check_one_data_set(records: Sequence[RunRecord]) -> None:
    """Raises `DatasetError` where the runs asked different data sets."""
    first = records[0]
    for record in records[1:]:
        mine, its = first.cell.dataset.name, record.cell.dataset.name
        if mine != its:
            raise DatasetError(
                f"the runs asked different data sets: {mine} ({first.run_id}) and {its} ({record.run_id}); "
                "compare runs of one data set, or run one spec again with the other's --set dataset.name"
            )


def find_common(
    baseline: Iterable[Q],
    records: Sequence[RunRecord],
    predictions: Sequence[Predictions],
    golds_agree: Callable[[str], bool],
) -> tuple[list[Q], Dropped]:
    """The baseline's questions that every run has scored under the same gold, and how many others there are.

    `golds_agree` is asked by the keys of questions that every run was asked for.
    """
    in_all = set.intersection(*(set(record.questions) for record in records))
    in_any = set().union(*(record.questions for record in records))
    kept = []
    dropped = Dropped(len(in_any) - len(in_all), 0, 0, 0)
    for question in baseline:
        if question.key not in in_all:
            continue
        found = [run.get(question.key) for run in predictions]
        if any(prediction is not None and prediction.status is Status.FAILED for prediction in found):
            dropped = replace(dropped, failed=dropped.failed + 1)
        elif any(prediction is None for prediction in found):
            dropped = replace(dropped, not_asked_yet=dropped.not_asked_yet + 1)
        elif not golds_agree(question.key):
            dropped = replace(dropped, other_gold=dropped.other_gold + 1)
        else:
            kept.append(question)
    return kept, dropped


def check_any_common(kept: Sized, folders: Sized, dropped: Dropped) -> None:
    """Raises `DatasetError` where the runs in `folders` have no question in common."""
    if not kept:
        raise DatasetError(
            f"there is nothing to compare, for no question is scored by {describe_all(folders)} "
            f"({describe_dropped(dropped)}); run their specs on the same questions, finish them with "
            "`medexam run --resume RUN`, or name other runs"
        )


def _pairs(
    runs: Sequence[ExamRun],
    names: Sequence[str],
    questions: Sequence[Question],
    key: AnswerKey,
    predictions: Sequence[Predictions],
) -> tuple[Pair, ...]:
    baseline, others = predictions[0], predictions[1:]
    paired = [compare_pair(questions, key, baseline, other) for other in others]
    adjusted = adjust_holm([each.flips.p for each in paired])
    disciplines = _groups(questions, key, predictions, lambda question: question.exam.discipline.value)
    dated = [question for question in questions if question.exam.year is not None]
    years = _groups(dated, key, predictions, lambda question: str(question.exam.year))
    return tuple(
        Pair(run, name, each, p, judge(each.accuracy, p), by_discipline, by_year)
        for run, name, each, p, by_discipline, by_year in zip(
            runs[1:], names[1:], paired, adjusted, disciplines, years, strict=True
        )
    )


def _groups(
    questions: Sequence[Question],
    key: AnswerKey,
    predictions: Sequence[Predictions],
    group_of: Callable[[Question], str],
) -> list[dict[str, Group]]:
    """One breakdown a pair, its groups in the order of their names; one family of tests over all of them."""
    members: dict[str, list[Question]] = {}
    for question in questions:
        members.setdefault(group_of(question), []).append(question)
    found = [
        {name: compare_pair(members[name], key, predictions[0], other) for name in sorted(members)}
        for other in predictions[1:]
    ]
    adjusted = iter(adjust_holm([paired.flips.p for groups in found for paired in groups.values()]))
    return [{name: Group(paired, next(adjusted)) for name, paired in groups.items()} for groups in found]


def _flipped(questions: Sequence[Question], key: AnswerKey, predictions: Sequence[Predictions]) -> tuple[Flipped, ...]:
    found = []
    for question in questions:
        gold = key[question.key].number
        answers = tuple(run[question.key].answer for run in predictions)
        if len({answer == gold for answer in answers}) == 2:
            found.append(Flipped(question.key, gold, answers))
    return tuple(found)


def note_differences(records: Sequence[RunRecord]) -> tuple[str, ...]:
    """How the runs differ in what they asked: languages, and versions of the data; mostly nothing."""
    datasets = [record.cell.dataset for record in records]
    languages = list(dict.fromkeys(dataset.language for dataset in datasets))
    notes = []
    if len(languages) > 1:
        notes.append(
            f"the runs asked in different languages ({', '.join(languages)}): the same question has the same key in "
            "each, so that this compares languages too"
        )
    for language in languages:
        own = [record for record in records if record.cell.dataset.language == language]
        # Prints of different schemas cover different things and say nothing of each other.
        prints = {(record.schema, record.dataset_fingerprint, record.dataset_golds) for record in own}
        versions = max(Counter(schema for schema, *_ in prints).values())
        if versions > 1:
            notes.append(f"the runs in {language} read {versions} different versions of the data (SHA-256)")
    return tuple(notes)
