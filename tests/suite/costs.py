"""What the suite costs. `--costs` prints it, and in CI holds the processor seconds of all tests to `budget.toml`.

A worker hands its figures over when it ends. A loop before each test scales the budget to the machine, and to what else
runs there.
"""

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
FIGURES: list[Any] = []
"""Of each process: processor seconds, with those that it waited for; megabytes at most; milliseconds of the loop."""
LOOPS_MS = [BUDGET["loop_ms"]]
"""What the loop took in this process."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", action="store_true", help="print processor seconds; in CI, check budget.toml")


def pytest_runtest_setup() -> None:
    begun = time.process_time()
    sum(place * place % 7 for place in range(10_000))
    LOOPS_MS.append(1000 * (time.process_time() - begun))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the figures over, or fail a gate that costs more than it may."""
    if not session.config.pluginmanager.has_plugin("dsession"):
        most_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        FIGURES.append((sum(os.times()[:4]), most_mb, fmean(LOOPS_MS)))
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
        (spent, allowed), most = _spent_and_allowed_s(), max(peak for _, peak, _ in FIGURES)
        terminalreporter.section(f"{spent:.0f} processor seconds of {allowed:.0f}; {most:,.0f} MB in a process at most")


def _spent_and_allowed_s() -> tuple[float, float]:
    """Return what was spent, and a quarter more than the budget, on this machine as it is now."""
    seconds, _, loops_ms = zip(*FIGURES, strict=True)
    return sum(seconds), 1.25 * BUDGET["seconds"] * fmean(loops_ms) / BUDGET["loop_ms"]
