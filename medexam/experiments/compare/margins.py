"""`medexam compare --equivalent-within` and the margin of its gate: one-sided tests beside the paired interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from medexam.benchmarks.paired import signed
from medexam.experiments.compare.section import Compared, Section
from medexam.formatting import Interval, decimal, equals, p_value
from medexam.metrics.paired.margins import MarginTest, Told, cluster_test, judge_margin, score_test
from medexam.metrics.paired.pairs import adjust_holm
from medexam.metrics.paired.results import Difference
from medexam.metrics.tasks import cluster_scores
from medexam.tables import Captioned, Table

_TOLD: dict[Told, str] = {
    "equivalent": "is equivalent to",
    "not equivalent": "is not equivalent to",
    "not shown": "is not shown to be equivalent to",
}


@dataclass(frozen=True)
class Margins(Section):
    """Each run beside the baseline, and a margin; element `i` is run `i + 1`."""

    margin: float
    """A fraction of 1, over 0."""
    differences: tuple[Difference, ...]
    tests: tuple[MarginTest, ...]

    @property
    def points(self) -> str:
        """`2.0 percentage points`."""
        return f"{decimal(100 * self.margin)} percentage points"


@dataclass(frozen=True)
class Equivalence(Margins):
    """Whether runs differ from the baseline by less than the margin, either way."""

    name = "equivalence"

    @property
    def p_adjusted(self) -> list[float]:
        """The p-value of equivalence of each pair after Holm, over all pairs."""
        return adjust_holm([test.p for test in self.tests])

    @property
    def told(self) -> list[Told]:
        """What may be said of each pair."""
        pairs = zip(self.differences, self.p_adjusted, strict=True)
        return [judge_margin(difference, self.margin, p) for difference, p in pairs]

    def tables(self, names: Sequence[str]) -> list[Captioned]:
        """A row a pair."""
        rows = tuple(
            (
                name,
                signed(difference, 100),
                _in_points(test.interval),
                p_value(test.p_worse),
                p_value(test.p_better),
                p_value(p),
            )
            for name, difference, test, p in zip(names[1:], self.differences, self.tests, self.p_adjusted, strict=True)
        )
        headers = ("Run", "Difference", "Score interval", "p not worse", "p not better", "p Holm")
        caption = (
            f"The run minus the baseline, percentage points. p not worse, p not better: one-sided "
            f"({_methods(self.tests)}). p Holm: the larger of both, adjusted for all rows. Equivalent only if "
            "p Holm < 0.025 and the 95 % interval of the difference lies within the margin."
        )
        return [(Table(f"Equivalent to {names[0]} within {self.points}", headers, rows), caption)]

    def sentences(self, names: Sequence[str]) -> list[str]:
        """A sentence a pair."""
        return [
            f"{name} {_TOLD[told]} {names[0]} within {self.points}: {signed(difference, 100)}, p {equals(p)} of "
            f"two one-sided tests{' after Holm' if len(names) > 2 else ''}."
            for name, told, difference, p in zip(names[1:], self.told, self.differences, self.p_adjusted, strict=True)
        ]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """The margin, and the tests of each pair by run; differences are fractions of 1."""
        pairs = zip(keys[1:], self.tests, self.p_adjusted, self.told, strict=True)
        return {
            "margin": self.margin,
            "pairs": {
                key: {**test.model_dump(mode="json"), "p": test.p, "p_holm": p, "verdict": told}
                for key, test, p, told in pairs
            },
        }


@dataclass(frozen=True)
class NonInferiority(Margins):
    """Whether runs lose less than the margin."""

    name = "non_inferiority"

    def sentences(self, names: Sequence[str]) -> list[str]:
        """A sentence a pair."""
        return [
            f"{name} {self._told(at, names[0])}: {signed(self.differences[at], 100)}, one-sided p "
            f"{equals(self.tests[at].p_worse)} ({self.tests[at].method})."
            for at, name in enumerate(names[1:])
        ]

    def passes(self, at: int) -> bool:
        """Whether the interval of pair `at` shows that it loses less."""
        bounds = self.differences[at].bounds
        return bounds is not None and bounds[0] > -self.margin

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """The margin, and of each run whether it passes, with p and the one-sided bound that belongs to it."""
        return {
            "margin": self.margin,
            "pairs": {
                key: {
                    "passed": self.passes(at),
                    "p": test.p_worse,
                    "bound": None if test.interval is None else test.interval[0],
                    "method": test.method,
                }
                for at, (key, test) in enumerate(zip(keys[1:], self.tests, strict=True))
            },
        }

    def _told(self, at: int, baseline: str) -> str:
        bounds = self.differences[at].bounds
        if self.passes(at):
            return f"is not worse than {baseline} by {self.points}"
        if bounds is not None and bounds[1] < -self.margin:
            return f"is worse than {baseline} by more than {self.points}"
        return f"may be worse than {baseline} by {self.points} or more"


M = TypeVar("M", bound=Margins)


def find_margins(kind: type[M], points: float, compared: Compared) -> M:
    """The tests of every pair against a margin of that many percentage points."""
    margin = points / 100
    pairs = compared.found.paired
    if pairs:
        flips = [pair.paired.flips for pair in pairs]
        tests = [score_test(len(each.right_to_wrong), len(each.wrong_to_right), each.n, margin) for each in flips]
    else:
        cluster_of = dict(zip(compared.scores[0], compared.clusters, strict=True)).__getitem__
        before, *others = compared.scores
        subtracted = [{key: run[key] - score for key, score in before.items()} for run in others]
        tests = [cluster_test(cluster_scores(each, cluster_of), margin) for each in subtracted]
    return kind(margin, tuple(compared.found.known_by), tuple(tests))


def _in_points(interval: Interval | None) -> str:
    return "-" if interval is None else f"[{decimal(100 * interval[0])}, {decimal(100 * interval[1])}]"


def _methods(tests: Sequence[MarginTest]) -> str:
    return ", ".join(dict.fromkeys(test.method for test in tests))
