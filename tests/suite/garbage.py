"""What imports leave behind is never garbage, and is not searched for any: that took a seventh of the suite's time."""

import gc
import sys
from collections.abc import Iterator

import pytest

MANY = 200
"""Modules that tests imported, after which the objects alive are frozen anew."""


class FrozenImports:
    """Freezes what is alive between files."""

    def __init__(self) -> None:
        self._modules = 0
        """Modules that were imported when objects were frozen last."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Iterator[None]:
        """Import the tests' modules without a search."""
        gc.disable()
        try:
            return (yield)
        finally:
            gc.enable()

    def freeze_new(self) -> None:
        """Freeze what is alive, if many modules were imported since, or nothing is frozen."""
        if len(sys.modules) > self._modules + MANY or not gc.get_freeze_count():
            gc.collect()
            gc.freeze()
            self._modules = len(sys.modules)


IMPORTS = FrozenImports()


@pytest.fixture(scope="module", autouse=True)
def _frozen_imports() -> None:
    """Objects of earlier files and imports are not searched."""
    IMPORTS.freeze_new()


def pytest_configure(config: pytest.Config) -> None:
    """Take part from here on."""
    config.pluginmanager.register(IMPORTS, "frozen_imports")
