"""`medexam compare --equivalent-within`, by one-sided tests beside the paired interval; and the margin of its gate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from medexam.benchmarks.measures import signed
from medexam.benchmarks.paired import Pair
from medexam.errors import SpecError
from medexam.experiments.compare.section import ComparisonScope, ComparisonSection
from medexam.metrics.paired.margins import MarginTest, Told, cluster_test, judge_margin, score_test
from medexam.metrics.paired.significance import adjust_holm
from medexam.tables import NONE, Table, decimal, equals, p_value, with_interval

_PHRASES: dict[Told, str] = {
    "equivalent": "is equivalent to",
    "not equivalent": "is not equivalent to",
    "not shown": "is not shown to be equivalent to",
}


@dataclass(frozen=True)
class Equivalence(ComparisonSection):
    """Whether runs differ from the baseline by less than a margin, either way, however the replies are read."""

    margin: float
    """A fraction of 1, over 0."""
    pairs: tuple[Pair, ...]
    tests: list[MarginTest]
    """Of each pair as it is scored."""
    p_adjusted: list[float]
    """The p-value of each, the largest of all ways to read the replies, after Holm over all pairs."""
    name = "equivalence"

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
                signed(pair.first.difference),
                NONE if test.interval is None else with_interval("", test.interval).strip(),
                *map(p_value, (test.p_worse, test.p_better, p)),
            )
            for name, pair, test, p in zip(names[1:], self.pairs, self.tests, self.p_adjusted, strict=True)
        )
        headers = ("Run", "Difference", "Score interval", "p not worse", "p not better", "p Holm")
        methods = ", ".join(dict.fromkeys(test.method for test in self.tests))
        caption = (
            f"The run minus the baseline, percentage points. p not worse, p not better: one-sided ({methods}). p Holm: "
            "the larger of both however the replies are read, adjusted for all rows. Equivalent only if p Holm < 0.025 "
            "and the 95 % interval of the difference lies within the margin."
        )
        return [Table(f"Equivalent to {names[0]} within {_points(self.margin)}", headers, rows, caption=caption)]

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write a sentence for each pair."""
        return [
            f"{name} {_PHRASES[verdict]} {names[0]} within {_points(self.margin)}: {signed(pair.first.difference)}, "
            f"p {equals(p)} of two one-sided tests{' after Holm' if len(names) > 2 else ''}."
            for name, verdict, pair, p in zip(names[1:], self.verdicts, self.pairs, self.p_adjusted, strict=True)
        ]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build the margin, and the tests of each pair by run; differences are fractions of 1."""
        found = zip(keys[1:], self.tests, self.p_adjusted, self.verdicts, strict=True)
        return {
            "margin": self.margin,
            "pairs": {
                key: {**test.model_dump(mode="json"), "p": test.p, "p_adjusted": p, "verdict": verdict}
                for key, test, p, verdict in found
            },
        }


def find_equivalence(points: float, compared: ComparisonScope) -> Equivalence:
    """Test every pair against a margin of that many percentage points."""
    margin, pairs = points / 100, compared.statistics.pairs
    if compared.benchmark.right_or_wrong:
        views = [
            [view.flips for view in (pair.first, *pair.views.values()) if view.flips is not None] for pair in pairs
        ]
        tests = [
            [score_test(each.right_to_wrong, each.wrong_to_right, each.n, margin) for each in flips] for flips in views
        ]
    else:
        rows, clusters = compared.matrix, np.array(compared.clusters)
        changes = [[(run - rows[0])[clusters == each].tolist() for each in dict.fromkeys(clusters)] for run in rows[1:]]
        tests = [[cluster_test(each, margin)] for each in changes]
    p_values = [max(test.p for test in each) for each in tests]
    return Equivalence(margin, pairs, [first for first, *_ in tests], adjust_holm(p_values))


def parse_gate(text: str) -> float:
    """Parse `worse:1.0`, percentage points that a run may lose, to a fraction; raises `SpecError` for all else."""
    rule, _, margin = text.partition(":")
    try:
        points = float(margin)
    except ValueError:
        points = 0.0
    if rule != "worse" or not 0 < points < 100:
        raise SpecError(f"--fail-if {text}: give worse:POINTS, such as worse:1.0, in percentage points over 0")
    return points / 100


def judge_gate(pair: Pair, margin: float, run: str, baseline: str) -> tuple[bool, str]:
    """Judge whether a run loses less than the margin as it is scored, and write so: the gate of an integration.

    It passes if its paired 95 % interval lies above minus the margin: a test of non-inferiority at 2.5 % (Piaggio et
    al. 2012, the extension of CONSORT). With too few questions for that it fails: nothing shows that it is good.
    """
    difference = pair.first.difference
    low, high = difference.bounds or (-1.0, 1.0)
    phrase = f"may be worse than {baseline} by {_points(margin)} or more"
    if low > -margin:
        phrase = f"is not worse than {baseline} by {_points(margin)}"
    elif high < -margin:
        phrase = f"is worse than {baseline} by more than {_points(margin)}"
    return low > -margin, f"{run} {phrase}: {signed(difference)}."


def _points(margin: float) -> str:
    return f"{decimal(100 * margin)} percentage points"
