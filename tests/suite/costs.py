"""What the suite costs. `--costs` prints it, and in CI holds the processor seconds of all tests to `budget.toml`.

A worker hands its figures over when it ends. A loop that runs now and then between its tests scales the budget to the
machine, and to what else runs there.
"""

import itertools
import os
import resource
import time
import tomllib
from operator import gt
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

BUDGET = tomllib.loads((Path(__file__).parents[1] / "budget.toml").read_text(encoding="utf-8"))
FIGURES: list[tuple[float, float, float]] = []
"""Of each process: processor seconds, with those that it waited for; megabytes at most; milliseconds of the loop."""
LOOPS_MS: list[float] = []
"""What the loop took in this process, before each twentieth test."""
_STARTED = itertools.count()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", action="store_true", help="print processor seconds; in CI, check budget.toml")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if next(_STARTED) % 20 == 0:
        begun = time.process_time()
        sum(place * place % 7 for place in range(200_000))
        LOOPS_MS.append(1000 * (time.process_time() - begun))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the figures over, or fail a gate that costs more than it may."""
    if not session.config.pluginmanager.has_plugin("dsession"):
        own, waited_for = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        seconds = sum(used.ru_utime + used.ru_stime for used in (own, waited_for))
        FIGURES.append((seconds, own.ru_maxrss / 1024, fmean(LOOPS_MS or [BUDGET["loop_ms"]])))
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["costs"] = FIGURES
    elif os.environ.get("CI") and session.config.getoption("costs") and gt(*_spent_and_allowed_s()):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker counted; one that crashed has counted nothing."""
    FIGURES.extend(getattr(node, "workeroutput", {}).get("costs", ()))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.getoption("costs") and FIGURES:
        peaks = ", ".join(f"{peak:,.0f} MB" for _, peak, _ in FIGURES)
        spent, allowed = _spent_and_allowed_s()
        title = f"{spent:.0f} processor seconds, {allowed:.0f} are allowed here; most memory of a process: {peaks}"
        terminalreporter.section(title)


def _spent_and_allowed_s() -> tuple[float, float]:
    """Return what was spent, and a quarter more than the budget, on this machine as it is now."""
    allowed = 1.25 * BUDGET["seconds"] * fmean(loop for *_, loop in FIGURES) / BUDGET["loop_ms"]
    return sum(seconds for seconds, *_ in FIGURES), allowed
