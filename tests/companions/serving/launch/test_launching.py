"""Starting and stopping servers, with a package that calls itself vllm and serves nothing but `/health`."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from fake_vllm import free_port, write_fake_vllm

from medexam.companions.serving.launch.fleet import ClientAccess, Fleet
from medexam.companions.serving.launch.ports import check_free, claim_port, listening_process, next_free
from medexam.companions.serving.launch.processes import Launch, ServerProcess, group_lives
from medexam.errors import EngineError
from waiting import BACKSTOP_S


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python whose vllm is the one above."""
    write_fake_vllm(tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.delenv("VLLM_API_KEY", raising=False)


pytestmark = pytest.mark.usefixtures("site")


def launch_of(*flags: str, port: int | None = None) -> Launch:
    at = port or free_port()
    command = (sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", "Tiny-1B", "--host", "127.0.0.1")
    root = f"http://127.0.0.1:{at}"
    return Launch((*command, "--port", str(at), *flags), f"{root}/v1")


@contextmanager
def running(launch: Launch, log: Path, key: str | None = None) -> Iterator[ServerProcess]:
    with Fleet([launch], logs=log, access=ClientAccess(key)) as fleet:
        fleet.wait_healthy(BACKSTOP_S)
        yield fleet._servers[0]


def test_the_whole_group_is_stopped(tmp_path: Path) -> None:
    launch = launch_of()
    with running(launch, tmp_path / "logs" / "server.log") as server:
        group = server.pid
        assert httpx.get(launch.health, trust_env=False).status_code == 200
        assert group_lives(group)
        assert server.tail().startswith("loading Tiny-1B")
        with pytest.raises(EngineError, match="choose another with --port"):
            check_free("127.0.0.1", launch.port)
    assert not group_lives(group)
    check_free("127.0.0.1", launch.port)


def test_a_server_that_will_not_stop_is_killed(tmp_path: Path) -> None:
    with running(launch_of("--stubborn", "1"), tmp_path / "server.log") as server:
        group = server.pid
        server.stop(grace_s=0.3)
        assert not group_lives(group)


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        launch = launch_of(port=taken.getsockname()[1])
        holder = rf"process {os.getpid()} \(.*python.*\) listens there; choose another with --port, or stop"
        with pytest.raises(EngineError, match=holder), running(launch, tmp_path):
            pass
        assert next_free("127.0.0.1", taken.getsockname()[1]) > taken.getsockname()[1]
    assert listening_process(1) is None


def test_two_that_choose_a_port_at_once_get_different_ones() -> None:
    start = free_port()
    first, second = next_free("127.0.0.1", start), next_free("127.0.0.1", start)
    assert first < second
    elsewhere = f"from medexam.companions.serving.launch.ports import next_free; print(next_free('127.0.0.1', {start}))"
    assert int(subprocess.check_output([sys.executable, "-c", elsewhere])) > second
    for port in (first, second):
        claim_port(port).close()
    assert next_free("127.0.0.1", start) == start
    claim_port(start).close()


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EngineError, match="another with --log"), running(launch_of(), tmp_path / "file" / "my.log"):
        pass


def test_the_key_is_in_the_servers_environment_alone(tmp_path: Path) -> None:
    launch, log = launch_of(), tmp_path / "my.log"
    log.write_text("old", encoding="utf-8")
    log.chmod(0o644)
    with running(launch, log, key="s3cret") as server:
        assert "with a key" in server.tail()
        assert stat.S_IMODE(log.stat().st_mode) == 0o600
        assert b"s3cret" not in Path(f"/proc/{server.pid}/cmdline").read_bytes()
    assert "s3cret" not in f"{launch}{launch!r}"
    assert "VLLM_API_KEY" not in os.environ


def test_a_node_that_only_computes_is_not_waited_for(tmp_path: Path) -> None:
    with running(Launch((sys.executable, "-c", "import time; time.sleep(600)"), ""), tmp_path) as server:
        server.check_alive()
