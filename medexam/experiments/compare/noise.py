"""The noise floor of a comparison: how far runs vary that were asked again by `medexam run --repeat`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from medexam.experiments.compare.section import ComparisonScope, ComparisonSection
from medexam.experiments.store.data_changes import load_items
from medexam.experiments.store.repeats import find_repeats
from medexam.experiments.store.run_folder import RunFolder
from medexam.measures import Benchmark
from medexam.measures.benchmarks.measures import signed
from medexam.measures.benchmarks.registry import find_stored_benchmark
from medexam.measures.paired.repeats import Noise, measure_noise
from medexam.predictions import Prediction, Status
from medexam.questions import AnySet, Item
from medexam.tables import Table, decimal, percent

ENOUGH = 0.9
"""Share of the run's questions that a repeat must have scored; others would leave too few that all have scored."""
Predictions = Mapping[str, Prediction]


def find_noise(compared: ComparisonScope) -> ComparisonSection | None:
    """Write the noise floor of each pair, and whether its difference lies under it; None if no run was asked again."""
    names, pairs = compared.names, compared.statistics.pairs
    if not any(compared.noises):
        return None
    sentences = []
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
    return ComparisonSection("noise", sentences, document, noise_tables(names, compared.noises))


def run_noise(folder: RunFolder) -> Noise | None:
    """Measure the noise of one run on all its questions; None if it was not asked again.

    Raises `DatasetError` as `load_items` does.
    """
    if not find_repeats(folder):
        return None
    data = load_items(folder)
    benchmark = find_stored_benchmark(folder.read_record().cell.dataset, in_words=data.in_words)
    return measure_repeats(benchmark, folder, data, data.questions, folder.read_predictions())


def noise_tables(names: Sequence[str], runs: Sequence[Noise | None]) -> list[Table]:
    """Build a row for each run that was asked again; empty if none was."""
    rows = tuple(
        (
            *(name, str(noise.askings), str(noise.n)),
            *(f"{count} ({percent(count / noise.n)} %)" for count in (noise.changed, noise.flipped)),
            f"{percent(min(noise.scores))} to {percent(max(noise.scores))}",
            *(f"{100 * deviation:.2f}" for deviation in (noise.server, noise.questions)),
        )
        for name, noise in zip(names, runs, strict=True)
        if noise is not None
    )
    headers = ("Run", "Asked", "n", "Other answer", "Other score", "Score", "SD server", "SD questions")
    caption = (
        "Runs that asked the same questions several times, in different orders. Other answer, other score: questions "
        "on which the repeats differ. Score: of the repeats, percent. SD: standard deviation of the score, "
        "percentage points: server, because the same requests get other answers; questions, because other questions "
        "might be asked."
    )
    return [Table("Noise", headers, rows, caption=caption)] if rows else []


def measure_repeats(
    benchmark: Benchmark[Any, Any], folder: RunFolder, data: AnySet, items: Sequence[Item], first: Predictions
) -> Noise | None:
    """Measure a run's noise, from the repeats that the same model answered and the questions that all have scored.

    None without such repeats.
    """
    repeats = [repeat.read_predictions() for repeat in find_repeats(folder)]
    if not repeats:
        return None
    most = ENOUGH * len(_scored(items, [first]))
    same = (repeat for repeat in repeats if _models(repeat) == _models(first))
    askings = [first, *(repeat for repeat in same if len(_scored(items, [repeat])) >= most)]
    keys = _scored(items, askings)
    if len(askings) < 2 or len(keys) < 2:
        return None
    scores = [_score(benchmark, data, keys, asking) for asking in askings]
    keys = [key for key in keys if all(key in each for each in scores)]
    if len(keys) < 2:
        return None
    answers = [[_answer(asking[key]) for key in keys] for asking in askings]
    return measure_noise(np.array([[each[key] for key in keys] for each in scores]), answers)


def _score(
    benchmark: Benchmark[Any, Any], data: AnySet, keys: Sequence[str], asking: Predictions
) -> Mapping[str, float]:
    """Score these items in the measure that runs are known by."""
    if benchmark.right_or_wrong:
        return {key: float(benchmark.is_right(asking[key], data.golds[key])) for key in keys}
    return next(iter(benchmark.item_scores(data.only(keys), asking).values()), {})


def _scored(items: Sequence[Item], askings: Sequence[Predictions]) -> list[str]:
    """Select the items that all askings have scored."""
    return [
        item.key
        for item in items
        if all(item.key in asking and asking[item.key].status is not Status.FAILED for asking in askings)
    ]


def _models(predictions: Predictions) -> set[str | None]:
    """Return which models answered, by print, or by name if answers carry none."""
    successes = (prediction for prediction in predictions.values() if prediction.status is not Status.FAILED)
    return {prediction.answered_by or prediction.model for prediction in successes}


def _answer(prediction: Prediction) -> object:
    """Return what is another answer if it differs: the chosen option, or the text if options are not chosen."""
    if prediction.answer is not None or prediction.status is Status.UNANSWERED:
        return prediction.answer
    return prediction.text if prediction.text is not None else prediction.reply
