"""How far runs vary that were asked again, and runs that say that they are the same and whose answers differ."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from typing import Any

import numpy as np

from medexam.errors import RunFolderError
from medexam.experiments.compare.result import ComparisonScope, ComparisonSection
from medexam.experiments.store.items import load_items
from medexam.experiments.store.logs import scan_predictions
from medexam.experiments.store.run_folder import PREDICTIONS, RunFolder, RunRecord
from medexam.experiments.store.stored_run import StoredRun
from medexam.measures import Benchmark
from medexam.measures.benchmarks.registry import find_stored_benchmark
from medexam.measures.margins import Noise, measure_noise
from medexam.measures.shown import signed
from medexam.measures.words import scored_items
from medexam.predictions import Prediction, Status
from medexam.questions import AnySet
from medexam.tables import decimal, percent

ENOUGH = 0.9
"""Share of the run's questions that a repeat must have scored; others would leave too few that all have scored."""
Predictions = Mapping[str, Prediction]


def find_noise(compared: ComparisonScope) -> ComparisonSection | None:
    """Write the noise floor of each pair, and whether its difference lies under it; None if no run was asked again."""
    names, pairs = compared.names, compared.statistics.pairs
    if not any(compared.noises):
        return None
    named_runs = zip(names, compared.noises, strict=True)
    sentences = [describe_noise(name, noise) for name, noise in named_runs if noise is not None]
    for name, pair in zip(names[1:], pairs, strict=True):
        if pair.floor is not None:
            floor, difference = decimal(100 * pair.floor), pair.first.difference
            remark = f"the difference {signed(difference)} is {'not ' * (abs(difference.value) <= pair.floor)}more"
            sentences.append(f"{name} against {names[0]}: the noise floor is {floor} percentage points, and {remark}.")
    noises = zip(compared.run_keys, compared.noises, strict=True)
    document = {
        "runs": {key: noise.model_dump(mode="json") for key, noise in noises if noise is not None},
        "floors": {key: pair.floor for key, pair in zip(compared.run_keys[1:], pairs, strict=True)},
    }
    return ComparisonSection("noise", sentences, document)


def run_noise(folder: RunFolder) -> Noise | None:
    """Measure the noise of one run on all its questions; None if it was not asked again.

    Raises `DatasetError` as `load_items` does.
    """
    if not folder.find_repeats():
        return None
    data = load_items(folder)
    benchmark = find_stored_benchmark(folder.read_record().cell.dataset, in_words=data.in_words)
    return measure_repeats(benchmark, folder, data, [item.key for item in data.questions], folder.read_predictions())


def describe_noise(name: str, noise: Noise) -> str:
    """Describe how far a run varies that asked the same questions several times, in different orders."""
    lowest, highest = (percent(end(noise.scores)) for end in (min, max))
    return (
        f"{name} was asked {noise.askings} times on {noise.n} questions: {noise.changed} got another answer and "
        f"{noise.flipped} another score, {lowest} to {highest} % in all; standard deviation "
        f"{100 * noise.server:.2f} percentage points because the same requests get other answers, and "
        f"{100 * noise.questions:.2f} because other questions might be asked."
    )


def measure_repeats(
    benchmark: Benchmark[Any, Any], folder: RunFolder, data: AnySet, keys: Sequence[str], first: Predictions
) -> Noise | None:
    """Measure a run's noise on the items of these keys, from the repeats that the same model answered.

    It counts the items that all of them have scored. None without such repeats.
    """
    repeats = [repeat.read_predictions() for repeat in folder.find_repeats()]
    askings = [first, *(repeat for repeat in repeats if _models(repeat) == _models(first))]
    if len(askings) < 2:
        return None
    data = data.only(keys)
    scores = [_score(benchmark, data, asking) for asking in askings]
    places = [place for place, each in enumerate(scores) if len(each) >= ENOUGH * len(scores[0])]
    keys = [key for key in keys if all(key in scores[place] for place in places)]
    if len(places) < 2 or len(keys) < 2:
        return None
    answers = [[_answer(askings[place][key]) for key in keys] for place in places]
    return measure_noise(np.array([[scores[place][key] for key in keys] for place in places]), answers)


def _score(benchmark: Benchmark[Any, Any], data: AnySet, asking: Predictions) -> Mapping[str, float]:
    """Score the items that did not fail in the measure that runs are known by."""
    if benchmark.right_or_wrong:
        items = scored_items(data.questions, asking)
        return {item.key: float(data.golds[item.key].accepts(asking[item.key].answer)) for item in items}
    return next(iter(benchmark.item_scores(data, asking).values()), {})


def _models(predictions: Predictions) -> set[str | None]:
    """Return which models answered, by print, or by name if answers carry none."""
    return {each.answered_by or each.model for each in predictions.values() if each.status is not Status.FAILED}


def _answer(prediction: Prediction) -> object:
    """Return what is another answer if it differs: the chosen option, or the text if options are not chosen."""
    if prediction.answer is not None or prediction.status is Status.UNANSWERED:
        return prediction.answer
    return prediction.text if prediction.text is not None else prediction.reply


_ROUNDED = 0.05
"""Share of the answers in which one model may differ from itself: batches of other sizes round otherwise."""


def describe_unequal_beside(runs: Sequence[StoredRun]) -> list[str]:
    """Name such pairs of these runs, and of these with others of their digests in the folders that hold them."""
    folders = {run.folder.path: (run.folder, run.record) for run in runs}
    for run in runs:
        for path in sorted(run.folder.path.parent.glob(f"*-{run.record.spec_digest}*")):
            if path not in folders and (folder := RunFolder(path)).exists():
                with suppress(RunFolderError):
                    folders[path] = folder, folder.read_record()
    names = [run.folder.name for run in runs]
    return [line for line in describe_unequal(folders.values()) if any(name in line for name in names)]


def describe_unequal(runs: Iterable[tuple[RunFolder, RunRecord]]) -> list[str]:
    """Name each pair of equal runs whose answers differ, without a full stop; usually empty."""
    groups: dict[str, list[RunFolder]] = {}
    for folder, record in runs:
        model = record.cell.model
        is_drawn_anew = model.temperature != 0 and model.seed is None
        if record.cell.program.asks_model and not is_drawn_anew and not folder.repeat_number:
            groups.setdefault(record.spec_digest, []).append(folder)
    lines = []
    for folders in groups.values():
        answers = {folder.name: _read_answers(folder) for folder in folders} if len(folders) > 1 else {}
        for first, second in combinations(sorted(answers), 2):
            shared = answers[first].keys() & answers[second].keys()
            differing = sum(answers[first][key] != answers[second][key] for key in shared)
            servers = differing > _ROUNDED * len(shared)
            reason = "two servers may stand behind one name" if servers else "batches of other sizes may change as much"
            if differing:
                lines.append(
                    f"the runs {first} and {second} say that they are the same, and {differing:,} of {len(shared):,} "
                    f"answers differ: {reason}"
                )
    return lines


def _read_answers(folder: RunFolder) -> dict[str, tuple[Any, ...]]:
    """Map each question that has an answer, or none for good, to it."""
    answers: dict[str, tuple[Any, ...]] = {}
    for _, prediction in scan_predictions(folder.path / PREDICTIONS, None, "strict"):
        if prediction.status is Status.FAILED:
            answers.pop(prediction.question, None)
        else:
            answers[prediction.question] = prediction.answer, prediction.text, str(prediction.outputs)
    return answers
