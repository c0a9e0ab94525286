"""A gate for continuous integration: it passes if no run loses more than a margin against the baseline.

A run passes if its paired 95 % interval lies above minus the margin: a test of non-inferiority at 2.5 % (Piaggio et
al. 2012, the extension of CONSORT). A run with too few questions for that fails, because nothing shows that it is good.
The p-value that stands beside it takes questions as independent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from medexam.errors import SpecError
from medexam.experiments.compare.margins import NonInferiority, find_margins
from medexam.experiments.compare.section import ComparisonScope


@dataclass(frozen=True)
class Passed:
    """Whether a run passes, and why."""

    run: str
    """What tells it from the others."""
    passed: bool
    sentence: str
    """One sentence with the difference, its interval and the one-sided p-value."""


@dataclass(frozen=True)
class Gate:
    """What a run may lose."""

    margin: float
    """Percentage points of accuracy, or of the measure that runs in words are known by; over 0."""

    @classmethod
    def parse(cls, text: str) -> "Gate":
        """Parse `worse:1.0`; raises `SpecError` for anything else."""
        rule, _, margin = text.partition(":")
        try:
            points = float(margin)
        except ValueError:
            points = 0.0
        if rule != "worse" or not 0 < points < 100:
            raise SpecError(f"--fail-if {text}: give worse:POINTS, such as worse:1.0, in percentage points over 0")
        return cls(points)

    def find(self, compared: ComparisonScope) -> NonInferiority:
        """Run the tests that the gate states."""
        return find_margins(NonInferiority, self.margin, compared)


def check_gate(names: Sequence[str], tests: NonInferiority) -> list[Passed]:
    """Check of each run but the baseline whether it passes; `names` are those of all runs."""
    named_sentences = zip(names[1:], tests.sentences(names), strict=True)
    return [Passed(name, tests.passes(position), sentence) for position, (name, sentence) in enumerate(named_sentences)]


def render_junit(verdicts: list[Passed], baseline: str) -> str:
    """Render the runs as test cases in JUnit's XML, which CI services show beside a pull request."""
    failures = sum(not verdict.passed for verdict in verdicts)
    suite = ElementTree.Element(
        "testsuite", name=f"medexam against {baseline}", tests=str(len(verdicts)), failures=str(failures)
    )
    for verdict in verdicts:
        case = ElementTree.SubElement(suite, "testcase", classname="medexam.compare", name=verdict.run)
        if not verdict.passed:
            ElementTree.SubElement(case, "failure", message=verdict.sentence)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
