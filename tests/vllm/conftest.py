"""The live vLLM server that `MEDEXAM_VLLM_ENDPOINT` names; without it these tests are skipped, and say so."""

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skipped = pytest.mark.skip(reason="MEDEXAM_VLLM_ENDPOINT names no live vLLM server")
    for item in items:
        if "/tests/vllm/" in item.path.as_posix() and "MEDEXAM_VLLM_ENDPOINT" not in os.environ:
            item.add_marker(skipped)


@pytest.fixture
def endpoint() -> str:
    return os.environ["MEDEXAM_VLLM_ENDPOINT"]
