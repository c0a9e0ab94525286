"""What the fast tier leaves out beside tests that are marked: whole commands, stores, and files that take seconds."""

import pytest

WHOLE = frozenset(("medexam", "empty_store", "desk", "compiled_umap", "pip_and_setuptools", "tiny_llama"))
"""Fixtures of the command line, of MLflow's store, and of what takes seconds to make."""
SECONDS = (
    "bench/test_cluster_simulation.py",
    "cli/test_serve.py",
    "companions/booklets/test_build_command.py",
    "companions/booklets/test_geometry.py",
    "companions/booklets/test_layout.py",
    "companions/booklets/test_producers.py",
    "companions/booklets/test_tables.py",
    "datasets/test_symbols.py",
    "experiments/api/test_evaluations.py",
    "experiments/compare/test_task_comparing.py",
    "experiments/optimize/",
    "experiments/pictures/test_runs.py",
    "experiments/report/plots/test_pictures.py",
    "experiments/run/test_batches.py",
    "experiments/run/test_stopping.py",
    "experiments/run/workers/",
    "experiments/test_demo.py",
    "experiments/track/test_stores_that_fail.py",
    "generated/",
    "metrics/test_contrasts.py",
    "retrievers/test_contents.py",
    "retrievers/test_index_search.py",
    "retrievers/test_sharded.py",
    "retrievers/test_streaming.py",
    "serve/diagnostics/test_diagnosis.py",
    "serve/engines/test_dialogues.py",
    "serve/network/test_hostile_servers.py",
    "soak/",
)
"""Files and folders that start processes, train, or compute much."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use such a fixture, themselves or by another one, or lie in such a file."""
    for item in items:
        place = item.nodeid.removeprefix("tests/")
        if place.startswith(SECONDS) or not WHOLE.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("whole")
