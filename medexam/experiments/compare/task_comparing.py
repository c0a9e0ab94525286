"""`medexam compare` of runs whose questions are answered in words, on the questions that all of them have scored.

It scores the stored predictions anew on the data sets as they are today; nothing is asked and nothing is written.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from medexam.datasets import load_task_set
from medexam.errors import DatasetError
from medexam.experiments.compare.ranking import mixed_notes
from medexam.experiments.compare.runs import (
    check_any_common,
    check_one_data_set,
    find_common,
    note_corrections,
    note_differences,
    run_names,
)
from medexam.experiments.compare.task_comparison import TaskComparison, TaskPair
from medexam.experiments.score.task_scorers import score_tasks
from medexam.experiments.store.questions import stored_questions
from medexam.experiments.store.run_folder import RunFolder, RunRecord, pending
from medexam.experiments.store.stored_run import stored_run
from medexam.metrics.paired.measure_results import PairedMeasure
from medexam.metrics.paired.measures import compare_groups, compare_measures
from medexam.metrics.tasks import question_of
from medexam.specs import DatasetSpec
from medexam.tasks import Task, TaskGold, TaskSet

Measures = Mapping[str, PairedMeasure]


def compare_task_runs(folders: Sequence[RunFolder]) -> TaskComparison:
    """Compare the runs in `folders`, two or more, with the first one.

    Raises `DatasetError` where they asked different data sets, where no question or no measure is scored by all of
    them, or where a data set cannot be read or lacks a question that was asked; `EngineError` where what a benchmark
    is scored with is not installed.
    """
    records = [folder.read_record() for folder in folders]
    check_one_data_set(records)
    wholes = _load_sets(records)
    sets = [
        replace(data, questions=stored_questions(record, data)) for record, data in zip(records, wholes, strict=True)
    ]
    predictions = [folder.read_predictions() for folder in folders]
    golds = _golds_by_language(sets)
    kept, dropped = find_common(
        sets[0].questions, records, predictions, lambda key: all(_agree(key, found) for found in golds)
    )
    check_any_common(kept, folders, dropped)
    keys = [task.key for task in kept]
    scores = [score_tasks(_only(task_set, keys), found) for task_set, found in zip(sets, predictions, strict=True)]
    runs = tuple(
        stored_run(folder, found.metrics, said)
        for folder, found, said in zip(folders, scores, predictions, strict=True)
    )
    names = run_names(runs)
    return TaskComparison(
        runs=runs,
        names=names,
        asked=tuple(len(record.questions) for record in records),
        pending=tuple(
            len(pending(record.questions, found)) for record, found in zip(records, predictions, strict=True)
        ),
        questions=tuple(keys),
        dropped=dropped,
        notes=(*note_differences(records, sets), *mixed_notes(runs)),
        corrected=note_corrections(folders, records, sets),
        whole=len({question_of(key) for key in keys}),
        pairs=tuple(
            TaskPair(run, name, measures, by_group)
            for run, name, (measures, by_group) in zip(
                runs[1:], names[1:], _pair([each.items for each in scores], kept), strict=True
            )
        ),
    )


def _pair(items: Sequence[Mapping[str, Mapping[str, float]]], kept: Sequence[Task]) -> list[tuple[Measures, Measures]]:
    """For each run but the first its measures, and the first measure by group."""
    measures = compare_measures(items[0], items[1:])
    if not measures[0]:
        raise DatasetError(
            "there is nothing to compare: no measure is scored in all of these runs, for their data hold different "
            "right answers; compare runs whose dataset.path is the same"
        )
    first = next(iter(measures[0]))
    groups: dict[str, list[str]] = {}
    for task in kept:
        groups.setdefault(task.group, []).append(task.key)
    by_group = compare_groups(items[0][first], [each[first] for each in items[1:]], groups)
    return list(zip(measures, by_group, strict=True))


def _load_sets(records: Sequence[RunRecord]) -> list[TaskSet]:
    """Everything that the data set of each run holds; each is read once."""
    known: dict[DatasetSpec, TaskSet] = {}
    for record in records:
        whole = record.cell.dataset.whole
        if whole not in known:
            known[whole] = load_task_set(whole)
    return [known[record.cell.dataset.whole] for record in records]


def _golds_by_language(sets: Iterable[TaskSet]) -> list[list[Mapping[str, TaskGold]]]:
    """What is expected in the runs of each language; in another language the same gold has other words."""
    found: dict[str, list[Mapping[str, TaskGold]]] = {}
    for task_set in sets:
        found.setdefault(task_set.language, []).append(task_set.golds)
    return list(found.values())


def _agree(key: str, golds: Sequence[Mapping[str, TaskGold]]) -> bool:
    return all(each[key] == golds[0][key] for each in golds[1:])


def _only(task_set: TaskSet, keys: Sequence[str]) -> TaskSet:
    """The tasks of these keys, in their order."""
    tasks = {task.key: task for task in task_set.questions}
    return replace(
        task_set, questions=tuple(tasks[key] for key in keys), golds={key: task_set.golds[key] for key in keys}
    )
