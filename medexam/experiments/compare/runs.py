"""`medexam compare`: stored runs against a baseline, on the questions that all of them have scored.

It reads the runs' predictions and the answer keys of their data sets; nothing is asked and nothing is written.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from medexam.benchmarks import Benchmark
from medexam.benchmarks.answers import RunAnswers
from medexam.benchmarks.registry import find_stored_benchmark
from medexam.datasets.kept import keep
from medexam.errors import DatasetError, RunFolderError, SpecError
from medexam.experiments.compare.equal_runs import describe_unequal
from medexam.experiments.compare.noise import find_noise
from medexam.experiments.compare.ranking import mixed_notes
from medexam.experiments.compare.result import Comparison, LeftOut, describe_all, describe_dropped
from medexam.experiments.compare.section import ComparisonScope, Finder
from medexam.experiments.score.own import score_own, with_own
from medexam.experiments.store.answerers import are_mixed
from medexam.experiments.store.data_changes import check_items
from medexam.experiments.store.freshness import find_changes
from medexam.experiments.store.parquet import read_outcomes
from medexam.experiments.store.run_folder import RunFolder, RunRecord, find_runs, pending
from medexam.experiments.store.stored_run import AnyRun, find_answerers, stored_metrics, stored_run, tell_models_apart
from medexam.gc_pause import gc_seldom
from medexam.metrics.own import OwnScores, clusters_of
from medexam.metrics.paired.measures import compare_measures
from medexam.metrics.paired.results import PairedMeasure
from medexam.metrics.tasks import select_scores
from medexam.model_calls import Reading
from medexam.predictions import Status
from medexam.predictions.prediction import Answered, as_read
from medexam.questions import AnySet, Item
from medexam.specs.identity import distinct_labels

Q = TypeVar("Q", bound=Item)


def find_compared(paths: Sequence[Path]) -> list[RunFolder]:
    """Find the run folders named by `paths`, as `find_runs` finds them, two or more; the baseline first.

    That is the first run, but of a folder of runs the first that does not mix models.

    Raises `SpecError` where a run is named twice or is the only one, and `RunFolderError` for a path without a run.
    """
    run_paths = [path for path in paths if RunFolder(path).exists()]
    duplicates = [path for path, times in Counter(path.resolve() for path in run_paths).items() if times > 1]
    if duplicates:
        raise SpecError(
            f"run {duplicates[0].name} is given twice, and there is nothing to compare it with; name each run once"
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
    return are_mixed(find_answerers(folder, folder.read_record()))


def compare_runs(
    folders: Sequence[RunFolder], finders: Sequence[Finder] = (), reading: Reading | None = None
) -> Comparison:
    """Compare the runs in `folders`, two or more, with the first one; `finders` find further parts of the comparison.

    `reading` is how the replies of all are read; None: each run's as it is scored.

    Raises `DatasetError` if they asked different data sets, if no question or measure is scored by all of them, or if a
    data set cannot be read or lacks a question that was asked; `EngineError` if what scoring needs is not installed.
    """
    return _compare_folders(tuple(folders), tuple(finders), reading)


# A page compares the same runs in its table and in its plot.
@keep(worth=lambda _: True)
@gc_seldom()
def _compare_folders(
    folders: tuple[RunFolder, ...], finders: tuple[Finder, ...], reading: Reading | None
) -> Comparison:
    records = [folder.read_record() for folder in folders]
    _check_same_data(records)
    checked = list(map(check_items, folders))
    sets = [each.items for each in checked]
    benchmark = find_stored_benchmark(records[0].cell.dataset, in_words=sets[0].in_words)
    predictions = [_answers(folder, record, reading) for folder, record in zip(folders, records, strict=True)]
    outcomes = [answers.outcomes for answers in predictions]
    one_key = len({exam_set.golds_fingerprint for exam_set in sets}) == 1
    texts_agree = _compare_texts(records, sets)
    common_items, exclusions = find_common(
        sets[0].questions,
        records,
        outcomes,
        lambda key: (one_key or benchmark.golds_agree(key, sets)) and texts_agree(key),
    )
    if not common_items:
        raise DatasetError(
            f"there is nothing to compare: no question is scored by {describe_all(folders)} "
            f"({describe_dropped(exclusions)}); run their specs on the same questions, finish them with "
            "`medexam run --resume RUN`, or name other runs"
        )
    statistics = benchmark.compare(replace(sets[0], questions=tuple(common_items)), sets, predictions)
    compared = ComparisonScope(benchmark, statistics, folders, sets, common_items, predictions)
    if (noise := find_noise(compared)) is not None:
        statistics = statistics.held_to(noise.floors)
    sections = (noise, *(find(compared) for find in finders))
    scores = list(map(score_own, folders, sets, predictions))
    scored_sets = [replace(exam_set, questions=tuple(common_items)) for exam_set in sets]
    metrics = [
        with_own(run_metrics, benchmark, items, answers, own) if own else run_metrics
        for run_metrics, items, answers, own in zip(statistics.metrics, scored_sets, predictions, scores, strict=True)
    ]
    failed = [any(outcome.status is Status.FAILED for outcome in answers.values()) for answers in outcomes]
    failures = [answers if fails else {} for answers, fails in zip(predictions, failed, strict=True)]
    runs, model_notes = tell_models_apart([*map(stored_run, folders, metrics, failures)])
    return Comparison(
        runs=tuple(runs),
        names=run_names(runs),
        question_counts=tuple(len(record.questions) for record in records),
        pending=tuple(
            len(pending(record.questions, answers_by_key))
            for record, answers_by_key in zip(records, outcomes, strict=True)
        ),
        questions=tuple(item.key for item in common_items),
        exclusions=exclusions,
        notes=(
            *note_differences(records, sets),
            *mixed_notes(runs),
            *model_notes,
            *describe_unequal(runs),
        ),
        corrected=tuple(note for each in checked if (note := each.gold_note or each.text_note) is not None),
        statistics=statistics,
        own=_compare_own(benchmark, common_items, scores),
        sections=tuple(section for section in sections if section is not None),
    )


def _compare_texts(records: Sequence[RunRecord], sets: Sequence[AnySet]) -> Callable[[str], bool]:
    """Return whether all runs of one language and alteration were asked the same text, by the key of a question."""
    alike: dict[object, list[AnySet]] = {}
    for record, items in zip(records, sets, strict=True):
        dataset = record.cell.dataset
        alike.setdefault((dataset.language, dataset.changes, dataset.as_published), []).append(items)
    differing = [
        [{item.key: getattr(item, "printed", item) for item in items.questions} for items in each]
        for each in alike.values()
        if len({items.fingerprint for items in each}) > 1
    ]
    return lambda key: all(len({texts[key] for texts in each}) == 1 for each in differing)


def _check_same_data(records: Sequence[RunRecord]) -> None:
    first = records[0]
    for record in records[1:]:
        dataset_name, other_name = first.cell.dataset.name, record.cell.dataset.name
        if dataset_name != other_name:
            raise DatasetError(
                f"the runs asked different data sets: {dataset_name} ({first.run_id}) and {other_name} "
                f"({record.run_id}); compare runs of one data set, or run one spec again with the other's --set "
                "dataset.name"
            )


def _answers(folder: RunFolder, record: RunRecord, reading: Reading | None) -> RunAnswers:
    """Read what a run answered; fresh derived files hold how each question came out, and the scores."""
    if reading is not None:
        return RunAnswers(
            lambda: {key: as_read(prediction, reading) for key, prediction in folder.read_predictions().items()}
        )
    outcomes = None if find_changes(folder).changed else read_outcomes(folder)
    if not outcomes:
        return RunAnswers(folder.read_predictions)
    metrics = None
    with suppress(RunFolderError):
        metrics = stored_metrics(folder)
    return RunAnswers(folder.read_predictions, outcomes, record.questions, metrics)


def _compare_own(
    benchmark: Benchmark[Any, Any, Any], items: Sequence[Item], scores: Sequence[OwnScores]
) -> tuple[dict[str, PairedMeasure], ...]:
    """Compare each pair by the metrics that all runs were scored by, on `items`; empty if there is none."""
    if not all(scores):
        return ()
    clusters = {item.key: benchmark.cluster(item) for item in items}
    first, *others = [{name: select_scores(of, clusters) for name, of in own.items()} for own in scores]
    pairs = compare_measures(first, others, partial(clusters_of, cluster_of=clusters))
    return tuple(pairs) if any(pairs) else ()


def run_names(runs: Sequence[AnyRun]) -> tuple[str, ...]:
    """Name each run, as short as tells all apart.

    Its program, with model, language or both where that is needed; else with the settings that differ; else the ids
    of the runs that share their program, or all their paths. Behind it stands whether it mixes models.
    """
    programs = Counter(run.program for run in runs)

    def language(run: AnyRun) -> str:
        dataset = run.record.cell.dataset
        return " ".join([dataset.language, *dataset.changes])

    distinct = dict(
        zip(
            map(id, runs),
            distinct_labels([run.program for run in runs], [run.record.cell for run in runs]),
            strict=True,
        )
    )
    namers: tuple[Callable[[AnyRun], str], ...] = (
        lambda run: run.program,
        lambda run: " ".join(filter(None, (run.program, run.model))),
        lambda run: f"{run.program} {language(run)}",
        lambda run: " ".join(filter(None, (run.program, run.model, language(run)))),
        lambda run: distinct[id(run)],
        lambda run: run.program if programs[run.program] == 1 else run.folder.name,
    )
    for namer in namers:
        names = tuple(mark_mixed(run, namer(run)) for run in runs)
        if len(set(names)) == len(names):
            return names
    return tuple(mark_mixed(run, str(run.folder.path)) for run in runs)


def mark_mixed(run: AnyRun, name: str) -> str:
    """Return the run's name in tables and pictures, which says so if its answers are of several models."""
    return f"{name} (mixed models)" if run.mixed else name


def find_common(
    baseline: Iterable[Q],
    records: Sequence[RunRecord],
    outcomes: Sequence[Mapping[str, Answered]],
    data_agree: Callable[[str], bool],
) -> tuple[list[Q], LeftOut]:
    """Find the baseline's questions that every run has scored on the same text and gold, and count the others.

    `data_agree` is asked by the keys of questions that every run was asked for.
    """
    in_all = set.intersection(*(set(record.questions) for record in records))
    in_any = set().union(*(record.questions for record in records))
    common_items, counts = [], Counter[str]()
    for question in baseline:
        if question.key not in in_all:
            continue
        statuses = [None if (outcome := run.get(question.key)) is None else outcome.status for run in outcomes]
        if Status.FAILED in statuses:
            counts["failed"] += 1
        elif None in statuses:
            counts["not_asked_yet"] += 1
        elif not data_agree(question.key):
            counts["other_gold"] += 1
        else:
            common_items.append(question)
    return common_items, LeftOut(
        len(in_any) - len(in_all), counts["failed"], counts["not_asked_yet"], counts["other_gold"]
    )


def note_differences(records: Sequence[RunRecord], sets: Sequence[AnySet]) -> tuple[str, ...]:
    """Note how the runs differ in what they asked: languages, and versions of the data; usually empty."""
    datasets = [record.cell.dataset for record in records]
    languages = list(dict.fromkeys(dataset.language for dataset in datasets))
    notes = []
    if len(languages) > 1:
        notes.append(
            f"the runs asked in different languages ({', '.join(languages)}): the same question has the same key in "
            "each, so this also compares the languages"
        )
    versions: dict[tuple[object, ...], set[tuple[str, ...]]] = {}
    for record, data in zip(records, sets, strict=True):
        dataset = record.cell.dataset
        versions.setdefault((dataset.language, dataset.changes), set()).add((data.fingerprint, data.golds_fingerprint))
    for (language, *_), fingerprints in versions.items():
        if len(fingerprints) > 1:
            notes.append(f"the runs in {language} read {len(fingerprints)} different versions of the data (SHA-256)")
    return tuple(notes)
