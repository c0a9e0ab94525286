"""What would fail between the nodes of a job: a folder that is not shared, locks, ports that are closed, and clocks.

The first node holds a lock, listens, and writes where; the others try the lock, connect, and send their time.
"""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from medexam.companions.serving.cluster.job_node import JobNode
from medexam.companions.serving.cluster.node_checks import NodeFinding
from medexam.companions.serving.launch.timing import TIMING
from medexam.companions.serving.launch.vllm_flags import Node
from medexam.toolkit.errors import EngineError

_APART_S = 60.0
"""Seconds by which clocks may differ; Munge, by which Slurm knows its nodes, refuses what is older than 300 s."""
_LINE = 4096


def check_between(job_node: JobNode, folder: Path) -> Iterator[NodeFinding]:
    """Yield what this node finds of the others; alone, nothing."""
    if job_node.count == 1:
        return
    lock = job_node.folder(folder) / "probe.lock"
    try:
        if job_node.rank == 0:
            lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with FileLock(lock, timeout=TIMING.nodes_s, mode=0o600):
                yield from _listen(job_node, job_node.meet(folder))
        else:
            yield from _connect(job_node.meet(folder), lock)
    except (EngineError, OSError) as fault:
        yield NodeFinding("nodes", str(fault))


def _listen(job_node: JobNode, node: Node) -> Iterator[NodeFinding]:
    family = socket.AF_INET6 if ":" in node.head else socket.AF_INET
    peers: list[str] = []
    faults: list[str] = []
    with socket.create_server((node.head, node.port), family=family) as server:
        deadline = time.monotonic() + TIMING.nodes_s
        while len(peers) + 1 < job_node.count:
            server.settimeout(max(deadline - time.monotonic(), 0.1))
            try:
                connection, _ = server.accept()
            except TimeoutError:
                break
            with connection, connection.makefile("rw", encoding="utf-8") as stream:
                word = json.loads(stream.readline(_LINE))
                gap_s = time.time() - float(word["time"])
                stream.write(json.dumps({"time": time.time()}) + "\n")
            peers.append(f"{word['name']} {gap_s:+.1f} s")
            if abs(gap_s) > _APART_S:
                faults.append(f"the clock of {word['name']} differs by {gap_s:.0f} s; ask for NTP on the nodes")
            if word["locked"]:
                faults.append(f"{word['name']} took a lock that is held here; name a registry on storage with locks")
    if len(peers) + 1 < job_node.count:
        faults.append(f"{len(peers)} of {job_node.count - 1} other nodes reached {node.head} port {node.port}")
    yield NodeFinding(
        "nodes", "; ".join(faults) or None, f"reached at {node.head} ({node.interface}) by {', '.join(peers)}"
    )


def _connect(node: Node, lock: Path) -> Iterator[NodeFinding]:
    locked = _takes(lock)
    word = {"name": socket.gethostname(), "time": time.time(), "locked": locked}
    try:
        with _patiently(node) as connection, connection.makefile("rw", encoding="utf-8") as stream:
            stream.write(json.dumps({**word, "time": time.time()}) + "\n")
            stream.flush()
            stream.readline(_LINE)
    except OSError as error:
        yield NodeFinding("nodes", f"{node.head} port {node.port} cannot be reached ({error}); ask about firewalls")
        return
    yield NodeFinding("nodes", None, f"{node.head} reached from {node.address} ({node.interface})")


def _patiently(node: Node) -> socket.socket:
    """Connect to the first node, which may begin to listen a moment after it wrote where."""
    deadline = time.monotonic() + TIMING.nodes_s / 6
    while True:
        try:
            return socket.create_connection((node.head, node.port), timeout=TIMING.nodes_s / 6)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def _takes(lock: Path) -> bool:
    """Return whether the lock, which the first node holds, can be taken here: then locks do not hold between nodes."""
    try:
        with FileLock(lock, timeout=0.5, mode=0o600):
            return True
    except Timeout:
        return False
