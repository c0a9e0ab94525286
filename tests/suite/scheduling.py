"""Which worker runs what, and when: a file's tests together, the longest files first."""

from typing import Any

import pytest

FILLS_MACHINE = ("tests/browser/", "tests/ray/", "tests/slurm/")
"""Folders whose tests start clusters and browsers: two at once would wait for each other."""
LONG = (
    "tests/browser/",
    "tests/companions/corpus_map/",
    "tests/companions/papers/",
    "tests/embedded/",
    "tests/experiments/api/",
    "tests/experiments/optimize/",
    "tests/ray/",
    "tests/serve/diagnostics/",
    "tests/slurm/",
    "tests/test_documented_commands.py",
    "tests/test_types_for_users.py",
)
"""Folders and files that take longest: one that began last would keep one worker while the others have no work."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with `LONG` in a worker, unless the order is drawn."""
    if hasattr(config, "workerinput") and config.getoption("loadscopereorder"):
        items.sort(key=lambda item: not item.nodeid.startswith(LONG))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A scheduler for `--dist loadfile`; xdist's own for other ways to distribute."""
    if config.getoption("dist") != "loadfile":
        return None
    # It would begin with the files of most tests.
    config.option.loadscopereorder = False
    from xdist.scheduler import LoadFileScheduling

    class FileScheduling(LoadFileScheduling):
        """Gives a worker a file at a time, or all files of `FILLS_MACHINE`."""

        def _split_scope(self, nodeid: str) -> str:
            return "fills the machine" if nodeid.startswith(FILLS_MACHINE) else super()._split_scope(nodeid)

    return FileScheduling(config, log)
