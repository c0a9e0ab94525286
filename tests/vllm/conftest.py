"""The live vLLM server that `MEDEXAM_VLLM_ENDPOINT` names; without it these tests are skipped, and say so."""

import os

import pytest

from medexam.serve.network.endpoints import NO_KEY


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skipped = pytest.mark.skip(reason="MEDEXAM_VLLM_ENDPOINT names no live vLLM server")
    for item in items:
        if "/tests/vllm/" in item.path.as_posix() and "MEDEXAM_VLLM_ENDPOINT" not in os.environ:
            item.add_marker(skipped)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's key, where it asks for one."""
    monkeypatch.setenv("VLLM_API_KEY", os.environ.get("VLLM_API_KEY", NO_KEY))


@pytest.fixture
def headers() -> dict[str, str]:
    """What a client of its own sends."""
    return {"Authorization": f"Bearer {os.environ['VLLM_API_KEY']}"}


@pytest.fixture
def endpoint() -> str:
    return os.environ["MEDEXAM_VLLM_ENDPOINT"]
