"""`medexam compare`: stored runs against a baseline, on the questions that all of them have scored.

It reads the runs' predictions and the answer keys of their data sets; nothing is asked and nothing is written.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from itertools import chain, combinations
from pathlib import Path
from typing import Any, get_args

import numpy as np

from medexam.errors import DatasetError, RunFolderError, SpecError
from medexam.experiments.compare.noise import describe_unequal, find_noise, measure_repeats
from medexam.experiments.compare.result import (
    DROPPED,
    Comparison,
    ComparisonScope,
    Finder,
    describe_all,
    describe_dropped,
    name_documents,
)
from medexam.experiments.store.derived_files import read_outcomes, read_own_scores, with_own
from medexam.experiments.store.environment import are_mixed, count_answerers, describe_answerers
from medexam.experiments.store.items import load_items
from medexam.experiments.store.run_folder import RunFolder, RunRecord, find_runs, pending, run_paths
from medexam.experiments.store.stored_run import (
    StoredRun,
    stored_metrics,
    stored_run,
    tell_models_apart,
)
from medexam.kept import keep
from medexam.measures import Benchmark
from medexam.measures.benchmarks.registry import find_stored_benchmark
from medexam.measures.comparing import RunAnswers, pair_runs
from medexam.measures.margins import noise_floor
from medexam.measures.paired import Measured, Sheet, compare_all
from medexam.measures.results import ItemScores, Unit
from medexam.model_calls import Reading
from medexam.predictions import Status
from medexam.predictions.prediction import Answered, as_read
from medexam.process import gc_seldom
from medexam.questions import AnySet, Item
from medexam.specs.identity import distinct_labels
from medexam.tables import NONE


def find_compared(runs: Sequence[Path], runs_dir: Path, baseline: Path | None = None) -> list[RunFolder]:
    """Find the run folders that are meant, as `find_runs` finds them, two or more; the baseline first.

    Unless it is named, that is the first run, but of a folder of runs the first that does not mix models.

    Raises `SpecError` where there is only one, and `RunFolderError` for a path without a run.
    """
    paths = run_paths(runs, runs_dir)
    for path in filter(Path.is_file, paths):
        raise SpecError(f"{path} is a file: `medexam import {path} --dataset NAME` makes runs of a file of results")
    if baseline is not None:
        paths = [*run_paths([baseline], runs_dir), *paths]
    folders = find_runs(paths, runs_dir)
    if len(folders) < 2:
        raise SpecError(
            f"{folders[0].path} is the only run: give the baseline and one run or more to compare with it, or a folder "
            "that holds them; `medexam report` shows a single run"
        )
    if not RunFolder(paths[0]).exists():
        unmixed = (folder for folder in folders if not are_mixed(count_answerers(folder, folder.read_record())))
        first_run = next(unmixed, folders[0])
        folders.sort(key=lambda folder: folder is not first_run)
    return folders


# A page compares the same runs in its table and in its plot.
@keep(worth=lambda _: True)
@gc_seldom()
def compare_runs(
    folders: tuple[RunFolder, ...], finders: tuple[Finder, ...] = (), reading: Reading | None = None
) -> Comparison:
    """Compare the runs in `folders`, two or more, with the first one; `finders` find further parts of the comparison.

    `reading` is how the replies of all are read; None: each run's as it is scored.

    Raises `DatasetError` if they asked different data sets, if no question or measure is scored by all of them, or if a
    data set cannot be read or lacks a question that was asked; `EngineError` if what scoring needs is not installed.
    """
    scope = find_scope(folders, reading)
    benchmark, paired = scope.benchmark, scope.statistics
    scores = list(map(read_own_scores, folders))
    metrics = [
        with_own(run_metrics, benchmark, replace(items, questions=scope.items), answers, own)
        for run_metrics, items, answers, own in zip(paired.metrics, scope.sets, scope.predictions, scores, strict=True)
    ]
    outcomes = [answers.outcomes for answers in scope.predictions]
    runs, model_notes = tell_models_apart([*map(stored_run, folders, metrics)])
    scope = replace(scope, names=run_names(runs), run_keys=name_documents(runs))
    sections = [find(scope) for find in (find_noise, *finders)]
    differences = (*note_differences(scope.records, scope.sets), *mixed_notes(runs))
    unequal = describe_unequal((run.folder, run.record) for run in runs)
    return Comparison(
        **{field.name: getattr(scope, field.name) for field in fields(scope)},
        runs=tuple(runs),
        pending=tuple(
            len(pending(record.questions, answers)) for record, answers in zip(scope.records, outcomes, strict=True)
        ),
        notes=(*differences, *unequal, *model_notes),
        own=_compare_own(benchmark, scope.items, scores),
        sections=tuple(section for section in sections if section is not None),
    )


@keep(worth=lambda _: True)
@gc_seldom()
def find_scope(folders: tuple[RunFolder, ...], reading: Reading | None = None) -> ComparisonScope:
    """Find which items the runs share, and their paired statistics; arguments and errors are those of `compare_runs`.

    Where readings of the replies differ, the pairs hold what each of them finds.
    """
    records = [folder.read_record() for folder in folders]
    if len(run_by_dataset := {record.cell.dataset.name: record.run_id for record in reversed(records)}) > 1:
        names = " and ".join(f"{dataset} ({run_id})" for dataset, run_id in reversed(run_by_dataset.items()))
        raise DatasetError(
            f"the runs asked different data sets: {names}; compare runs of one data set, or run one spec again with "
            "the other's --set dataset.name"
        )
    sets = [load_items(folder) for folder in folders]
    benchmark = find_stored_benchmark(records[0].cell.dataset, in_words=sets[0].in_words)
    predictions = [_read_answers(folder, reading) for folder in folders]
    keys, exclusions = _find_common(benchmark, records, sets, [answers.outcomes for answers in predictions])
    if not keys:
        raise DatasetError(
            f"there is nothing to compare: no question is scored by {describe_all(folders)} "
            f"({describe_dropped(exclusions)}); run their specs on the same questions, finish them with "
            "`medexam run --resume RUN`, or name other runs"
        )
    compared = sets[0] if len(keys) == len(sets[0].questions) else sets[0].only(keys)
    paired, views = pair_runs(benchmark, compared, sets, predictions), {}
    if any(metrics.readings for metrics in paired.metrics):
        for way in get_args(Reading):
            answers = [_read_answers(folder, way) for folder in folders]
            views[f"read {way}ly"] = pair_runs(benchmark, compared, sets, answers, paired.metrics)
    noises = [
        measure_repeats(benchmark, folder, data, keys, answers)
        for folder, data, answers in zip(folders, sets, predictions, strict=True)
    ]
    return ComparisonScope(
        benchmark=benchmark,
        statistics=paired.with_views(views, [noise_floor(noises[0], other) for other in noises[1:]]),
        folders=folders,
        records=records,
        sets=sets,
        items=compared.questions,
        predictions=predictions,
        exclusions=exclusions,
        noises=tuple(noises),
    )


def _find_changed(records: Sequence[RunRecord], sets: Sequence[AnySet]) -> frozenset[str]:
    """Find the questions whose texts differ between runs of one language and alteration."""
    peers: dict[object, dict[str, AnySet]] = {}
    for record, items in zip(records, sets, strict=True):
        dataset = record.cell.dataset
        form = dataset.language, dataset.changes, dataset.as_published
        peers.setdefault(form, {}).setdefault(items.fingerprint, items)
    texts_by_key: dict[tuple[object, str], set[object]] = {}
    for peer, items_by_fingerprint in peers.items():
        for items in items_by_fingerprint.values() if len(items_by_fingerprint) > 1 else ():
            for item in items.questions:
                texts_by_key.setdefault((peer, item.key), set()).add(getattr(item, "printed", item))
    return frozenset(key for (_, key), texts in texts_by_key.items() if len(texts) > 1)


@keep(worth=lambda _: True)
def _read_answers(folder: RunFolder, reading: Reading | None) -> RunAnswers:
    """Read what a run answered; fresh derived files hold how each question came out, and the scores."""
    if reading is not None:
        stored = _read_answers(folder, None)
        return RunAnswers(lambda: {key: as_read(prediction, reading) for key, prediction in stored.items()})
    outcomes = read_outcomes(folder) if folder.is_scored else None
    if not outcomes:
        return RunAnswers(folder.read_predictions)
    metrics = None
    with suppress(RunFolderError):
        metrics = stored_metrics(folder)
    return RunAnswers(folder.read_predictions, outcomes, folder.read_record().questions, metrics)


def _compare_own(benchmark: Benchmark[Any, Any], items: Sequence[Item], scores: Sequence[ItemScores]) -> list[Measured]:
    """Compare each pair by the metrics that all runs were scored by, on `items`; empty if there is none."""
    names = [name for name in scores[0] if all(name in own for own in scores)]
    if not names:
        return []
    rows = {name: np.array([[own[name].get(item.key, np.nan) for item in items] for own in scores]) for name in names}
    units = dict.fromkeys(names, Unit.OWN)
    keys, clusters = [item.key for item in items], [benchmark.cluster(item) for item in items]
    # If all are of one cluster, it tells nothing.
    sheet = Sheet(keys, clusters if len(set(clusters)) > 1 else keys, rows, units=units)
    pairs = compare_all(sheet)
    return pairs if any(pairs) else []


def label_rows(runs: Sequence[StoredRun]) -> dict[str, list[str]]:
    """Map headers to what each run is called in that column: all in which the runs differ, so that no two are alike.

    The program, model and data set, or its language alone; else settings that differ, the experiment, and the folder.
    """
    rows = {"Program": [run.program for run in runs]}
    if len({run.model for run in runs} - {None}) > 1:
        rows["Model"] = [run.model or NONE for run in runs]
    datasets = [run.record.cell.dataset for run in runs]
    if len({dataset.label for dataset in datasets}) > 1:
        is_language = len({(dataset.called, dataset.changes) for dataset in datasets}) == 1
        labels = [dataset.language if is_language else dataset.label for dataset in datasets]
        rows["Language" if is_language else "Data set"] = labels
    further: list[tuple[str, Callable[[], list[str]]]] = [
        ("Program", lambda: distinct_labels(rows["Program"], [run.record.cell for run in runs])),
        ("Experiment", lambda: [run.record.cell.name for run in runs]),
        ("Run", lambda: [run.folder.name for run in runs]),
        ("Run", lambda: [str(run.folder.path) for run in runs]),
    ]
    for header, find_cells in further:
        if len(set(zip(*rows.values(), strict=True))) < len(runs) and len(set(cells := find_cells())) > 1:
            rows[header] = cells
    return rows


def run_names(runs: Sequence[StoredRun]) -> tuple[str, ...]:
    """Name each run by the cells of its row in `label_rows`, as short as tells all apart.

    Its program, with the model, the experiment, the language or the data set where they are needed; else its folder.
    Behind it stands whether it mixes models.
    """
    rows = label_rows(runs)
    programs, folders = rows.pop("Program"), rows.pop("Run", [run.folder.name for run in runs])
    for more in chain.from_iterable(combinations(rows.values(), size) for size in range(len(rows) + 1)):
        parts = zip(programs, *more, strict=True)
        names = [" ".join(part for part in each if part != NONE) for each in parts]
        if len(set(names)) == len(names):
            return tuple(map(mark_mixed, runs, names))
    times = Counter(programs)
    names = [program if times[program] == 1 else folder for program, folder in zip(programs, folders, strict=True)]
    return tuple(map(mark_mixed, runs, names))


def mark_mixed(run: StoredRun, name: str) -> str:
    """Return the run's name in tables and pictures, which says so if its answers are of several models."""
    return f"{name} (mixed models)" if run.mixed else name


def mixed_notes(runs: Sequence[StoredRun]) -> list[str]:
    """List what to say of each run whose answers are of several models, without a full stop; usually empty."""
    return [
        f"the run {run.record.run_id} mixes models and is not ranked: {describe_answerers(run.answerers)}"
        for run in runs
        if run.mixed
    ]


def _find_common(
    benchmark: Benchmark[Any, Any],
    records: Sequence[RunRecord],
    sets: Sequence[AnySet],
    outcomes: Sequence[Mapping[str, Answered]],
) -> tuple[list[str], dict[str, int]]:
    """Find the keys of the questions that every run has scored on the same text and gold, and count the others."""
    asked, changed_keys = [set(record.questions) for record in records], _find_changed(records, sets)
    in_all, common, exclusions = set.intersection(*asked), list[str](), dict.fromkeys(DROPPED, 0)
    exclusions["not_in_every_run"] = len(set.union(*asked)) - len(in_all)
    # A question may have lost its answer since.
    for key in filter(in_all.intersection(sets[0].golds).__contains__, records[0].questions):
        statuses = [getattr(answers.get(key), "status", None) for answers in outcomes]
        if Status.FAILED in statuses:
            exclusions["failed"] += 1
        elif None in statuses:
            exclusions["not_asked_yet"] += 1
        elif key in changed_keys or not benchmark.golds_agree(key, sets):
            exclusions["other_gold"] += 1
        else:
            common.append(key)
    return common, exclusions


def note_differences(records: Sequence[RunRecord], sets: Sequence[AnySet]) -> tuple[str, ...]:
    """Note how the runs differ in what they asked: languages, and versions of the data; usually empty."""
    languages = ", ".join(dict.fromkeys(record.cell.dataset.language for record in records))
    notes = []
    if "," in languages:
        notes.append(
            f"the runs asked in different languages ({languages}): the same question has the same key in each, so this "
            "also compares the languages"
        )
    versions: dict[str, set[object]] = {}
    for record, data in zip(records, sets, strict=True):
        form = " ".join([record.cell.dataset.language, *record.cell.dataset.changes])
        versions.setdefault(form, set()).add((data.fingerprint, data.golds_fingerprint))
    notes += [
        f"the runs in {form} read {len(fingerprints)} different versions of the data (SHA-256)"
        for form, fingerprints in versions.items()
        if len(fingerprints) > 1
    ]
    return tuple(notes)
