"""Tails and roots beside scipy's, from the smallest counts to those of whole data sets."""

import math

import numpy as np
import pytest
from scipy import special, stats

from medexam.distributions import beta_share, chi_square_tail, coin_tail, find_root, t_tail

CLOSE = 1e-9


@pytest.mark.parametrize("n", [1, 2, 7, 40, 1020, 54_000])
def test_coins(n) -> None:
    spread = math.sqrt(n) / 2
    for k in {0, n // 2, n, *(max(0, int(n / 2 - far * spread)) for far in (0.5, 2.0, 6.0))}:
        assert coin_tail(k, n) == pytest.approx(stats.binom.cdf(k, n, 0.5), rel=CLOSE)


def test_no_coin_shows_no_heads() -> None:
    assert coin_tail(0, 0) == 1.0


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 9, 50])
def test_chi_square(degrees) -> None:
    assert chi_square_tail(0.0, degrees) == 1.0
    for value in (1e-6, 0.3, 1.0, 3.84, 20.0, 300.0):
        assert chi_square_tail(value, degrees) == pytest.approx(stats.chi2.sf(value, degrees), rel=CLOSE)


@pytest.mark.parametrize("degrees", [1, 2, 7, 239, 6763, 54_000])
def test_students_t(degrees) -> None:
    for value in (-40.0, -2.0, -1e-4, 0.0, 1e-6, 0.5, 1.96, 7.0):
        assert t_tail(value, degrees) == pytest.approx(stats.t.sf(value, degrees), rel=CLOSE)


def test_beta_of_drawn_numbers() -> None:
    rng = np.random.default_rng(5)
    for a, b, x in zip(*(10 ** rng.uniform(-1, 3, (2, 300))), rng.random(300), strict=True):
        assert beta_share(a, b, x, 1 - x) == pytest.approx(special.betainc(a, b, x), rel=CLOSE, abs=1e-280)
    assert (beta_share(2, 3, 0.0, 1.0), beta_share(2, 3, 1.0, 0.0)) == (0.0, 1.0)


@pytest.mark.parametrize("sign", [1, -1])
def test_roots(sign) -> None:
    assert find_root(lambda x: sign * (x**3 - 0.2), -1.0, 1.0) == pytest.approx(0.2 ** (1 / 3), abs=1e-15)
