"""A fleet of servers, with a package that calls itself vllm and serves nothing but `/health`."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import httpx
import pytest
from fake_vllm import free_port, write_fake_vllm

from medexam.companions.serving.launch import guard
from medexam.companions.serving.launch.fleet import ClientAccess, Fleet
from medexam.companions.serving.launch.ports import claim_port
from medexam.companions.serving.launch.processes import Launch, group_lives
from medexam.errors import EndpointUnreachableError, EngineError
from medexam.files import host_name
from medexam.serve import RegisteredServer, Registry
from waiting import BACKSTOP_S, until

FOR_EVER = ("--loads-until", "/no such file")


@pytest.fixture(autouse=True)
def _fake_vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_fake_vllm(tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setattr("medexam.companions.serving.launch.processes.FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr("medexam.companions.serving.launch.fleet._TICK_S", 0.02)
    monkeypatch.setattr("medexam.companions.serving.launch.fleet.HEARTBEAT_S", 0.1)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "servers.json")


def plan(*flags: str, port: int | None = None) -> Launch:
    port = port or free_port()
    command = (sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", "m", "--host", "127.0.0.1")
    root = f"http://127.0.0.1:{port}"
    return Launch((*command, "--port", str(port), *flags), f"{root}/v1", model="tiny")


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


def test_each_is_told_to_the_registry_as_soon_as_it_answers(tmp_path: Path, registry: Registry) -> None:
    seen: list[tuple[str, ...]] = []
    loading: list[tuple[str, ...]] = []
    lines: list[str] = []
    quick, slow = plan(), plan("--loads-until", str(tmp_path / "seen"))

    def progress(_seconds: float, line: str) -> None:
        lines.append(line)
        seen.append(tuple(entry.address for entry in registry.read()))
        loading.append(tuple(entry.address for entry in registry.read_loading()))
        if (quick.address,) in seen and (slow.address,) in loading and line.startswith(f"{slow.address}: loading"):
            (tmp_path / "seen").touch()

    key_file = tmp_path / "8000.key"
    with Fleet([quick, slow], logs=tmp_path / "logs", access=ClientAccess("secret", key_file, registry, "17")) as fleet:
        fleet.wait_healthy(BACKSTOP_S, progress)
        assert fleet.addresses == (quick.address, slow.address)
        entries = registry.read()
        assert [(one.address, one.model, one.host) for one in entries] == [
            (launch.address, "tiny", host_name()) for launch in (quick, slow)
        ]
        assert {(one.job, one.key_file) for one in entries} == {("17", key_file)}
    assert (tmp_path / "seen").exists(), (seen, loading, lines)
    assert registry.read_loading() == ()
    assert registry.read() == ()
    assert not running(tmp_path)
    assert [path.name for path in fleet.logs] == [f"vllm-{httpx.URL(one).port}.log" for one in fleet.addresses]
    assert "with a key" in fleet.logs[0].read_text()


def test_the_key_is_on_no_command_line_and_in_no_file(tmp_path: Path, registry: Registry) -> None:
    with Fleet([plan()], logs=tmp_path / "logs", access=ClientAccess("s3cret", registry=registry)) as fleet:
        fleet.wait_healthy(BACKSTOP_S)
        for pid in running(tmp_path):
            assert b"s3cret" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"s3cret" not in path.read_bytes()


def test_a_server_that_dies_while_loading_takes_the_others_along(tmp_path: Path, registry: Registry) -> None:
    port = free_port()
    fleet = Fleet([plan(*FOR_EVER), plan("--die", f"{port}:disk full", port=port)], logs=tmp_path)
    with pytest.raises(EngineError, match=r"no weights: .*disk full"), fleet:
        fleet.wait_healthy(BACKSTOP_S)
    assert registry.read() == ()
    assert not running(tmp_path)


def test_one_that_cannot_start_stops_those_that_did(tmp_path: Path) -> None:
    port = free_port()
    with Fleet([plan(port=port)], logs=tmp_path) as fleet:
        fleet.wait_healthy(BACKSTOP_S)
        second = Fleet([plan(*FOR_EVER), plan(port=port)], logs=tmp_path / "second")
        with pytest.raises(EngineError, match="choose another with --port"), second:
            pass
        taken = socket.create_server(("127.0.0.1", 0))
        third = Fleet([plan(*FOR_EVER), plan(port=taken.getsockname()[1])], logs=tmp_path / "third")
        with taken, pytest.raises(EngineError, match="choose another with --port"), third:
            pass
    assert not running(tmp_path)


def test_a_port_belongs_to_the_first_while_it_loads(tmp_path: Path) -> None:
    port = free_port()
    second = Fleet([plan(port=port)], logs=tmp_path / "second")
    with (
        Fleet([plan(*FOR_EVER, port=port)], logs=tmp_path),
        pytest.raises(EngineError, match=f"port {port} belongs to another server.*--port"),
    ):
        second.__enter__()
    claim_port(port).close()


def test_one_that_loads_too_long(tmp_path: Path) -> None:
    with (
        pytest.raises(EndpointUnreachableError, match=r"not healthy after 0 s.*--timeout"),
        Fleet([plan(), plan(*FOR_EVER)], logs=tmp_path) as fleet,
    ):
        fleet.wait_healthy(0.4)
    assert not running(tmp_path)


def test_a_crashed_one_is_started_again_and_is_not_in_the_registry_meanwhile(
    tmp_path: Path, registry: Registry
) -> None:
    sign = tmp_path / "crash"
    steady, crashing = plan(), plan("--crash-once-on", str(sign))
    told: list[tuple[str, list[str]]] = []

    def notify(line: str) -> None:
        told.append((line, [one.address for one in registry.read()]))

    access = ClientAccess(registry=registry)
    with Fleet([steady, crashing], logs=tmp_path / "logs", access=access, notify=notify) as fleet:
        fleet.wait_healthy(BACKSTOP_S)
        sign.touch()
        watching = threading.Thread(target=fleet.watch)
        watching.start()
        until(lambda: len(told) == 2)
        fleet.stop()
        watching.join(BACKSTOP_S)
        assert not watching.is_alive()
    (crash, meanwhile), again = told
    assert "ended with exit code 13; it is started again in 0 s, 2 more times after that" in crash
    assert meanwhile == [steady.address]
    assert again == (f"{crashing.address} answers again", [steady.address, crashing.address])
    first = fleet.logs[1].with_suffix(".1.log")
    assert "CUDA error" in first.read_text()
    assert registry.read() == ()
    assert not running(tmp_path)


def test_one_that_crashes_too_often_is_given_up(tmp_path: Path, registry: Registry) -> None:
    told: list[str] = []
    sign = tmp_path / "crash"
    crashing = plan("--crash-on", str(sign))
    access = ClientAccess(registry=registry)
    with Fleet([crashing], logs=tmp_path / "my.log", access=access, restarts=2, notify=told.append) as fleet:
        fleet.wait_healthy(BACKSTOP_S)
        sign.touch()
        with pytest.raises(EngineError, match=r"exit code 13; the last lines of .*\n(.*\n)*CUDA error"):
            fleet.watch()
    assert sum("started again" in line for line in told) == 2
    assert {path.name for path in tmp_path.glob("my*.log")} == {"my.log", "my.1.log", "my.2.log"}
    assert registry.read() == ()
    assert not running(tmp_path)


def test_it_writes_itself_into_a_registry_that_was_removed_and_survives_a_damaged_one(
    tmp_path: Path, registry: Registry
) -> None:
    told: list[str] = []
    with Fleet([plan()], logs=tmp_path, access=ClientAccess(registry=registry), notify=told.append) as fleet:
        fleet.wait_healthy(BACKSTOP_S)
        before = registry.read()[0].seen_at
        watching = threading.Thread(target=fleet.watch)
        watching.start()
        until(lambda: registry.read()[0].seen_at > before)
        registry.path.unlink()
        until(lambda: len(registry.read()) == 1)

        def tear() -> list[str]:
            if not told:  # a heartbeat that began before may have put the whole file back
                registry.path.write_text("{torn", encoding="utf-8")
            return told

        until(tear)
        assert "damaged" in told[0]
        registry.path.unlink()
        until(lambda: len(registry.read()) == 1)
        fleet.stop()
        watching.join(BACKSTOP_S)


def test_a_registry_that_cannot_be_written_is_known_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    fleet = Fleet([plan()], logs=tmp_path, access=ClientAccess(registry=Registry(tmp_path / "file" / "servers.json")))
    with pytest.raises(EngineError, match="cannot be written"), fleet:
        pass
    assert not running(tmp_path)


def test_other_machines_reach_it_by_a_name(tmp_path: Path, registry: Registry) -> None:
    launch = plan()
    with Fleet([launch], logs=tmp_path, access=ClientAccess(registry=registry, host="node7")) as fleet:
        fleet.wait_healthy(BACKSTOP_S)
        assert [one.address for one in registry.read()] == [launch.address.replace("127.0.0.1", "node7")]
    assert registry.read() == ()


SUPERVISOR = """
import sys
from pathlib import Path
from medexam.companions.serving.launch.processes import Launch
from medexam.serve.discovery.registry import Registry
from medexam.companions.serving.launch.fleet import ClientAccess, Fleet
port, folder = int(sys.argv[1]), Path(sys.argv[2])
command = (sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", "m", "--host", "127.0.0.1")
root = f"http://127.0.0.1:{port}"
launch = Launch((*command, "--port", str(port), *sys.argv[3:]), f"{root}/v1", model="tiny")
with Fleet([launch], logs=folder, access=ClientAccess(registry=Registry(folder / "servers.json"))) as fleet:
    fleet.wait_healthy(300)
    print(fleet._servers[0].pid, flush=True)
    fleet.watch()
"""


def test_servers_do_not_outlive_a_supervisor_that_is_killed(tmp_path: Path, registry: Registry) -> None:
    command = [sys.executable, "-c", textwrap.dedent(SUPERVISOR), str(free_port()), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None
        group = int(supervisor.stdout.readline())
        assert len(registry.read()) == 1
        supervisor.kill()
    until(lambda: not group_lives(group))
    assert not running(tmp_path)
    assert registry.read() == ()


def test_an_orphan_that_will_not_stop_is_killed(tmp_path: Path) -> None:
    guarding = (
        "import sys; from medexam.companions.serving.launch import guard; "
        "guard.GRACE_S = 0.3; guard.main(1, sys.argv[1:])"
    )
    command = [sys.executable, "-c", guarding, *plan("--stubborn", "1").command]
    with subprocess.Popen(command, start_new_session=True) as orphan:
        assert orphan.wait(BACKSTOP_S) == -signal.SIGKILL
    assert not running(tmp_path)


def test_the_guard_passes_the_exit_code_on(tmp_path: Path) -> None:
    def run(*command: str) -> "subprocess.CompletedProcess[str]":
        guarded = [sys.executable, "-I", "-S", guard.__file__, str(os.getpid()), *command]
        return subprocess.run(guarded, check=False, capture_output=True, text=True, start_new_session=True)

    assert run(sys.executable, "-c", "raise SystemExit(7)").returncode == 7
    assert run("/bin/sh", "-c", "kill -9 $$").returncode == 137
    missing = run(str(tmp_path / "none"))
    assert (missing.returncode, missing.stderr) == (127, f"{tmp_path / 'none'}: No such file or directory\n")


def test_a_registry_entry_is_of_the_guards_process(tmp_path: Path, registry: Registry) -> None:
    with Fleet([plan()], logs=tmp_path, access=ClientAccess(registry=registry)) as fleet:
        fleet.wait_healthy(BACKSTOP_S)
        (entry,) = registry.read()
        assert isinstance(entry, RegisteredServer)
        assert os.getpgid(entry.pid) == entry.pid
