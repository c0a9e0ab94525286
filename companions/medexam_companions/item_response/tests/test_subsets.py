"""Subsets that stand for all questions, on drawn runs whose abilities and questions are known."""

import numpy as np

from medexam_companions.item_response import measure_subsets


def _draw(runs: int, questions: int):
    rng = np.random.default_rng(3)
    abilities, easiness = rng.normal(size=runs), rng.normal(0, 2, size=questions)
    return (rng.random((runs, questions)) < 1 / (1 + np.exp(-(abilities[:, None] + easiness)))).astype(float)


def test_chosen_subsets_err_less_than_drawn_ones_which_err_as_samples_do() -> None:
    right = _draw(12, 200)
    chosen, drawn = measure_subsets(right, 40)
    assert chosen.mean < 0.9 * drawn.mean
    assert chosen.mean < chosen.ninety
    # The mean absolute error of a sample without replacement, by the normal approximation.
    shares = right.mean(axis=1)
    expected = np.mean(np.sqrt(2 / np.pi * shares * (1 - shares) / 40 * (1 - 40 / 200)))
    assert abs(drawn.mean / expected - 1) < 0.1
    assert 0 <= drawn.false <= 1 - drawn.agree
