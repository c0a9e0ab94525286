"""Means over exams and differences of means: bootstraps written out by hand, closed forms, simulated error rates."""

import itertools

import numpy as np
import pytest

from medexam.measures import Resampling
from medexam.questions import Gold, Question
from medexam_companions.analysis import difference_of_means, mean_value, right_by_place


def _exams(rng, count: int, size: int, mean: float, *, spread: float = 0.1, name="exam"):
    """Right or wrong of questions in exams that differ in difficulty."""
    rates = np.clip(rng.normal(mean, spread, count), 0, 1)
    values = np.concatenate([rng.random(size + place) < rate for place, rate in enumerate(rates)]).astype(float)
    return values, [f"{name} {place}" for place in range(count) for _ in range(size + place)]


def _drawn_by_hand(values: np.ndarray, clusters: list[str], rng, times: int) -> np.ndarray:
    """The mean of each resample of whole exams, one question at a time."""
    exams = [values[[cluster == name for cluster in clusters]] for name in dict.fromkeys(clusters)]
    return np.array(
        [
            np.concatenate([exams[place] for place in rng.integers(0, len(exams), len(exams))]).mean()
            for _ in range(times)
        ]
    )


def test_both_sides_are_drawn_apart_and_exams_whole() -> None:
    rng = np.random.default_rng(5)
    before, after = _exams(rng, 24, 40, 0.6), _exams(rng, 6, 40, 0.5, name="later")
    found = difference_of_means(*before, *after)
    drawn = _drawn_by_hand(*before, rng, 8000) - _drawn_by_hand(*after, rng, 8000)
    expected = np.percentile(drawn, [2.5, 97.5])
    assert found.resampled is Resampling.CLUSTERS
    assert found.value == pytest.approx(before[0].mean() - after[0].mean(), abs=1e-12)
    assert found.interval == pytest.approx(expected, abs=0.04 * (expected[1] - expected[0]))


def test_exams_with_questions_on_both_sides_are_drawn_with_both() -> None:
    rng = np.random.default_rng(11)
    values, clusters = _exams(rng, 25, 40, 0.5, spread=0.2)
    first = rng.random(len(values)) < 0.3
    names = np.array(clusters)
    found = difference_of_means(values[first], [*names[first]], values[~first], [*names[~first]])
    exams = [np.flatnonzero(names == name) for name in dict.fromkeys(clusters)]
    drawn = []
    for _ in range(8000):
        at = np.concatenate([exams[place] for place in rng.integers(0, len(exams), len(exams))])
        drawn.append(values[at][first[at]].mean() - values[at][~first[at]].mean())
    expected = np.percentile(drawn, [2.5, 97.5])
    assert found.interval == pytest.approx(expected, abs=0.04 * (expected[1] - expected[0]))


def test_few_exams_have_their_questions_drawn_as_the_closed_form_says() -> None:
    rng = np.random.default_rng(6)
    before, after = _exams(rng, 3, 400, 0.6), _exams(rng, 2, 300, 0.4, name="later")
    found = difference_of_means(*before, *after)

    def variance(values, clusters) -> float:
        parts = [values[[cluster == name for cluster in clusters]] for name in dict.fromkeys(clusters)]
        return sum(len(part) * part.var() for part in parts) / len(values) ** 2

    half = 1.959964 * (variance(*before) + variance(*after)) ** 0.5
    assert found.resampled is Resampling.WITHIN_EXAMS
    assert found.interval == pytest.approx((found.value - half, found.value + half), abs=0.08 * half)


def test_there_is_no_interval_without_enough_questions_or_width() -> None:
    few = difference_of_means(np.array([1.0, 0.0]), ["a", "a"], np.array([1.0]), ["b"])
    assert (few.value, few.interval, few.resampled) == (-0.5, None, Resampling.TOO_FEW)
    alike = difference_of_means(np.ones(6), ["a"] * 6, np.ones(5), ["b"] * 5)
    assert (alike.value, alike.interval, alike.resampled) == (0.0, None, Resampling.ALIKE)


def test_a_mean_has_the_interval_of_a_bootstrap_by_hand() -> None:
    rng = np.random.default_rng(9)
    values, clusters = _exams(rng, 15, 30, 0.4)
    found = mean_value(values - 0.25, clusters)
    expected = np.percentile(_drawn_by_hand(values - 0.25, clusters, rng, 8000), [2.5, 97.5])
    assert found.value == pytest.approx((values - 0.25).mean(), abs=1e-12)
    assert found.interval == pytest.approx(expected, abs=0.04 * (expected[1] - expected[0]))


def test_what_places_give_alone_is_the_mean_over_all_exchanges_of_golds() -> None:
    def asked(number: int, options: int) -> Question:
        return Question.of("Which?", [f"option {each}" for each in range(options)], key=str(number))

    questions = [asked(0, 4), asked(1, 4), asked(2, 4), asked(3, 4), asked(4, 5), asked(5, 5)]
    golds = dict(zip("012345", (Gold(number=number) for number in (1, 1, 3, 4, 5, 2)), strict=True))
    answers = {"0": 1, "1": 3, "2": 1, "3": None, "4": 5, "5": 5}
    found = right_by_place(questions, golds, answers)

    def right(keys: str, exchanged) -> float:
        return sum(gold.accepts(answers[key]) for key, gold in zip(keys, exchanged, strict=True))

    for keys in ("0123", "45"):
        every = [right(keys, exchanged) for exchanged in itertools.permutations([golds[key] for key in keys])]
        assert found[[int(key) for key in keys]].sum() == pytest.approx(np.mean(every), abs=1e-12)
