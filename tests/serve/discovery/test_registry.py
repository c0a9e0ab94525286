"""The registry of servers: who runs, who fell silent, and writers beside each other."""

import errno
import fcntl
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from medexam.errors import EngineError
from medexam.files import process_lives
from medexam.serve import TIMING, RegisteredServer, Registry
from medexam.serve.discovery.registry import local_registry
from waiting import BACKSTOP_S, until


def entry(address: str = "http://127.0.0.1:8000/v1", **fields) -> RegisteredServer:
    return RegisteredServer(
        **{"address": address, "model": "m", "host": socket.gethostname(), "pid": os.getpid(), **fields}
    )


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "made" / "servers.json")


def test_what_is_added_is_read_by_another(registry: Registry) -> None:
    assert registry.read() == ()
    one = entry(job="17", key_file=Path("/keys/8000.key"))
    two = entry("http://node7:8000/v1", host="node7", pid=1)
    registry.add(one)
    registry.add(two)
    assert Registry(registry.path).read() == (one, two)
    registry.remove(one.address, "http://nobody/v1")
    assert registry.read() == (two,)


def test_one_at_the_same_address_is_replaced(registry: Registry) -> None:
    registry.add(entry(model="before"))
    registry.add(entry(model="after"))
    assert [one.model for one in registry.read()] == ["after"]


def test_only_the_owner_may_read_it(registry: Registry) -> None:
    registry.add(entry())
    lock = registry.path.with_name("servers.json.lock")
    assert {path.stat().st_mode & 0o777 for path in (registry.path, lock)} == {0o600}
    assert registry.path.parent.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in registry.path.parent.iterdir()} <= {"servers.json", "servers.json.lock"}


class Clocks:
    """What the reader's two clocks show."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.passed = 0.0
        wall, steady = time.time(), time.monotonic()
        monkeypatch.setattr("medexam.serve.discovery.registry.time.time", lambda: wall + self.passed)
        monkeypatch.setattr("medexam.serve.discovery.registry.time.monotonic", lambda: steady + self.passed)


def test_who_falls_silent_counts_no_more_and_is_dropped_at_the_next_write(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = Clocks(monkeypatch)
    registry.add(entry("http://node7:8000/v1", host="node7"), entry())
    assert len(registry.read()) == 2
    clocks.passed = TIMING.stale_s + 1
    registry.heartbeat(entry().address)
    assert [one.address for one in registry.read()] == [entry().address]
    assert "node7" not in registry.path.read_text(encoding="utf-8")


@pytest.mark.parametrize("apart_s", [-600.0, 600.0])
def test_a_clock_that_is_minutes_apart_is_no_death(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, apart_s: float
) -> None:
    clocks = Clocks(monkeypatch)
    node, reader = Registry(registry.path), Registry(registry.path)

    def beat() -> None:
        node.add(entry("http://node7:8000/v1", host="node7", seen_at=time.time() + apart_s))

    def hosts() -> tuple[list[str], list[str]]:
        return [one.host for one in reader.read()], [one.host for one in reader.read_unsure()]

    beat()
    assert hosts() == ([], ["node7"])
    clocks.passed = 5.0
    reader.add(entry())  # a writer does not drop it either
    assert hosts() == ([entry().host], ["node7"])
    beat()
    for seconds in (5.0, 5.0 + TIMING.stale_s):
        clocks.passed = seconds
        assert "node7" in hosts()[0]
    clocks.passed = 6.0 + TIMING.stale_s  # the last one is too long ago now, whatever it says
    assert "node7" not in hosts()[0] + hosts()[1]


@pytest.mark.parametrize("apart_s", [-600.0, 600.0])
def test_who_died_long_ago_counts_no_more_whatever_its_clock_said(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, apart_s: float
) -> None:
    clocks = Clocks(monkeypatch)
    registry.add(entry("http://node7:8000/v1", host="node7", seen_at=time.time() + apart_s))
    assert registry.read() == ()
    assert len(registry.read_unsure()) == 1
    clocks.passed = TIMING.stale_s + 1
    assert (registry.read(), registry.read_unsure()) == ((), ())


BEAT = """
import sys, time
real = time.time
time.time = lambda: real() + float(sys.argv[2])  # this process's machine is minutes apart
from pathlib import Path
from medexam.serve.discovery.registry import RegisteredServer, Registry
registry = Registry(Path(sys.argv[1]))
registry.add(RegisteredServer(address="http://node7:8000/v1", model="m", host="node7", pid=1))
while True:
    time.sleep(0.1)
    registry.heartbeat("http://node7:8000/v1")
"""


@pytest.mark.parametrize("apart_s", [-600, 600])
def test_a_process_whose_clock_is_apart_is_used_while_it_lives(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, apart_s: int
) -> None:
    monkeypatch.setattr(TIMING, "stale_s", BACKSTOP_S)
    with subprocess.Popen([sys.executable, "-c", BEAT, registry.path, str(apart_s)]) as node:
        until(lambda: [one.host for one in registry.read()] == ["node7"], "the second heartbeat")
        (found,) = registry.read()
        assert abs(found.seen_at - time.time() - apart_s) < 60
        node.kill()
    monkeypatch.setattr(TIMING, "stale_s", 0.5)
    until(lambda: registry.read() == registry.read_unsure() == (), "its end to be seen")


def test_a_process_of_this_machine_that_ended_counts_no_more(registry: Registry) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as running:
        registry.add(entry(pid=running.pid), entry("http://node7:8000/v1", host="node7", pid=running.pid))
        assert len(registry.read()) == 2
        running.kill()
        assert [one.host for one in registry.read() if process_lives(running.pid) or one.host == "node7"]
    assert [one.host for one in registry.read()] == ["node7"]


def test_a_heartbeat_keeps_an_entry_and_names_those_it_does_not_know(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    almost = entry("http://node7:8000/v1", host="node7")
    registry.add(almost)
    clocks = Clocks(monkeypatch)
    clocks.passed = TIMING.stale_s + 1
    assert registry.read() == ()
    assert registry.heartbeat(almost.address, "http://node8:8000/v1") == ("http://node8:8000/v1",)
    (found,) = registry.read()
    assert found.address == almost.address
    assert found.seen_at - almost.seen_at > TIMING.stale_s


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"form": "medexam servers 1", "servers": [{"addr',
        "[]",
        "model: x",
        '{"form": "another"}',
        '{"servers": []}',
    ],
)
def test_a_damaged_file_is_named_and_not_overwritten(registry: Registry, text: str) -> None:
    registry.path.parent.mkdir()
    registry.path.write_text(text, encoding="utf-8")
    for use in (
        registry.read,
        lambda: registry.add(entry()),
        lambda: registry.heartbeat("x"),
        lambda: registry.remove("x"),
    ):
        with pytest.raises(EngineError, match=r"servers\.json: damaged.*name another file.*or remove it"):
            use()
    assert registry.path.read_text(encoding="utf-8") == text


def test_an_entry_without_its_fields(registry: Registry) -> None:
    registry.add(entry())
    registry.path.write_text(registry.path.read_text().replace('"pid"', '"id"'), encoding="utf-8")
    with pytest.raises(EngineError, match="damaged"):
        registry.read()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EngineError, match=r"cannot be written.*--registry"):
        Registry(tmp_path / "file" / "servers.json").add(entry())


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL])
def test_a_file_system_without_locks(registry: Registry, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(EngineError, match=rf"cannot be written: .*{os.strerror(number)}; name one in another folder"):
        registry.add(entry())
    assert registry.read() == ()


def test_a_lock_that_is_held(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TIMING, "registry_lock_s", 0.05)
    with registry._rewriting(), pytest.raises(EngineError, match=r"servers\.json\.lock"):
        Registry(registry.path).add(entry())


ADD_AND_BEAT = """
import sys
from pathlib import Path
from medexam.serve.discovery.registry import RegisteredServer, Registry
from medexam.serve import TIMING
registry = Registry(Path(sys.argv[1]))
for port in range(20):
    address = f"http://node{sys.argv[2]}:{port}/v1"
    registry.add(RegisteredServer(address=address, model="m", host="elsewhere", pid=1))
    assert registry.heartbeat(address) == ()
    if port % 2:
        registry.remove(address)
"""


def test_writers_beside_each_other_lose_nothing(registry: Registry) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", ADD_AND_BEAT, registry.path, str(n)]) for n in range(3)]
    while any(writer.poll() is None for writer in writers):
        registry.read()
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert {one.address for one in registry.read()} == {
        f"http://node{n}:{port}/v1" for n in range(3) for port in range(0, 20, 2)
    }


def test_this_machines_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path))
    assert local_registry().path == tmp_path / "servers.json"
