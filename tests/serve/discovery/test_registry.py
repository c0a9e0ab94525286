"""The registry of servers: who runs, and writers beside each other."""

import os
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
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
    return Registry(tmp_path / "made" / "servers.json")


def test_what_is_added_is_read_by_another(registry: Registry) -> None:
    assert registry.read() == ()
    one = entry(job="17", key_file=Path("/keys/8000.key"))
    two = entry(AWAY, host="node7", pid=1)
    loads = entry("http://node7:8001/v1", host="node7", pid=1, ready=False)
    registry.add(one)
    registry.add(two, loads)
    other = Registry(registry.path)
    assert (other.read(), other.read(ready=False)) == ((one, two), (loads,))
    registry.remove(one.address, "http://nobody/v1")
    assert registry.read() == (two,)
    registry.add(entry(AWAY, model="after"))
    assert [found.model for found in registry.read()] == ["after"]


def test_only_the_owner_may_read_it(registry: Registry) -> None:
    registry.add(entry())
    assert {path.stat().st_mode & 0o777 for path in registry.path.parent.iterdir()} == {0o600}
    assert registry.path.parent.stat().st_mode & 0o777 == 0o700


def test_a_job_that_comes_back_takes_the_place_of_its_earlier_start(registry: Registry) -> None:
    key = Path("/keys/17-0.key")
    registry.add(entry("http://node1:8000/v1", host="node1", key_file=key), entry(AWAY, host="node7"))
    registry.add(entry("http://node2:8000/v1", host="node2", key_file=key))
    assert [one.host for one in registry.read()] == ["node7", "node2"]


def test_a_process_of_this_machine_that_ended_counts_no_more(registry: Registry) -> None:
    with subprocess.Popen(["sleep", "600"]) as running:
        registry.add(entry(pid=running.pid), entry(AWAY, host="node7", pid=running.pid))
        assert len(registry.read()) == 2
        running.kill()
    until(lambda: not process_lives(running.pid), "its end")
    assert [one.host for one in registry.read()] == ["node7"]


@pytest.mark.parametrize(
    "text", ["", "{}", "model: x", '[{"addr', '[{"address": "a", "model": "m", "host": "h", "id": 1}]']
)
def test_a_damaged_file_is_named_and_not_overwritten(registry: Registry, text: str) -> None:
    registry.path.parent.mkdir()
    registry.path.write_text(text, encoding="utf-8")
    uses = (registry.read, lambda: registry.add(entry()), lambda: registry.remove("x"))
    for use in uses:
        with pytest.raises(EngineError, match=r"servers\.json: damaged.*name another file.*or remove it"):
            use()
    assert registry.path.read_text(encoding="utf-8") == text


def test_writers_beside_each_other_lose_nothing(registry: Registry) -> None:
    def write(node: int) -> None:
        own = Registry(registry.path)
        for port in range(10):
            address = f"http://node{node}:{port}/v1"
            own.add(entry(address, host="elsewhere"))
            if port % 2:
                own.remove(address)

    with ThreadPoolExecutor(3) as pool:
        writing = [pool.submit(write, node) for node in range(3)]
        while not all(one.done() for one in writing):
            registry.read()
    assert [one.result() for one in writing] == [None] * 3
    assert {one.address for one in registry.read()} == {
        f"http://node{node}:{port}/v1" for node in range(3) for port in range(0, 10, 2)
    }
