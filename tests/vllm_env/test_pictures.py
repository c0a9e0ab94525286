"""A real vLLM server with a tiny vision model: it takes our requests, and other pictures make other replies."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_vllm import free_port

from drawn_pictures import draw, write_own
from medexam.experiments import Runner, plan_spec
from tiny_vision import save_vision_model
from watching import Silent

PYTHON = os.environ.get("MEDEXAM_VLLM_PYTHON")
LOAD_S = 600.0

pytestmark = [
    pytest.mark.vllm_env,
    pytest.mark.skipif(PYTHON is None, reason="MEDEXAM_VLLM_PYTHON names no Python with vLLM"),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder, port = tmp_path_factory.mktemp("vision"), free_port()
    flags = {
        "--model": save_vision_model(folder / "model"),
        "--served-model-name": "tiny",
        "--host": "127.0.0.1",
        "--port": port,
        "--max-model-len": 2048,
        "--block-size": 32,
        "--dtype": "float32",
        # Random weights would write blanks between the signs of JSON until the budget ends.
        "--structured-outputs-config": '{"backend": "xgrammar", "disable_any_whitespace": true}',
    }
    words = [str(word) for flag in flags.items() for word in flag]
    command = [str(PYTHON), "-m", "vllm.entrypoints.openai.api_server", *words, "--enforce-eager"]
    environment = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1"}
    environment.pop("PYTHONPATH", None)
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, env=environment, stdout=log, stderr=log) as server,
    ):
        try:
            _wait(server, f"http://127.0.0.1:{port}/health", folder / "log")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()


def _wait(server: "subprocess.Popen[bytes]", health: str, log: Path) -> None:
    until = time.monotonic() + LOAD_S
    while time.monotonic() < until and server.poll() is None:
        try:
            if httpx.get(health, trust_env=False).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    pytest.fail(f"the server did not start: {log.read_text()[-2000:]}")


@pytest.fixture
def spec(address: str, tmp_path: Path) -> dict[str, Any]:
    """Three questions of the same words: a picture, the same again, and another one."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "circle.png").write_bytes(draw((900, 600)))
    (data / "black.jpg").write_bytes(draw((300, 300), "JPEG", colour="black"))
    path = write_own(data, "circle.png", "circle.png", "black.jpg")
    for number in (2, 3):
        path.write_text(path.read_text().replace(f"drawn in {number}?", "drawn in 1?"))
    return {
        "name": "seen",
        "dataset": {"kind": "choice", "path": str(path)},
        "model": {"engine": "vllm", "endpoints": [address], "max_tokens": 24},
        "program": {"kind": "zero_shot", "images": "shown"},
    }


def carry_out(spec: dict[str, Any], tmp_path: Path) -> Any:
    (run,), stop = Runner(plan_spec(spec, {}, runs_dir=tmp_path / "runs"), Silent()).run()
    assert (stop, run.status) == (None, "complete")
    return run.folder.read_predictions()


def test_other_pictures_make_other_replies(spec: dict[str, Any], tmp_path: Path) -> None:
    shown = carry_out(spec, tmp_path)
    assert shown["q1"].reply == shown["q2"].reply != shown["q3"].reply
    hidden = carry_out(spec | {"program": {"kind": "zero_shot"}}, tmp_path)
    assert len({one.reply for one in hidden.values()}) == 1
    assert all(shown[key].prompt_tokens > hidden[key].prompt_tokens for key in shown)


@pytest.mark.parametrize("kind", ["zero_shot", "chain_of_thought"])
def test_guided_answers_to_pictures_are_legal(spec: dict[str, Any], tmp_path: Path, kind: str) -> None:
    program = {"kind": kind, "images": "shown", "answer_format": "guided", "image_side": 128}
    predictions = carry_out(spec | {"program": program}, tmp_path)
    assert all(one.answer in (1, 2, 3) for one in predictions.values())
