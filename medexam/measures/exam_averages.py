"""Averages over exams, as the HEAD-QA v1 paper prints them: measures of every run on HEAD-QA.

Vilares and Gómez-Rodríguez (2019), "HEAD-QA: A Healthcare Dataset for Complex Reasoning". Its tables round an exam's
accuracy to three decimals, average over the exams (of a discipline, or all of them) and round again. Every exam weighs
the same, however many questions it has, which is why these differ from the pooled figures beside them.

The fractions are exact here, and a tie goes away from zero: 0.6175 is 0.618 and 0.4595 is 0.46. The authors' script
(`eval.py` and `utils.py` of github.com/aghie/head-qa) rounds binary numbers, whose ties go either way. So four cells of
the controls in its table 7 (test split) are 0.1 lower in the paper: `longest` in PIR and QIR, `blind` 3 in EIR and PIR.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor
from types import MappingProxyType

LEGEND = " v1: rounded and averaged over exams as the HEAD-QA v1 paper does."
"""How to read the columns of these figures."""
AVERAGES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "headqa_v1_accuracy": ("HEAD-QA v1 accuracy, %", "v1 accuracy"),
        "headqa_v1_points": ("HEAD-QA v1 points", "v1 points"),
    }
)
"""Name of the measure -> what stands beside its value, and above a column."""
RightOfN = Sequence[tuple[int, int]]
"""How many questions of each exam are right, and how many are scored: one at least."""


def headqa_v1_accuracy(exams: RightOfN) -> float | None:
    """Average the accuracy of the exams in percent, with one decimal; None without an exam."""
    if not exams:
        return None
    rounded = [_round(Fraction(right, n), 3) for right, n in exams]
    return float(100 * _round(sum(rounded, Fraction()) / len(exams), 3))


def headqa_v1_points(points: Sequence[int]) -> float | None:
    """Average the exams' `3 right - wrong`, with one decimal; None without an exam."""
    return float(_round(Fraction(sum(points), len(points)), 1)) if points else None


def _round(value: Fraction, decimals: int) -> Fraction:
    """Round `value` to that many decimals; a tie goes away from zero."""
    scale = 10**decimals
    rounded = Fraction(floor(abs(value) * scale + Fraction(1, 2)), scale)
    return rounded if value >= 0 else -rounded
