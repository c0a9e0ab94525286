"""The registry of servers: who runs, and who may read it."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from medexam.errors import EngineError
from medexam.files import process_lives
from medexam.serve import RegisteredServer, Registry
from waiting import until

AWAY = "http://node7:8000/v1"


def entry(address: str = "http://127.0.0.1:8000/v1", **fields) -> RegisteredServer:
    return RegisteredServer(
        **{"address": address, "model": "m", "host": socket.gethostname(), "pid": os.getpid(), **fields}
    )


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "made" / "servers")


def test_what_is_added_is_read_by_another(registry: Registry) -> None:
    assert registry.read() == ()
    one = entry(job="17.0", key="its-own")
    two = entry(AWAY, host="node7", pid=1)
    loads = entry("http://node7:8001/v1", host="node7", pid=1, ready=False)
    registry.add(one)
    registry.add(two, loads)
    other = Registry(registry.path)
    assert (other.read(), other.read(ready=False)) == ((one, two), (loads,))
    assert "its-own" not in repr(other.read())
    registry.remove(one)
    registry.remove(one)
    assert registry.read() == (two,)
    registry.add(entry(AWAY, model="after"))
    assert [found.model for found in registry.read()] == ["after"]


def test_only_the_owner_may_read_it(registry: Registry) -> None:
    registry.add(entry())
    assert {path.stat().st_mode & 0o777 for path in registry.path.iterdir()} == {0o600}
    assert registry.path.stat().st_mode & 0o777 == 0o700


def test_a_job_that_comes_back_takes_the_place_of_its_earlier_start(registry: Registry) -> None:
    registry.add(entry("http://node1:8000/v1", host="node1", job="17.0"), entry(AWAY, host="node7"))
    registry.add(entry("http://node2:8000/v1", host="node2", job="17.0"))
    assert {one.host for one in registry.read()} == {"node7", "node2"}


def test_a_process_of_this_machine_that_ended_counts_no_more(registry: Registry) -> None:
    with subprocess.Popen(["sleep", "600"]) as running:
        registry.add(entry(pid=running.pid), entry(AWAY, host="node7", pid=running.pid))
        assert len(registry.read()) == 2
        running.kill()
    until(lambda: not process_lives(running.pid), "its end")
    assert [one.host for one in registry.read()] == ["node7"]


@pytest.mark.parametrize(
    "text", ["", "{}", "model: x", '{"addr', '{"address": "a", "model": "m", "host": "h", "id": 1}']
)
def test_a_damaged_file_is_named(registry: Registry, text: str) -> None:
    registry.add(entry())
    (registry.path / "other.json").write_text(text, encoding="utf-8")
    with pytest.raises(EngineError, match=r"other\.json: damaged.*remove it, or name another"):
        registry.read()
