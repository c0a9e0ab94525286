"""What the suite costs: processor seconds of each file, and memory; in CI, `--costs` holds the sum to `budget.toml`.

A worker hands its figures over when it ends. Machines differ: a loop that runs in the same processes scales the budget.
"""

import json
import os
import resource
import sys
import time
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

BUDGET = Path(__file__).parents[1] / "budget.toml"
LISTED = 15
"""Files that are listed, the slowest first."""


class Costs:
    """The figures of one process, and in the one that prints them those of all its workers."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.peaks_mb: list[float] = []
        self.loops_s = [loop_s()]
        self._file, self._begun = "collection", used_s()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Charge what was used since the last file's first test, fixtures and children included, to that file."""
        if (file := item.nodeid.partition("::")[0]) != self._file:
            self._charge(file)

    def _charge(self, following: str) -> None:
        self.seconds[self._file] += (now := used_s()) - self._begun
        self._file, self._begun = following, now

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand the figures over, or fail a gate that costs more than a quarter above its budget."""
        self._charge("")
        self.loops_s.append(loop_s())
        unit = 1024**2 if sys.platform == "darwin" else 1024
        self.peaks_mb.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)
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
        """What the whole gate may take on this machine as it is now."""
        budget = tomllib.loads(BUDGET.read_text(encoding="utf-8"))
        speed = sorted(self.loops_s)[len(self.loops_s) // 2] / budget["loop_s"]
        return float(1.25 * budget["seconds"] * speed)

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Print the slowest files, the memory, and the budget."""
        if config.getoption("costs"):
            terminalreporter.section("costs")
            total = (
                f"{self.seconds.total():7.0f} s  all, in processor seconds; {self.allowed_s():.0f} s may be used here"
            )
            files = [f"{seconds:7.1f} s  {file}" for file, seconds in self.seconds.most_common(LISTED)]
            peaks = "most memory of a process: " + ", ".join(f"{peak:,.0f} MB" for peak in self.peaks_mb)
            terminalreporter.write("\n".join([total, *files, peaks]) + "\n")


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
