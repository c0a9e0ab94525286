"""Servers that a run starts for itself: used with their key, restarted, and gone with the run."""

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest
import yaml
from engine_calls import GUIDED, ask, reply
from fake_vllm import call_it_the_cpu_build, write_fake_vllm, write_model_folder

from medexam.serve import TIMING, build_engine
from medexam.specs import ModelSpec
from waiting import soon

CHOICE = ask(choices=["1", "2"])
ANSWERING = """
import argparse, os, sys, time
from wire_server import Server, Wire, build_handler
from medexam.serve import TIMING
parser = argparse.ArgumentParser()
for name in ("served-model-name", "host", "die", "loads"):
    parser.add_argument("--" + name)
parser.add_argument("--port", type=int)
args, _ = parser.parse_known_args()
if args.die:
    sys.exit("no weights")
if args.loads == "for-ever":
    time.sleep(3600)
Handler = build_handler(Wire(models=(args.served_model_name,), key=os.environ["VLLM_API_KEY"]))

class Healthy(Handler):
    def do_GET(self):
        if self.path != "/health":
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

Server((args.host, args.port), Healthy).serve_forever()
"""


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A profile whose server speaks the wire."""
    site = tmp_path / "site"
    write_fake_vllm(site, server=ANSWERING)
    call_it_the_cpu_build(site)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), str(Path(__file__).parents[1])]))
    monkeypatch.setenv("MEDEXAM_VLLM_PYTHON", sys.executable)
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    monkeypatch.setattr(TIMING, "first_pause_s", 0.1)
    monkeypatch.setattr(TIMING, "poll_s", 0.1)
    model = write_model_folder(tmp_path)
    facts = {"weights_gb": 0.1, "layers": 2, "kv_heads": 2, "head_dim": 64, "context_limit": 2048, "licence": "MIT"}
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump({"model": str(model), **facts, "on_cpu": True}))
    return path


def processes_of(folder: Path) -> list[int]:
    """Servers that run with a model in the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(folder) in words and "api_server" in words:
                found.append(int(path.parent.name))
    return found


async def test_a_server_outlives_a_crash_and_ends_with_the_engine(profile: Path, tmp_path: Path) -> None:
    engine = await build_engine(ModelSpec(engine="vllm", profile=str(profile), start=True), GUIDED)
    try:
        assert engine.info().model == "Tiny-1B"
        assert (await reply(engine, CHOICE)).reply in ("1", "2")
        first = processes_of(tmp_path)
        for process in first:
            os.kill(process, signal.SIGKILL)
        await soon(lambda: set(processes_of(tmp_path)) - set(first), "the restart")
        assert (await reply(engine, CHOICE)).reply in ("1", "2")
    finally:
        await engine.aclose()
    await soon(lambda: not processes_of(tmp_path), "the end of all processes")
