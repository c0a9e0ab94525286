"""What the suite costs. `--costs` prints it, and in CI holds the processor seconds of all tests to `budget.toml`.

A worker hands its figures over when it ends. A loop that runs in the same processes scales the budget to the machine.
"""

import json
import os
import resource
import time
import tomllib
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import pytest

BUDGET = tomllib.loads((Path(__file__).parents[1] / "budget.toml").read_text(encoding="utf-8"))


class Costs:
    """The figures of one process, and in the one that prints them those of all its workers."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        """File -> processor seconds of its tests, their fixtures and the processes that they waited for."""
        self.peaks_mb: list[float] = []
        self.loops_s = [loop_s()]
        self._file, self._begun = "collection", used_s()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Charge the file before, once the tests of another begin."""
        if (file := item.nodeid.partition("::")[0]) != self._file:
            self._charge(file)

    def _charge(self, following: str) -> None:
        self.seconds[self._file] += (now := used_s()) - self._begun
        self._file, self._begun = following, now

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand the figures over, or fail a gate that costs more than it may."""
        if self._file != "collection" or hasattr(session.config, "workerinput"):
            # What a process that starts workers waits for is theirs.
            self._charge("")
        self.loops_s.append(loop_s())
        self.peaks_mb.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        if (output := getattr(session.config, "workeroutput", None)) is not None:
            output["costs"] = json.dumps([self.seconds, self.peaks_mb, self.loops_s])
        elif os.environ.get("CI") and session.config.getoption("costs") and self.seconds.total() > self.allowed_s():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker counted; one that crashed has counted nothing."""
        seconds, peaks_mb, loops_s = json.loads(getattr(node, "workeroutput", {}).get("costs", "[{}, [], []]"))
        self.seconds.update(seconds)
        self.peaks_mb += peaks_mb
        self.loops_s += loops_s

    def allowed_s(self) -> float:
        """A quarter more than the budget, on this machine as it is now."""
        return float(1.25 * BUDGET["seconds"] * median(self.loops_s) / BUDGET["loop_s"])

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Print the sum, the slowest files and the memory."""
        if config.getoption("costs"):
            total = f"{self.seconds.total():7.0f} s of processors for all; {self.allowed_s():.0f} s are allowed here"
            files = [f"{seconds:7.1f} s  {file}" for file, seconds in self.seconds.most_common(15)]
            peaks = "most memory of a process: " + ", ".join(f"{peak:,.0f} MB" for peak in self.peaks_mb)
            terminalreporter.write("\n".join(["", total, *files, peaks, ""]))


def used_s() -> float:
    """Processor seconds of this process and of those that it waited for."""
    kinds = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in kinds)


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
