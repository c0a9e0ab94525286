"""`medexam compare --equivalent-within` and the margin of its gate: one-sided tests beside the paired interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from medexam.benchmarks.measures import signed
from medexam.benchmarks.paired import Pair
from medexam.errors import SpecError
from medexam.experiments.compare.section import ComparisonScope, ComparisonSection, Finder
from medexam.metrics.paired.margins import MarginTest, Told, cluster_test, judge_margin, score_test
from medexam.metrics.paired.results import Difference, Flips
from medexam.metrics.paired.significance import adjust_holm
from medexam.tables import NONE, Table, decimal, equals, p_value, with_interval

_PHRASES: dict[Told, str] = {
    "equivalent": "is equivalent to",
    "not equivalent": "is not equivalent to",
    "not shown": "is not shown to be equivalent to",
}


@dataclass(frozen=True)
class Margins(ComparisonSection):
    """Each run beside the baseline, and a margin; element `i` is run `i + 1`."""

    margin: float
    """A fraction of 1, over 0."""
    pairs: tuple[Pair, ...]
    tests: tuple[tuple[MarginTest, ...], ...]
    """Of each pair as it is scored, then of each other view of its replies."""

    @property
    def points(self) -> str:
        """`2.0 percentage points`."""
        return f"{decimal(100 * self.margin)} percentage points"

    @property
    def differences(self) -> list[Difference]:
        """The difference of each pair."""
        return [pair.first.difference for pair in self.pairs]


@dataclass(frozen=True)
class Equivalence(Margins):
    """Whether runs differ from the baseline by less than the margin, either way, however the replies are read."""

    name = "equivalence"

    @property
    def p_adjusted(self) -> list[float]:
        """The p-value of equivalence of each pair, the largest of its views, after Holm over all pairs."""
        return adjust_holm([max(test.p for test in tests) for tests in self.tests])

    @property
    def verdicts(self) -> list[Told]:
        """What may be said of each pair."""
        found: list[Told] = []
        for pair, p in zip(self.pairs, self.p_adjusted, strict=True):
            views = (pair.first, *pair.views.values())
            told = {judge_margin(each.difference, self.margin, p) for each in views}
            found.append(told.pop() if len(told) == 1 else "not shown")
        return found

    def tables(self, names: Sequence[str]) -> list[Table]:
        """Build a row for each pair."""
        rows = tuple(
            (
                name,
                signed(difference),
                NONE if test.interval is None else with_interval("", test.interval).strip(),
                *map(p_value, (test.p_worse, test.p_better, p)),
            )
            for name, difference, (test, *_), p in zip(
                names[1:], self.differences, self.tests, self.p_adjusted, strict=True
            )
        )
        headers = ("Run", "Difference", "Score interval", "p not worse", "p not better", "p Holm")
        methods = ", ".join(dict.fromkeys(tests[0].method for tests in self.tests))
        caption = (
            f"The run minus the baseline, percentage points. p not worse, p not better: one-sided ({methods}). p Holm: "
            "the larger of both however the replies are read, adjusted for all rows. Equivalent only if p Holm < 0.025 "
            "and the 95 % interval of the difference lies within the margin."
        )
        return [Table(f"Equivalent to {names[0]} within {self.points}", headers, rows, caption=caption)]

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write a sentence for each pair."""
        found = zip(names[1:], self.verdicts, self.differences, self.p_adjusted, strict=True)
        return [
            f"{name} {_PHRASES[verdict]} {names[0]} within {self.points}: {signed(difference)}, p {equals(p)} of "
            f"two one-sided tests{' after Holm' if len(names) > 2 else ''}."
            for name, verdict, difference, p in found
        ]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build the margin, and the tests of each pair by run; differences are fractions of 1."""
        pairs = zip(keys[1:], self.tests, self.p_adjusted, self.verdicts, strict=True)
        return {
            "margin": self.margin,
            "pairs": {
                key: {**test.model_dump(mode="json"), "p": test.p, "p_adjusted": p, "verdict": verdict}
                for key, (test, *_), p, verdict in pairs
            },
        }


@dataclass(frozen=True)
class NonInferiority(Margins):
    """Whether runs lose less than the margin as they are scored: the gate of continuous integration.

    A run passes if its paired 95 % interval lies above minus the margin: a test of non-inferiority at 2.5 % (Piaggio et
    al. 2012, the extension of CONSORT). A run with too few questions for that fails, because nothing shows that it is
    good. The p-value beside it takes questions as independent.
    """

    name = "non_inferiority"

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write a sentence for each pair."""
        return [
            f"{name} {self._phrase(difference, names[0])}: {signed(difference)}, one-sided p {equals(test.p_worse)} "
            f"({test.method})."
            for name, difference, (test, *_) in zip(names[1:], self.differences, self.tests, strict=True)
        ]

    @property
    def passed(self) -> list[bool]:
        """Whether the interval of each pair shows that it loses less."""
        return [each.bounds is not None and each.bounds[0] > -self.margin for each in self.differences]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build the margin, and of each run whether it passes, with the test."""
        return {
            "margin": self.margin,
            "pairs": {
                key: {"passed": passed, **test.model_dump(mode="json")}
                for key, passed, (test, *_) in zip(keys[1:], self.passed, self.tests, strict=True)
            },
        }

    def _phrase(self, difference: Difference, baseline: str) -> str:
        low, high = difference.bounds or (-1.0, 1.0)
        if low > -self.margin:
            return f"is not worse than {baseline} by {self.points}"
        if high < -self.margin:
            return f"is worse than {baseline} by more than {self.points}"
        return f"may be worse than {baseline} by {self.points} or more"


M = TypeVar("M", bound=Margins)


def find_margins(kind: type[M], points: float, compared: ComparisonScope) -> M:
    """Test every pair against a margin of that many percentage points."""
    margin, statistics = points / 100, compared.statistics

    def score(flips: Flips) -> MarginTest:
        return score_test(flips.right_to_wrong, flips.wrong_to_right, flips.n, margin)

    if compared.benchmark.right_or_wrong:
        tests = [
            tuple(score(each.flips) for each in (pair.first, *pair.views.values()) if each.flips)
            for pair in statistics.pairs
        ]
    else:
        rows, clusters = compared.matrix, np.array(compared.clusters)
        changes = [[(run - rows[0])[clusters == each].tolist() for each in dict.fromkeys(clusters)] for run in rows[1:]]
        tests = [(cluster_test(each, margin),) for each in changes]
    return kind(margin, statistics.pairs, tuple(tests))


def parse_gate(text: str) -> Finder:
    """Parse `worse:1.0`, percentage points that a run may lose; raises `SpecError` for anything else."""
    rule, _, margin = text.partition(":")
    try:
        points = float(margin)
    except ValueError:
        points = 0.0
    if rule != "worse" or not 0 < points < 100:
        raise SpecError(f"--fail-if {text}: give worse:POINTS, such as worse:1.0, in percentage points over 0")
    return partial(find_margins, NonInferiority, points)
