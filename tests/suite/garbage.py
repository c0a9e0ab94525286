"""What imports leave behind is never garbage, and is not searched for any: that took a seventh of the suite's time."""

import ctypes
import gc
import sys
from collections.abc import Iterator

import pytest

from medexam import gc_pause

MANY = 200
"""Modules that tests imported, after which the objects alive are frozen anew."""


class FrozenImports:
    """Freezes what is alive between files."""

    def __init__(self) -> None:
        self._modules = 0
        """Modules that were imported when objects were frozen last; 0 before the first time."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Iterator[None]:
        """Import the tests' modules without a search."""
        gc.disable()
        try:
            return (yield)
        finally:
            gc.enable()

    def freeze_new(self) -> None:
        """Freeze what is alive, if many modules were imported since."""
        if not self._modules:
            # As if a command was under way: those of tests neither freeze nor unfreeze.
            gc_pause._open_pauses += 1
        if len(sys.modules) > self._modules + MANY:
            gc.collect()
            gc.freeze()
            self._modules = len(sys.modules)


IMPORTS = FrozenImports()


@pytest.fixture(scope="module", autouse=True)
def _frozen_imports() -> None:
    """Objects of earlier files and imports are not searched."""
    IMPORTS.freeze_new()


M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8
"""Names of settings in glibc's `malloc.h`."""


def give_memory_back() -> None:
    """Have freed weights leave the process at once: they would fill gaps in the heaps of its threads."""
    if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(M_ARENA_MAX, 2)
        mallopt(M_MMAP_THRESHOLD, 4 * 1024**2)


def pytest_configure(config: pytest.Config) -> None:
    """Take part from here on."""
    give_memory_back()
    config.pluginmanager.register(IMPORTS, "frozen_imports")
