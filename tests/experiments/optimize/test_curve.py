"""The curve of an optimization."""

import pytest

from medexam.experiments.optimize.trials import Trial

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

from medexam.experiments.optimize.curve import INCHES, draw_curve
from medexam.experiments.report.plots.pictures import render_png


def _trial(number: int, right: int, name: str, score: float | None = None) -> Trial:
    score = right / 50 if score is None else score
    return Trial(number, name, f"d{number}", 3, 50, right, 0, score, 50, 5000)


TRIALS = [_trial(0, 15, "as written"), _trial(1, 14, "labeled"), _trial(2, 20, "random 0"), _trial(3, 21, "random 1")]


def test_it_names_what_improved() -> None:
    axes = Figure(figsize=(9, 5), layout="constrained").add_subplot()
    draw_curve(axes, TRIALS, "accuracy")
    assert [text.get_text() for text in axes.texts] == ["0: as written", "2: random 0", "3: random 1"]
    lines = {line.get_label(): line for line in axes.lines}
    assert lines["score of a trial (4)"].get_ydata().tolist() == pytest.approx([30, 28, 40, 42])
    assert list(lines["best so far"].get_ydata()) == pytest.approx([30, 30, 40, 42])
    assert axes.get_ylabel() == "accuracy % of n = 50"


def test_log_probabilities_are_nats() -> None:
    axes = Figure(figsize=(9, 5), layout="constrained").add_subplot()
    draw_curve(axes, [_trial(0, 10, "as written", -1.5), _trial(1, 9, "bootstrap", -1.25)], "log_probability")
    assert [text.get_text() for text in axes.texts] == ["0: as written", "1: bootstrap"]
    assert axes.get_ylabel() == "log p, nats of n = 50"


def test_one_trial_is_a_picture() -> None:
    png = render_png(lambda axes: draw_curve(axes, TRIALS[:1], "accuracy"), INCHES)
    assert png.startswith(b"\x89PNG")
