"""What the first node finds of another, which here is a thread that says what it is told to."""

import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from medexam.companions.serving import TIMING, JobNode, check_between
from waiting import BACKSTOP_S, until

HEAD = JobNode("7", "0", "1", 0, 2, "n1", ("n1", "n2"))


@pytest.fixture(autouse=True)
def loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "lo")
    monkeypatch.setattr(TIMING, "nodes_s", BACKSTOP_S)


def speak(shared: Path, late_s: float, locked: bool) -> None:
    until((HEAD.folder(shared) / "meeting.json").exists)
    word = json.loads((HEAD.folder(shared) / "meeting.json").read_text(encoding="utf-8"))
    deadline = time.monotonic() + BACKSTOP_S
    while time.monotonic() < deadline:
        try:
            connection = socket.create_connection((word["address"], word["port"]))
            break
        except ConnectionRefusedError:
            time.sleep(0.02)
    with connection, connection.makefile("rw") as stream:
        stream.write(json.dumps({"name": "n2", "time": time.time() - late_s, "locked": locked}) + "\n")
        stream.flush()
        stream.readline()


@pytest.mark.parametrize(
    ("late_s", "locked", "fault"),
    [
        (0.0, False, None),
        (200.0, False, "the clock of n2 differs by 200 s; ask for NTP on the nodes"),
        (-90.0, False, "the clock of n2 differs by -90 s"),
        (0.0, True, "n2 took a lock that is held here; name a registry on storage with locks"),
    ],
)
def test_clocks_and_locks(tmp_path: Path, late_s: float, locked: bool, fault: str | None) -> None:
    other = threading.Thread(target=speak, args=(tmp_path, late_s, locked))
    other.start()
    (found,) = check_between(HEAD, tmp_path)
    other.join()
    assert (found.fault or "").startswith(fault or "")
    assert (found.fault is None) == (fault is None)
    assert "reached at 127.0.0.1 (lo) by n2" in found.observation


def test_a_node_that_does_not_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TIMING, "nodes_s", 0.3)
    (found,) = check_between(HEAD, tmp_path)
    assert (found.fault or "").startswith("0 of 1 other nodes reached 127.0.0.1 port ")


def test_both_nodes_for_real(tmp_path: Path) -> None:
    second = JobNode("7", "0", "1", 1, 2, "n2", ("n1", "n2"))
    theirs: list[Any] = []
    other = threading.Thread(target=lambda: theirs.extend(check_between(second, tmp_path)))
    other.start()
    (ours,) = check_between(HEAD, tmp_path)
    other.join()
    assert ours.fault is None
    assert [one.fault for one in theirs] == [None]
    assert list(check_between(JobNode("7", "0", "1", 0, 1, "n1", ("n1",)), tmp_path)) == []
