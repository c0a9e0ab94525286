"""A gate for continuous integration: it passes if no run loses more than a margin against the baseline.

A run passes if its paired 95 % interval lies above minus the margin: a test of non-inferiority at 2.5 % (Piaggio et
al. 2012, the extension of CONSORT). A run with too few questions for that fails, because nothing shows that it is good.
"""

from dataclasses import dataclass
from xml.etree import ElementTree

from medexam.benchmarks.paired import signed
from medexam.errors import SpecError
from medexam.experiments.compare.result import Comparison
from medexam.formatting import decimal
from medexam.metrics.paired.results import Difference
from medexam.metrics.results import Resampling


@dataclass(frozen=True)
class Passed:
    """Whether a run passes, and why."""

    run: str
    """What tells it from the others."""
    passed: bool
    said: str
    """One sentence with the difference and its interval."""


@dataclass(frozen=True)
class Gate:
    """What a run may lose."""

    margin: float
    """Percentage points of accuracy, or of the measure that runs in words are known by; over 0."""

    @classmethod
    def parse(cls, text: str) -> "Gate":
        """`worse:1.0`; raises `SpecError` for anything else."""
        what, _, margin = text.partition(":")
        try:
            found = float(margin)
        except ValueError:
            found = 0.0
        if what != "worse" or not 0 < found < 100:
            raise SpecError(f"--fail-if {text}: give worse:POINTS, such as worse:1.0, in percentage points over 0")
        return cls(found)

    def check(self, comparison: Comparison) -> list[Passed]:
        """Of each run but the baseline, whether it passes."""
        baseline, *others = comparison.names
        return [
            self._check(name, baseline, difference)
            for name, difference in zip(others, comparison.found.known_by, strict=True)
        ]

    def _check(self, name: str, baseline: str, difference: Difference) -> Passed:
        low, high = _bounds(difference)
        margin = f"{decimal(self.margin)} percentage points"
        if low is not None and low > -self.margin:
            told = f"is not worse than {baseline} by {margin}"
        elif high is not None and high < -self.margin:
            told = f"is worse than {baseline} by more than {margin}"
        else:
            told = f"may be worse than {baseline} by {margin} or more"
        passed = low is not None and low > -self.margin
        return Passed(name, passed, f"{name} {told}: {signed(difference, 100)}.")


def render_junit(checked: list[Passed], baseline: str) -> str:
    """The runs as test cases in JUnit's XML, which CI services show beside a pull request."""
    failures = sum(not one.passed for one in checked)
    suite = ElementTree.Element(
        "testsuite", name=f"medexam against {baseline}", tests=str(len(checked)), failures=str(failures)
    )
    for one in checked:
        case = ElementTree.SubElement(suite, "testcase", classname="medexam.compare", name=one.run)
        if not one.passed:
            ElementTree.SubElement(case, "failure", message=one.said)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _bounds(difference: Difference) -> tuple[float | None, float | None]:
    """The ends of the interval in percentage points; of questions that all differ alike, the difference itself."""
    if difference.resampled is Resampling.ALIKE:
        return 100 * difference.value, 100 * difference.value
    if difference.interval is None:
        return None, None
    low, high = difference.interval
    return 100 * low, 100 * high
