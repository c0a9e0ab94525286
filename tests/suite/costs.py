"""What the suite costs: processor seconds of each file, and the memory of each process that runs tests.

A worker keeps its own figures and hands them over when it ends; the process that started the workers prints them with
`--costs`. In CI it also holds each folder to `budget.toml`.
"""

import ctypes
import gc
import json
import os
import resource
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from waiting import until

BUDGET = Path(__file__).parents[1] / "budget.toml"
OVER_BUDGET = 2.0
"""Times its budget that a folder may take in CI."""
SLOWEST_MACHINE = 2.0
"""Times the whole budget that a slow or busy machine may take; each folder may take so much more."""
UNLISTED_S = 5.0
"""Seconds that a folder may take for which `budget.toml` has no line yet."""
LISTED = 10
"""Files that are listed, the slowest first."""
LEFT_BEHIND_MB = 100
"""Megabytes of weights that the tests of a file may leave behind."""
FREED_S = 60.0
"""Seconds after which weights that are still there will stay."""
_OUTPUT = "costs"


class WeightMeter:
    """Megabytes of weights that are alive, less those that all tests of a worker share.

    What libraries keep for themselves does not count: they take it once.
    """

    def __init__(self) -> None:
        self.kept = 0.0
        """Megabytes of fixtures that live as long as the session."""

    def read(self, limit: float = -1.0) -> float:
        """Megabytes, after cycles were collected and free memory was given back to the system.

        What was frozen with the imports is searched only where more than `limit` megabytes are alive beside it: among
        a million objects that takes seconds.
        """
        weights = self._collected_mb()
        if weights > limit and gc.get_freeze_count():
            gc.unfreeze()
            weights = self._collected_mb()
            gc.freeze()
        return weights if weights <= limit else weights - self.kept

    def _collected_mb(self) -> float:
        gc.collect()
        if sys.platform == "linux":
            ctypes.CDLL(None).malloc_trim(0)
        return self._weights_mb()

    @staticmethod
    def _weights_mb() -> float:
        if (torch := sys.modules.get("torch")) is None:
            return 0.0
        storages: dict[int, int] = {}
        for tensor in (each for each in gc.get_objects() if issubclass(type(each), torch.Tensor)):
            # Sparse tensors have no storage of their own.
            with suppress(RuntimeError):
                storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return sum(storages.values()) / 1024**2


METER = WeightMeter()


def keep_for_session(build: Any) -> Any:
    """Build what all tests of a worker share; no file is charged with its weights."""
    before = METER.read()
    kept = build()
    METER.kept += METER.read() - before
    return kept


def _anonymous_mb() -> float:
    """Megabytes of this process that no file backs; 0 where the system does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="ascii").splitlines() if status.exists() else ()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon:")), 0.0)


@pytest.fixture(scope="module", autouse=True)
def _memory(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a file that grew the process and leaves the weights of a model behind."""
    before = _anonymous_mb()
    yield
    if _anonymous_mb() - before > LEFT_BEHIND_MB / 2 and METER.read(LEFT_BEHIND_MB) >= LEFT_BEHIND_MB:
        # torch lets other threads run between two tensors that it frees, so a thread may be half through a model.
        # All is searched from here on, since the first search froze what it had found.
        freed = f"the end of the weights that {request.node.nodeid} loaded"
        until(lambda: METER.read() < LEFT_BEHIND_MB, freed, seconds=FREED_S)


class Costs:
    """The figures of one process, and in the one that prints them those of all its workers."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        """File -> processor seconds of this process and of those that it waited for."""
        self.peaks_mb: list[float] = []
        """Most memory of each process that ran tests."""
        self.growth_mb: Counter[str] = Counter()
        """File -> by how much its tests raised the most memory of a process."""
        self._file = "collection"
        """Whose tests run."""
        self._begun = (_processor_seconds(), 0.0)
        """Processor seconds, and the most memory, when they began."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Count what the tests of a file cost, with their fixtures, once those of another file begin."""
        if (file := item.nodeid.partition("::")[0]) != self._file:
            self._count(file)

    def _count(self, following: str) -> None:
        ended = _processor_seconds(), _peak_mb()
        self.seconds[self._file] += ended[0] - self._begun[0]
        self.growth_mb[self._file] += ended[1] - self._begun[1]
        self._file, self._begun = following, ended

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand the figures over; the process that prints them counts itself only if it ran tests."""
        if self._file != "collection":
            self._count("")
            self.peaks_mb.append(_peak_mb())
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_OUTPUT] = json.dumps([self.seconds, self.peaks_mb, self.growth_mb])
        elif self._folders_over_budget(session.config):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker counted; one that crashed has counted nothing."""
        seconds, peaks_mb, growth_mb = json.loads(getattr(node, "workeroutput", {}).get(_OUTPUT, "[{}, [], {}]"))
        self.seconds.update(seconds)
        self.peaks_mb += peaks_mb
        self.growth_mb.update(growth_mb)

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Print the slowest files, the memory, and what is over its budget."""
        if not config.getoption("costs"):
            return
        write = terminalreporter.write_line
        terminalreporter.section("costs")
        write(f"{self.seconds.total():7.0f} s  all, in processor seconds")
        for file, seconds in self.seconds.most_common(LISTED):
            write(f"{seconds:7.1f} s  {file}")
        write("most memory of a worker: " + ", ".join(f"{peak:,.0f} MB" for peak in self.peaks_mb))
        for file, growth in self.growth_mb.most_common(LISTED):
            write(f"{growth:6,.0f} MB  {file}")
        for folder, (seconds, budget) in self._folders_over_budget(config).items():
            write(f"OVER BUDGET: {folder} took {seconds:.0f} s, {budget} s stand in {BUDGET.name}", red=True)

    def _folders_over_budget(self, config: pytest.Config) -> dict[str, tuple[float, float]]:
        """Folder -> its seconds and its budget, of those that took more than twice as long; in CI alone."""
        if not (config.getoption("costs") and os.environ.get("CI")):
            return {}
        return over_budget(self.seconds, tomllib.loads(BUDGET.read_text(encoding="utf-8"))["seconds"])


def over_budget(seconds: Mapping[str, float], budget: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Folder -> its seconds and its budget, of those that took more than `OVER_BUDGET` times as long.

    `seconds` are those of each file. A slow machine, or other work on it, slows all folders: what they took together
    is compared with what they may take together, and each may take so many times more.
    """
    spent: Counter[str] = Counter()
    for file, taken in seconds.items():
        parts = file.split("/")
        spent[file if len(parts) == 1 else parts[1] if len(parts) > 2 else "."] += taken
    allowed = sum(budget.get(folder, UNLISTED_S) for folder in spent) or 1
    slower = min(max(spent.total() / allowed, 1), SLOWEST_MACHINE)
    return {
        folder: (taken, budget.get(folder, UNLISTED_S))
        for folder, taken in spent.items()
        if taken > OVER_BUDGET * slower * budget.get(folder, UNLISTED_S)
    }


def _peak_mb() -> float:
    """Return the most memory that this process had so far, in megabytes."""
    # kilobytes, but bytes on macOS
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _processor_seconds() -> float:
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--costs`."""
    parser.addoption(
        "--costs", action="store_true", help="print processor seconds and memory; in CI, check budget.toml"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Count from here on."""
    config.pluginmanager.register(Costs(), _OUTPUT)
