"""The noise floor of a comparison: how far runs vary that were asked again by `medexam run --repeat`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from medexam.benchmarks import Benchmark
from medexam.benchmarks.measures import signed
from medexam.benchmarks.registry import find_stored_benchmark
from medexam.experiments.compare.section import ComparisonScope, ComparisonSection, score_runs
from medexam.experiments.store.data_changes import load_items
from medexam.experiments.store.repeats import find_repeats
from medexam.experiments.store.run_folder import RunFolder
from medexam.metrics.paired.repeats import Noise, measure_noise, noise_floor
from medexam.metrics.paired.results import Difference
from medexam.predictions import Prediction, Status
from medexam.questions import AnySet, Item
from medexam.tables import Captioned, Table, decimal, percent

ENOUGH = 0.9
"""Share of the run's questions that a repeat must have scored; others would leave too few that all have scored."""
Predictions = Mapping[str, Prediction]


@dataclass(frozen=True)
class NoiseFloor(ComparisonSection):
    """The noise of each run, and the floor of each pair."""

    runs: tuple[Noise | None, ...]
    """None: it was not asked again."""
    floors: tuple[float | None, ...]
    """Of each pair, a fraction of 1; None if neither run was asked again."""
    differences: tuple[Difference, ...]
    name = "noise"

    def tables(self, names: Sequence[str]) -> list[Captioned]:
        """Build a row for each run that was asked again."""
        return noise_tables(names, self.runs)

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write the floor of each pair that has one, and whether the difference lies under it."""
        return [
            f"{name} against {names[0]}: the noise floor is {decimal(100 * floor)} percentage points, "
            + (
                f"and the difference {signed(difference)} is not more."
                if abs(difference.value) <= floor
                else f"and the difference {signed(difference)} is more."
            )
            for name, floor, difference in zip(names[1:], self.floors, self.differences, strict=True)
            if floor is not None
        ]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build the noise of each run that was asked again, and the floor of each pair."""
        return {
            "runs": {
                key: noise.model_dump(mode="json")
                for key, noise in zip(keys, self.runs, strict=True)
                if noise is not None
            },
            "floors": dict(zip(keys[1:], self.floors, strict=True)),
        }


def find_noise(compared: ComparisonScope) -> NoiseFloor | None:
    """Measure the noise of the runs that were asked again; None if none was."""
    runs = tuple(
        _measure(compared.benchmark, folder, data, compared.items, predictions)
        for folder, data, predictions in zip(compared.folders, compared.sets, compared.predictions, strict=True)
    )
    if not any(runs):
        return None
    floors = tuple(noise_floor(runs[0], other) for other in runs[1:])
    return NoiseFloor(runs, floors, tuple(compared.statistics.known_by))


def run_noise(folder: RunFolder) -> Noise | None:
    """Measure the noise of one run on all its questions; None if it was not asked again.

    Raises `DatasetError` as `load_items` does.
    """
    if not find_repeats(folder):
        return None
    record = folder.read_record()
    data = load_items(folder)
    benchmark = find_stored_benchmark(record.cell.dataset, in_words=data.in_words)
    return _measure(benchmark, folder, data, data.questions, folder.read_predictions())


def noise_tables(names: Sequence[str], runs: Sequence[Noise | None]) -> list[Captioned]:
    """Build a row for each run that was asked again; empty if none was."""
    if not any(runs):
        return []
    rows = tuple(
        (
            name,
            str(noise.askings),
            str(noise.n),
            f"{noise.changed} ({percent(noise.changed / noise.n)} %)",
            f"{noise.flipped} ({percent(noise.flipped / noise.n)} %)",
            f"{percent(min(noise.scores))} to {percent(max(noise.scores))}",
            f"{100 * noise.server:.2f}",
            f"{100 * noise.questions:.2f}",
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
    return [(Table("Noise", headers, rows), caption)]


def _measure(
    benchmark: Benchmark[Any, Any, Any], folder: RunFolder, data: AnySet, items: Sequence[Item], first: Predictions
) -> Noise | None:
    """Measure a run's noise, from the repeats that the same model answered and the questions that all have scored."""
    if not find_repeats(folder):
        return None
    repeats = (repeat for repeat in _read(folder) if _models(repeat) == _models(first))
    full_repeats = [
        repeat for repeat in repeats if len(_scored(items, [repeat])) >= ENOUGH * len(_scored(items, [first]))
    ]
    askings = [first, *full_repeats]
    scored = _scored(items, askings)
    if len(askings) < 2 or len(scored) < 2:
        return None
    scores = score_runs(benchmark, scored, [data] * len(askings), askings)
    if len(scores[0]) < 2:
        return None
    answers = [[_answer(asking[key]) for key in scores[0]] for asking in askings]
    return measure_noise(np.array([list(run_scores.values()) for run_scores in scores]), answers)


def _scored(items: Sequence[Item], askings: Sequence[Predictions]) -> list[Item]:
    """Select the items that all askings have scored."""
    return [
        item
        for item in items
        if all(item.key in asking and asking[item.key].status is not Status.FAILED for asking in askings)
    ]


def _read(folder: RunFolder) -> list[Predictions]:
    return [repeat.read_predictions() for repeat in find_repeats(folder)]


def _models(predictions: Predictions) -> set[str | None]:
    """Return which models answered, by print, or by name if answers carry none."""
    successes = (prediction for prediction in predictions.values() if prediction.status is not Status.FAILED)
    return {prediction.answered_by or prediction.model for prediction in successes}


def _answer(prediction: Prediction) -> object:
    """Return what is another answer if it differs: the chosen option, or the text if options are not chosen."""
    if prediction.answer is not None or prediction.status is Status.UNANSWERED:
        return prediction.answer
    return prediction.text if prediction.text is not None else prediction.reply
