"""The noise of repeats against statsmodels' analysis of variance, and against simulated servers."""

import numpy as np
import pandas as pd
import pytest
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from medexam.measures import measure_noise, noise_floor


def draw(chances: np.ndarray, askings: int, rng: np.random.Generator) -> np.ndarray:
    return (rng.random((askings, len(chances))) < chances).astype(float)


def test_the_components_are_those_of_statsmodels() -> None:
    rng = np.random.default_rng(5)
    scores = draw(rng.beta(0.3, 0.5, 40), 3, rng)
    found = measure_noise(scores, scores.tolist())
    table = pd.DataFrame({"score": scores.T.ravel(), "question": np.repeat(np.arange(40), 3).astype(str)})
    between, within = anova_lm(ols("score ~ question", table).fit())["mean_sq"]
    assert found.server == pytest.approx(np.sqrt(within / 40), abs=1e-9)
    assert found.questions == pytest.approx(np.sqrt((between - within) / 3 / 40), abs=1e-9)
    assert found.scores == pytest.approx(tuple(scores.mean(axis=1)))
    assert (
        noise_floor(found, None) == noise_floor(found, found) == pytest.approx(1.96 * 2**0.5 * found.server, rel=1e-3)
    )
    assert found.flipped == found.changed == int((scores.min(axis=0) < scores.max(axis=0)).sum())


def test_a_server_that_answers_alike_has_no_noise() -> None:
    scores = np.tile([1.0, 0.0, 1.0, 1.0], (3, 1))
    found = measure_noise(scores, [["a", "b", "c", "d"], ["a", "x", "c", "d"], ["a", "b", "c", "d"]])
    assert (found.server, found.flipped, found.changed, found.askings, found.n) == (0.0, 0, 1, 3, 4)
    assert found.questions == pytest.approx(np.std([1, 0, 1, 1], ddof=1) / 2)
    assert noise_floor(found, found) == 0.0
    assert noise_floor(None, None) is None
