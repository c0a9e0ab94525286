"""`medexam compare --equivalent-within` and the margin of its gate: one-sided tests beside the paired interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from medexam.benchmarks.measures import signed
from medexam.errors import SpecError
from medexam.experiments.compare.section import ComparisonScope, ComparisonSection, Finder
from medexam.metrics.paired.margins import MarginTest, Told, cluster_test, judge_margin, score_test
from medexam.metrics.paired.pairs import adjust_holm
from medexam.metrics.paired.results import Difference
from medexam.metrics.tasks import cluster_scores
from medexam.tables import Captioned, Interval, Table, decimal, equals, p_value

_VERDICTS: dict[Told, str] = {
    "equivalent": "is equivalent to",
    "not equivalent": "is not equivalent to",
    "not shown": "is not shown to be equivalent to",
}


@dataclass(frozen=True)
class Margins(ComparisonSection):
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
    def verdicts(self) -> list[Told]:
        """What may be said of each pair."""
        pairs = zip(self.differences, self.p_adjusted, strict=True)
        return [judge_margin(difference, self.margin, p) for difference, p in pairs]

    def tables(self, names: Sequence[str]) -> list[Captioned]:
        """Build a row for each pair."""
        rows = tuple(
            (
                name,
                signed(difference),
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
        """Write a sentence for each pair."""
        return [
            f"{name} {_VERDICTS[verdict]} {names[0]} within {self.points}: {signed(difference)}, p {equals(p)} of "
            f"two one-sided tests{' after Holm' if len(names) > 2 else ''}."
            for name, verdict, difference, p in zip(
                names[1:], self.verdicts, self.differences, self.p_adjusted, strict=True
            )
        ]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build the margin, and the tests of each pair by run; differences are fractions of 1."""
        pairs = zip(keys[1:], self.tests, self.p_adjusted, self.verdicts, strict=True)
        return {
            "margin": self.margin,
            "pairs": {
                key: {**test.model_dump(mode="json"), "p": test.p, "p_holm": p, "verdict": verdict}
                for key, test, p, verdict in pairs
            },
        }


@dataclass(frozen=True)
class NonInferiority(Margins):
    """Whether runs lose less than the margin: the gate of continuous integration.

    A run passes if its paired 95 % interval lies above minus the margin: a test of non-inferiority at 2.5 % (Piaggio et
    al. 2012, the extension of CONSORT). A run with too few questions for that fails, because nothing shows that it is
    good. The p-value beside it takes questions as independent.
    """

    name = "non_inferiority"

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write a sentence for each pair."""
        return [
            f"{name} {self._verdict(position, names[0])}: {signed(self.differences[position])}, one-sided p "
            f"{equals(self.tests[position].p_worse)} ({self.tests[position].method})."
            for position, name in enumerate(names[1:])
        ]

    def passes(self, position: int) -> bool:
        """Return whether the interval of the pair at `position` shows that it loses less."""
        bounds = self.differences[position].bounds
        return bounds is not None and bounds[0] > -self.margin

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build the margin, and of each run whether it passes, with p and the one-sided bound that belongs to it."""
        return {
            "margin": self.margin,
            "pairs": {
                key: {
                    "passed": self.passes(position),
                    "p": test.p_worse,
                    "bound": None if test.interval is None else test.interval[0],
                    "method": test.method,
                }
                for position, (key, test) in enumerate(zip(keys[1:], self.tests, strict=True))
            },
        }

    def _verdict(self, position: int, baseline: str) -> str:
        bounds = self.differences[position].bounds
        if self.passes(position):
            return f"is not worse than {baseline} by {self.points}"
        if bounds is not None and bounds[1] < -self.margin:
            return f"is worse than {baseline} by more than {self.points}"
        return f"may be worse than {baseline} by {self.points} or more"


M = TypeVar("M", bound=Margins)


def find_margins(kind: type[M], points: float, compared: ComparisonScope) -> M:
    """Test every pair against a margin of that many percentage points."""
    margin = points / 100
    pairs = compared.statistics.paired
    if pairs:
        flips = [pair.paired.flips for pair in pairs]
        tests = [
            score_test(len(flip_counts.right_to_wrong), len(flip_counts.wrong_to_right), flip_counts.n, margin)
            for flip_counts in flips
        ]
    else:
        cluster_of = dict(zip(compared.scores[0], compared.clusters, strict=True)).__getitem__
        before, *others = compared.scores
        subtracted = [{key: run[key] - score for key, score in before.items()} for run in others]
        tests = [cluster_test(cluster_scores(difference, cluster_of), margin) for difference in subtracted]
    return kind(margin, tuple(compared.statistics.known_by), tuple(tests))


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


def _in_points(interval: Interval | None) -> str:
    return "-" if interval is None else f"[{decimal(100 * interval[0])}, {decimal(100 * interval[1])}]"


def _methods(tests: Sequence[MarginTest]) -> str:
    return ", ".join(dict.fromkeys(test.method for test in tests))
