"""The noise floor of a comparison: how far runs vary that were asked again by `medexam run --repeat`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from medexam.benchmarks import Benchmark, find_benchmark
from medexam.benchmarks.paired import signed
from medexam.experiments.compare.section import Compared, Section, score_runs
from medexam.experiments.store.data_changes import load_stored
from medexam.experiments.store.repeats import find_repeats
from medexam.experiments.store.run_folder import RunFolder
from medexam.formatting import decimal, percent
from medexam.items import AnySet, Item
from medexam.metrics.paired.repeats import Noise, measure_noise, noise_floor
from medexam.metrics.paired.results import Difference
from medexam.predictions import Prediction, Status
from medexam.tables import Captioned, Table

ENOUGH = 0.9
"""Share of the run's questions that a repeat must have scored; others would leave too few that all have scored."""
Predictions = Mapping[str, Prediction]


@dataclass(frozen=True)
class NoiseFloor(Section):
    """The noise of each run, and the floor of each pair."""

    runs: tuple[Noise | None, ...]
    """None: it was not asked again."""
    floors: tuple[float | None, ...]
    """Of each pair, a fraction of 1; None if neither run was asked again."""
    differences: tuple[Difference, ...]
    name = "noise"

    def tables(self, names: Sequence[str]) -> list[Captioned]:
        """A row a run that was asked again."""
        return noise_tables(names, self.runs)

    def sentences(self, names: Sequence[str]) -> list[str]:
        """The floor of each pair that has one, and whether the difference lies under it."""
        return [
            f"{name} against {names[0]}: the noise floor is {decimal(100 * floor)} percentage points, "
            + (
                f"and the difference {signed(difference, 100)} is not more."
                if abs(difference.value) <= floor
                else f"and the difference {signed(difference, 100)} is more."
            )
            for name, floor, difference in zip(names[1:], self.floors, self.differences, strict=True)
            if floor is not None
        ]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """The noise of each run that was asked again, and the floor of each pair."""
        return {
            "runs": {
                key: noise.model_dump(mode="json")
                for key, noise in zip(keys, self.runs, strict=True)
                if noise is not None
            },
            "floors": dict(zip(keys[1:], self.floors, strict=True)),
        }


def find_noise(compared: Compared) -> NoiseFloor | None:
    """The noise of the runs that were asked again; None if none was."""
    runs = tuple(
        _measure(compared.benchmark, folder, data, compared.items, predictions)
        for folder, data, predictions in zip(compared.folders, compared.sets, compared.predictions, strict=True)
    )
    if not any(runs):
        return None
    floors = tuple(noise_floor(runs[0], other) for other in runs[1:])
    return NoiseFloor(runs, floors, tuple(compared.found.known_by))


def run_noise(folder: RunFolder) -> Noise | None:
    """The noise of one run on all its questions; None if it was not asked again.

    Raises `DatasetError` as `load_stored` does.
    """
    if not find_repeats(folder):
        return None
    record = folder.read_record()
    data = load_stored(record)
    benchmark = find_benchmark(record.cell.dataset)
    return _measure(benchmark, folder, data, data.questions, folder.read_predictions())


def noise_tables(names: Sequence[str], runs: Sequence[Noise | None]) -> list[Captioned]:
    """A row a run that was asked again; empty if none was."""
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
        "Runs that were asked the same questions several times, in other orders. Other answer, other score: "
        "questions on which the askings do not agree. Score: of the askings, percent. SD: standard deviation of "
        "the score, percentage points: server, because the same requests get other answers; questions, because "
        "other questions might be asked."
    )
    return [(Table("Noise", headers, rows), caption)]


def _measure(
    benchmark: Benchmark[Any, Any, Any], folder: RunFolder, data: AnySet, items: Sequence[Item], first: Predictions
) -> Noise | None:
    """The noise of a run, from the repeats that the same model answered and the questions that all have scored."""
    if not find_repeats(folder):
        return None
    repeats = (each for each in _read(folder) if _models(each) == _models(first))
    begun = [each for each in repeats if len(_scored(items, [each])) >= ENOUGH * len(_scored(items, [first]))]
    askings = [first, *begun]
    scored = _scored(items, askings)
    if len(askings) < 2 or len(scored) < 2:
        return None
    scores = score_runs(benchmark, scored, [data] * len(askings), askings)
    if len(scores[0]) < 2:
        return None
    answers = [[_answer(each[key]) for key in scores[0]] for each in askings]
    return measure_noise(np.array([list(each.values()) for each in scores]), answers)


def _scored(items: Sequence[Item], askings: Sequence[Predictions]) -> list[Item]:
    """The items that all askings have scored."""
    return [
        one for one in items if all(one.key in each and each[one.key].status is not Status.FAILED for each in askings)
    ]


def _read(folder: RunFolder) -> list[Predictions]:
    return [repeat.read_predictions() for repeat in find_repeats(folder)]


def _models(predictions: Predictions) -> set[str | None]:
    """Which models answered, by print, or by name if answers carry none."""
    answered = (one for one in predictions.values() if one.status is not Status.FAILED)
    return {one.answered_by or one.model for one in answered}


def _answer(prediction: Prediction) -> object:
    """What is another answer if it differs: the chosen option, or the text if options are not chosen."""
    if prediction.answer is not None or prediction.status is Status.UNANSWERED:
        return prediction.answer
    return prediction.text if prediction.text is not None else prediction.reply
