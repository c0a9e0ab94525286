"""Which worker runs what: the tests of a file together, and those that fill the machine behind each other."""

from typing import Any

import pytest

FILLS_MACHINE = ("tests/browser/", "tests/ray/", "tests/slurm/")
"""Folders whose tests start clusters and browsers: two at once would wait for each other."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A scheduler for `--dist loadfile`; xdist's own for other ways to distribute."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class FileScheduling(LoadFileScheduling):
        """Gives a worker a file at a time, or all files of `FILLS_MACHINE`."""

        def _split_scope(self, nodeid: str) -> str:
            return "fills the machine" if nodeid.startswith(FILLS_MACHINE) else super()._split_scope(nodeid)

    return FileScheduling(config, log)
