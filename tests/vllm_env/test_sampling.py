"""A model whose folder carries sampling values, at a vLLM server that takes them: replies are those of the spec."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from engine_calls import ask, replies
from fake_vllm import free_port

from medexam.serve import Endpoint, build_engine, probe_endpoint, smollm2_folder
from medexam.specs import EngineNeeds, ModelSpec
from waiting import until

PYTHON = os.environ.get("MEDEXAM_VLLM_PYTHON")
OWN = {"repetition_penalty": 1.1, "top_k": 20, "top_p": 0.8, "temperature": 0.7}
"""What Qwen2.5's models carry."""
KEY = "of-this-test-alone"
WORDS = ("bone", "nerve", "muscle", "vein", "gland", "joint", "organ", "cell")

pytestmark = [
    pytest.mark.vllm_env,
    pytest.mark.skipif(PYTHON is None, reason="MEDEXAM_VLLM_PYTHON names no Python with vLLM"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2's folder with sampling values of its own."""
    made = tmp_path_factory.mktemp("model") / "tiny"
    made.mkdir()
    for path in smollm2_folder().iterdir():
        (made / path.name).symlink_to(path)
    usual = json.loads((made / "generation_config.json").read_text(encoding="utf-8"))
    (made / "generation_config.json").unlink()
    (made / "generation_config.json").write_text(json.dumps({**usual, **OWN}), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def filling(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that takes them from there, as vLLM does by itself."""
    port, logs = free_port(), tmp_path_factory.mktemp("log")
    medexam = str(Path(sys.executable).with_name("medexam"))
    command = [medexam, "serve", str(folder), "--python", str(PYTHON), "--port", str(port), "--folder", str(logs)]
    command += ["--", "--max-model-len", "512", "--dtype", "float32", "--enforce-eager", "--generation-config", "auto"]
    with subprocess.Popen(command, env={**os.environ, "VLLM_API_KEY": KEY}) as server:
        try:
            until(lambda: _is_healthy(port) or server.poll() is not None, "the server", 300.0)
            assert server.poll() is None, f"see {logs}"
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.send_signal(signal.SIGINT)


def _is_healthy(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health").is_success
    except httpx.TransportError:
        return False


async def test_what_it_fills_is_seen(filling: str) -> None:
    seen = await probe_endpoint(Endpoint(filling, KEY), None)
    assert seen.sampling == "neutral"
    assert {"repetition_penalty", "top_k", "top_p"} <= seen.neutral.keys()


async def test_free_replies_are_those_of_the_embedded_engine(filling: str, folder: Path, monkeypatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", KEY)
    asked = [ask(f"What is a {word}?", max_tokens=48) for word in WORDS]
    found = []
    for spec in (ModelSpec(engine="vllm", endpoints=(filling,)), ModelSpec(path=folder, dtype="float32")):
        engine = await build_engine(spec, EngineNeeds(chat=True))
        found.append([one.words for one in await replies(engine, asked)])
        await engine.aclose()
    assert found[0] == found[1]
