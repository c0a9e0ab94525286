"""A gate passes what is shown to lose less than its margin, and nothing else."""

from xml.etree import ElementTree

import pytest

from medexam.errors import SpecError
from medexam.experiments.compare.gate import Gate, Passed, check_gate, render_junit
from medexam.experiments.compare.margins import NonInferiority
from medexam.metrics import Difference, Resampling
from medexam.metrics.paired.margins import MarginTest

TEST = MarginTest(p_worse=0.012, p_better=0.4, interval=(-0.009, 0.005), method="Tango's score test")
P = "one-sided p = 0.012 (Tango's score test)."
NAMES = ("base", "new0", "new1", "new2", "new3")


def _check(points: float, *differences: Difference) -> list[Passed]:
    found = NonInferiority(points / 100, differences, (TEST,) * len(differences))
    return check_gate(NAMES[: len(differences) + 1], found)


ALIKE = Difference(value=0.0, interval=None, resampled=Resampling.ALIKE)
SMALL = Difference(value=-0.002, interval=(-0.009, 0.005))
UNSURE = Difference(value=0.01, interval=(-0.03, 0.05))
WORSE = Difference(value=-0.05, interval=(-0.08, -0.02))


def test_each_run_is_judged_by_its_interval() -> None:
    checked = _check(Gate.parse("worse:1.0").margin, ALIKE, SMALL, UNSURE, WORSE)
    assert [one.passed for one in checked] == [True, True, False, False]
    assert checked[1].sentence == f"new1 is not worse than base by 1.0 percentage points: -0.2 [-0.9, 0.5], {P}"
    assert checked[2].sentence == f"new2 may be worse than base by 1.0 percentage points or more: +1.0 [-3.0, 5.0], {P}"
    assert checked[3].sentence == f"new3 is worse than base by more than 1.0 percentage points: -5.0 [-8.0, -2.0], {P}"


def test_a_loss_at_the_margin_does_not_pass() -> None:
    at_margin = Difference(value=0.0, interval=(-0.01, 0.01))
    assert [one.passed for one in _check(1.0, at_margin)] == [False]
    assert [one.passed for one in _check(1.001, at_margin)] == [True]


def test_junit_counts_what_failed() -> None:
    suite = ElementTree.fromstring(render_junit(_check(1.0, SMALL, WORSE), "base <&>"))
    assert suite.attrib == {"name": "medexam against base <&>", "tests": "2", "failures": "1"}
    assert [case.get("name") for case in suite] == ["new0", "new1"]
    assert [failure.get("message") for failure in suite.iter("failure")] == [
        f"new1 is worse than base by more than 1.0 percentage points: -5.0 [-8.0, -2.0], {P}"
    ]


@pytest.mark.parametrize("text", ["worse", "worse:", "worse:0", "worse:-1", "better:1", "worse:nan", "worse:inf"])
def test_any_other_gate_is_refused_with_the_way_out(text) -> None:
    with pytest.raises(SpecError, match=r"give worse:POINTS, such as worse:1\.0"):
        Gate.parse(text)
