"""A server that is kept running, with a package that calls itself vllm and serves nothing but `/health`."""

import contextlib
import os
import socket
import stat
import subprocess
import sys
import textwrap
from pathlib import Path
from socket import gethostname

import httpx
import pytest
from fake_vllm import free_port, write_fake_vllm

from medexam.errors import EngineError
from medexam.serve import TIMING, Launch, Registry, VLLMServer, plan_server
from waiting import until

FOR_EVER = ("--loads-until", "/no such file")


@pytest.fixture(autouse=True)
def _fake_vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_fake_vllm(tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    for name, seconds in (("first_pause_s", 0.05), ("tick_s", 0.02), ("grace_s", 0.5)):
        monkeypatch.setattr(TIMING, name, seconds)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "servers")


def plan(*flags: str, port: int | None = None) -> Launch:
    port = port or free_port()
    command = (sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", "m", "--host", "127.0.0.1")
    return Launch((*command, "--port", str(port), *flags), f"http://127.0.0.1:{port}/v1", model="tiny")


def running(folder: Path) -> list[int]:
    """Processes that were started from the tests' vllm, guards and workers among them."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if str(folder / "site").encode() in environment.read_bytes():
                found.append(int(environment.parent.name))
        except OSError:
            continue
    return found


def test_it_is_told_to_the_registry_as_soon_as_it_answers(tmp_path: Path, registry: Registry) -> None:
    launch = plan("--loads-until", str(tmp_path / "seen"))

    def progress(_seconds: float, line: str) -> None:
        addresses = [one.address for one in registry.read(ready=False)]
        if (registry.read(), addresses) == ((), [launch.address]) and line.startswith("loading"):
            (tmp_path / "seen").touch()

    access = {"key": "s3cret", "registry": registry, "job": "17"}
    with VLLMServer(launch, logs=tmp_path / "logs", **access) as server:
        server.wait_healthy(progress)
        assert server.address == launch.address
        (entry,) = registry.read()
        assert (entry.address, entry.model, entry.host) == (launch.address, "tiny", gethostname())
        assert (entry.job, entry.key) == ("17", "s3cret")
        assert httpx.get(f"http://127.0.0.1:{launch.port}/health", trust_env=False).status_code == 200
        # The key is in the server's environment and in the registry alone.
        pids = running(tmp_path)
        assert not [pid for pid in pids if b"s3cret" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        files = [path for path in tmp_path.rglob("*") if path.is_file() and b"s3cret" in path.read_bytes()]
        assert [path.parent for path in files] == [registry.path]
        assert "s3cret" not in f"{launch}{launch!r}"
        assert "VLLM_API_KEY" not in os.environ
    assert (tmp_path / "seen").exists()
    assert len(pids) > 2
    assert registry.read() == registry.read(ready=False) == ()
    assert not running(tmp_path)
    assert server.log.name == f"vllm-{launch.port}.log"
    assert "with a key" in server.log.read_text()
    assert stat.S_IMODE(server.log.stat().st_mode) == 0o600


def test_one_that_dies_while_loading_says_why(tmp_path: Path, registry: Registry) -> None:
    port = free_port()
    server = VLLMServer(plan("--die", f"{port}:disk full", port=port), logs=tmp_path, registry=registry)
    with pytest.raises(EngineError, match=r"no weights: .*disk full"), server:
        server.wait_healthy()
    assert registry.read() == ()
    assert not running(tmp_path)


def test_a_taken_port_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EngineError, match="choose another with --port, or stop what listens there"):
            plan_server("Qwen/Qwen3-8B", port=port)
    # While another process's server loads, its port belongs to it.
    code = f"from medexam.serve import *; plan_server('Qwen/Qwen3-8B', port={port}); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        told = f"port {port} on 127.0.0.1 cannot be used.*--port.*still loading"
        until(lambda: other.poll() is not None or port_is_claimed(port), "its claim")
        with pytest.raises(EngineError, match=told):
            plan_server("Qwen/Qwen3-8B", port=port)
        other.communicate(b"\n")


def port_is_claimed(port: int) -> bool:
    return f"@medexam-port-{port}\n" in Path("/proc/net/unix").read_text()


def test_two_plans_at_once_choose_different_ports(tmp_path: Path) -> None:
    first, second = (plan_server("Qwen/Qwen3-8B") for _ in range(2))
    assert first.port != second.port


def test_one_that_will_not_stop_is_killed(tmp_path: Path) -> None:
    def give_up(_seconds: float, line: str) -> None:
        if line.startswith("loading"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), VLLMServer(plan(*FOR_EVER, "--stubborn", "1"), logs=tmp_path) as server:
        server.wait_healthy(give_up)
    assert not running(tmp_path)


def test_a_crashed_one_is_started_again_and_is_not_in_the_registry_meanwhile(
    tmp_path: Path, registry: Registry
) -> None:
    sign = tmp_path / "crash"
    crashing = plan("--crash-once-on", str(sign))
    told: list[tuple[str, list[str]]] = []

    def notify(line: str) -> None:
        told.append((line, [one.address for one in registry.read()]))
        if len(told) == 2:
            raise KeyboardInterrupt

    server = VLLMServer(crashing, logs=tmp_path / "logs", registry=registry, notify=notify)
    with contextlib.suppress(KeyboardInterrupt), server:
        server.wait_healthy()
        sign.touch()
        server.watch()
    (crash, meanwhile), again = told
    assert "ended with exit code 13; it is started again in 0 s" in crash
    assert meanwhile == []
    assert again == (f"{crashing.address} answers again", [crashing.address])
    assert "CUDA error" in server.log.with_suffix(".1.log").read_text()
    assert registry.read() == ()
    assert not running(tmp_path)


def test_one_that_crashes_too_often_is_given_up(tmp_path: Path, registry: Registry) -> None:
    told: list[str] = []
    sign = tmp_path / "crash"
    crashing = plan("--crash-on", str(sign))
    with VLLMServer(crashing, logs=tmp_path, registry=registry, restarts=1, notify=told.append) as server:
        server.wait_healthy()
        sign.touch()
        with pytest.raises(EngineError, match=r"exit code 13; the last lines of .*\n(.*\n)*CUDA error"):
            server.watch()
    assert sum("started again" in line for line in told) == 1
    assert len(list(tmp_path.glob("vllm-*.log"))) == 2, "each start has a log"
    assert registry.read() == ()


def test_servers_have_the_name_by_which_other_machines_reach_them(tmp_path: Path, registry: Registry) -> None:
    launch = plan()
    with VLLMServer(launch, logs=tmp_path, registry=registry, host="node7") as server:
        server.wait_healthy()
        assert [one.address for one in registry.read()] == [launch.address.replace("127.0.0.1", "node7")]


def test_what_cannot_be_written_is_known_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    registry = Registry(tmp_path / "file" / "servers")
    with pytest.raises(EngineError, match="cannot be written"), VLLMServer(plan(), logs=tmp_path, registry=registry):
        pass
    with pytest.raises(EngineError, match="another folder with --folder"), VLLMServer(plan(), logs=tmp_path / "file"):
        pass
    assert not running(tmp_path)


SUPERVISOR = """
import sys
from pathlib import Path
from medexam.serve import Launch, Registry, VLLMServer
port, folder = int(sys.argv[1]), Path(sys.argv[2])
command = (sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", "m", "--host", "127.0.0.1")
launch = Launch((*command, "--port", str(port), *sys.argv[3:]), f"http://127.0.0.1:{port}/v1", model="tiny")
with VLLMServer(launch, logs=folder, registry=Registry(folder / "servers")) as server:
    server.wait_healthy()
    print("healthy", flush=True)
    server.watch()
"""


def test_servers_do_not_outlive_a_supervisor_that_is_killed(tmp_path: Path, registry: Registry) -> None:
    command = [sys.executable, "-c", textwrap.dedent(SUPERVISOR), str(free_port()), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == "healthy\n"
        (entry,) = registry.read()
        assert entry.pid in running(tmp_path)
        supervisor.kill()
    until(lambda: not running(tmp_path) and registry.read() == ())


def test_a_node_that_only_computes_is_not_waited_for(tmp_path: Path) -> None:
    launch = Launch((sys.executable, "-c", "import time; time.sleep(600)"), "")
    with VLLMServer(launch, logs=tmp_path) as server:
        server.wait_healthy()
        assert not server.address
