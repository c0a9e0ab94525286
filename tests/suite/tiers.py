"""Which tests the fast tier leaves out beside those that are marked: those that run whole commands or use a store."""

import pytest

WHOLE = frozenset(("medexam", "empty_store", "desk", "compiled_umap", "pip_and_setuptools", "tiny_llama"))
"""Fixtures of the command line, of MLflow's store, and of what takes seconds to make."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use such a fixture, themselves or by another one."""
    for item in items:
        if not WHOLE.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("whole")
