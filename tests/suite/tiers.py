"""What the fast tier leaves out beside tests that are marked: whole commands, stores, and files that take seconds."""

import pytest

WHOLE = frozenset(("medexam", "empty_store", "desk", "compiled_umap", "pip_and_setuptools", "tiny_llama"))
"""Fixtures of the command line, of MLflow's store, and of what takes seconds to make."""
SECONDS = (
    "bench/test_cluster_simulation.py",
    "cli/test_serve.py",
    "companions/audit/test_agreement.py",
    "companions/audit/test_audit.py",
    "companions/booklets/test_bad_input.py",
    "companions/booklets/test_build_command.py",
    "companions/booklets/test_building.py",
    "companions/booklets/test_geometry.py",
    "companions/booklets/test_layout.py",
    "companions/booklets/test_producers.py",
    "companions/booklets/test_tables.py",
    "companions/cliniqlink/measures/test_cliniqlink_scores.py",
    "companions/cliniqlink/measures/test_inverse_and_ngrams.py",
    "companions/cliniqlink/measures/test_semantic_score.py",
    "companions/contamination/test_contrasts.py",
    "companions/finetuning/test_finetuning.py",
    "companions/item_response/test_item_response.py",
    "companions/item_response/test_strengths.py",
    "companions/papers/test_reproduce.py",
    "companions/serving/launch/test_fleet.py",
    "companions/serving/launch/test_vllm_command.py",
    "datasets/own/test_any_layout.py",
    "datasets/test_symbols.py",
    "experiments/api/test_dspy_programs.py",
    "experiments/api/test_evaluations.py",
    "experiments/compare/test_task_comparing.py",
    "experiments/optimize/",
    "experiments/pictures/test_runs.py",
    "experiments/report/plots/test_pictures.py",
    "experiments/report/test_report.py::test_a_plot",
    "experiments/run/test_batches.py",
    "experiments/run/test_golden_flows.py",
    "experiments/run/test_refusals.py",
    "experiments/run/test_stopping.py",
    "experiments/run/workers/",
    "experiments/store/test_run_folder.py::test_a_file_cut_at_any_byte",
    "experiments/test_demo.py",
    "experiments/track/test_names.py",
    "experiments/track/test_stores_that_fail.py",
    "generated/",
    "retrievers/test_contents.py",
    "retrievers/test_index_search.py",
    "retrievers/test_sharded.py",
    "retrievers/test_streaming.py",
    "serve/diagnostics/test_diagnosis.py",
    "serve/engines/test_dialogues.py",
    "serve/launch/test_own_servers.py",
    "serve/network/test_hostile_servers.py",
    "serve/network/test_provider_table.py",
    "soak/",
    "test_release.py::test_what_is_imported",
)
"""Files, folders and tests that start processes, train, or compute much."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use such a fixture, themselves or by another one, or lie in such a file."""
    for item in items:
        place = item.nodeid.removeprefix("tests/")
        if place.startswith(SECONDS) or not WHOLE.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("whole")
