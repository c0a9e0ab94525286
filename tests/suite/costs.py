"""What the suite costs. `--costs` prints it, and in CI holds the processor seconds of all tests to `budget.toml`.

A worker hands its figures over when it ends. A loop that runs in the same processes scales the budget to the machine.
"""

import json
import os
import resource
import time
import tomllib
from pathlib import Path
from statistics import median
from typing import Any

import pytest

BUDGET = tomllib.loads((Path(__file__).parents[1] / "budget.toml").read_text(encoding="utf-8"))


class Costs:
    """The figures of one process that runs tests, or of all workers."""

    def __init__(self) -> None:
        self.figures: list[tuple[float, float, float]] = []
        """Of each process: processor seconds, with those that it waited for; megabytes at most; the loop's seconds."""

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand the figures over, or fail a gate that costs more than it may."""
        if not session.config.pluginmanager.has_plugin("dsession"):
            kinds = list(map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
            seconds = sum(used.ru_utime + used.ru_stime for used in kinds)
            self.figures.append((seconds, kinds[0].ru_maxrss / 1024, loop_s()))
        if (output := getattr(session.config, "workeroutput", None)) is not None:
            output["costs"] = json.dumps(self.figures)
        elif os.environ.get("CI") and session.config.getoption("costs") and self.seconds > self.allowed_s:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker counted; one that crashed has counted nothing."""
        self.figures += json.loads(getattr(node, "workeroutput", {}).get("costs", "[]"))

    @property
    def seconds(self) -> float:
        """Processor seconds of all tests."""
        return sum(seconds for seconds, *_ in self.figures)

    @property
    def allowed_s(self) -> float:
        """A quarter more than the budget, on this machine as it is now."""
        return float(1.25 * BUDGET["seconds"] * median(loop for *_, loop in self.figures) / BUDGET["loop_s"])

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Print the sum and the memory."""
        if config.getoption("costs") and self.figures:
            peaks = ", ".join(f"{peak:,.0f} MB" for _, peak, _ in self.figures)
            spent = f"{self.seconds:.0f} processor seconds, {self.allowed_s:.0f} are allowed here"
            terminalreporter.section(f"{spent}; most memory of a process: {peaks}")


def loop_s() -> float:
    """Processor seconds of a loop that is always the same."""
    begun = time.process_time()
    sum(place * place % 7 for place in range(2_000_000))
    return time.process_time() - begun


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--costs`."""
    parser.addoption("--costs", action="store_true", help="print processor seconds; in CI, check budget.toml")


def pytest_configure(config: pytest.Config) -> None:
    """Count from here on."""
    config.pluginmanager.register(Costs(), "costs")
