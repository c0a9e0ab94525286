"""The live vLLM server that `MEDEXAM_VLLM_ENDPOINT` names; without it these tests are skipped, and say so."""

import asyncio
import os
from typing import Any

import pytest

from medexam.serve import NO_KEY, Capabilities, Endpoint, normalise_address, probe_endpoint


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


@pytest.fixture(scope="session")
def capabilities() -> Capabilities:
    """What the server honours, by a probe."""
    address = normalise_address(os.environ["MEDEXAM_VLLM_ENDPOINT"])
    return asyncio.run(probe_endpoint(Endpoint(address, os.environ.get("VLLM_API_KEY", NO_KEY)), None))


@pytest.fixture(autouse=True)
def _probed_once(capabilities: Capabilities, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines take that probe for theirs: on two processors one takes longer than most tests."""

    async def look(endpoint: Endpoint, name: str | None, *, pictures: bool, tools: bool, **limits: Any) -> Capabilities:
        if pictures or tools or name not in (None, capabilities.model):
            return await probe_endpoint(endpoint, name, pictures=pictures, tools=tools, **limits)
        return capabilities

    monkeypatch.setattr("medexam.serve.engines.connect.probe_endpoint", look)
