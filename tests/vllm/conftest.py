"""The live vLLM server that `MEDEXAM_VLLM_ENDPOINT` names; without it these tests are skipped, and say so."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import web
from engine_calls import GUIDED

from chaos.faulty_proxy import Proxy, proxying
from medexam.serve import Endpoint, Engine, build_engine, normalise_address, probe_endpoint
from medexam.specs import EngineNeeds, ModelSpec


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skipped = pytest.mark.skip(reason="MEDEXAM_VLLM_ENDPOINT names no live vLLM server")
    for item in items:
        if "/tests/vllm/" in item.path.as_posix() and "MEDEXAM_VLLM_ENDPOINT" not in os.environ:
            item.add_marker(skipped)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's key, where it asks for one."""
    monkeypatch.setenv("VLLM_API_KEY", os.environ.get("VLLM_API_KEY", "EMPTY"))


@pytest.fixture
def headers() -> dict[str, str]:
    """What a client of its own sends."""
    return {"Authorization": f"Bearer {os.environ['VLLM_API_KEY']}"}


@pytest.fixture
def endpoint() -> str:
    return normalise_address(os.environ["MEDEXAM_VLLM_ENDPOINT"])


@pytest.fixture(scope="session")
def capabilities() -> Any:
    """What the server honours, by a probe."""
    address = normalise_address(os.environ["MEDEXAM_VLLM_ENDPOINT"])
    return asyncio.run(probe_endpoint(Endpoint(address, os.environ.get("VLLM_API_KEY", "EMPTY")), None))


@pytest.fixture(scope="session")
def engine() -> "Any":
    """The engine that most tests ask, connected once: on two processors a probe takes longer than most of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_API_KEY", os.environ.get("VLLM_API_KEY", "EMPTY"))
        address = normalise_address(os.environ["MEDEXAM_VLLM_ENDPOINT"])
        built = asyncio.run(build_engine(ModelSpec(engine="vllm", endpoints=(address,)), GUIDED))
    yield built
    asyncio.run(built.aclose())


@dataclass
class Limited(Proxy):
    """Stands before the server and has it honour less: paths that are not served, fields that are not heard."""

    missing: tuple[str, ...] = ()
    unheard: tuple[str, ...] = ()
    takes_system: bool = True

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer as a server that knows no such path, or whose template refuses a system message."""
        body = await request.read()
        sent = json.loads(body) if body else {}
        roles = [turn["role"] for turn in sent.get("messages", ())]
        if request.path in self.missing:
            return web.json_response({"detail": "Not Found"}, status=404)
        if "system" in roles and not self.takes_system:
            return web.json_response({"error": {"message": "the template refuses a system turn"}}, status=400)
        return await super().handle(request)

    def change(self, body: bytes) -> bytes:
        """Leave out what is not heard."""
        sent = json.loads(body) if body else {}
        return json.dumps({name: value for name, value in sent.items() if name not in self.unheard}).encode()


@pytest.fixture
def limited(endpoint: str):
    """`async with limited(unheard=...) as engine`: an engine at a server that honours less."""

    @asynccontextmanager
    async def reach(needs: EngineNeeds = GUIDED, **limits: Any) -> AsyncIterator[Engine]:
        proxy = Limited(endpoint, faults={}, **limits)
        with proxying(proxy):
            built = await build_engine(ModelSpec(engine="vllm", endpoints=(proxy.address,)), needs)
            try:
                yield built
            finally:
                await built.aclose()

    return reach
