"""One node of a Slurm job: its place among the others, by which address they reach it, and where its servers run.

The first node of a server over several chooses where all meet, and writes it on shared storage. Slurm's variables say
everything else.
"""

import json
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from medexam.errors import EngineError
from medexam.files import write_whole
from medexam.serve.cluster.job import call_slurm
from medexam.serve.launch.flags import Node
from medexam.serve.launch.ports import next_free
from medexam.serve.timing import TIMING

_PORTS = range(8_000, 24_000, 16)
"""Where the servers of a job begin to look for a port: jobs that start together on one node get different ones."""
_MEETING_PORTS = range(29_600, 30_600)
"""Where the nodes of one server begin to look for a port to meet on."""
_POLL_S = 0.2
_ANY_PORT = 9


@dataclass(frozen=True)
class JobNode:
    """A node, as Slurm's variables tell its processes."""

    job: str
    """The job's id."""
    start: str
    """How often the job was requeued, so that nobody takes an earlier start's files for this one's."""
    step: str
    rank: int
    count: int
    name: str
    """The node's name in Slurm."""
    names: tuple[str, ...]
    """Those of all nodes, in order of their ranks."""

    @classmethod
    def find(cls) -> Self:
        """Find the node that this process runs on; raises `EngineError` outside a step of a Slurm job."""
        environment = os.environ
        try:
            nodes = environment["SLURM_STEP_NODELIST"]
            count = int(environment["SLURM_STEP_NUM_NODES"])
            if count != int(environment["SLURM_STEP_NUM_TASKS"]):
                raise EngineError("each node needs exactly one task: write srun --ntasks-per-node=1")
            return cls(
                environment["SLURM_JOB_ID"],
                environment.get("SLURM_RESTART_COUNT", "0"),
                environment["SLURM_STEP_ID"],
                int(environment["SLURM_PROCID"]),
                count,
                environment["SLURMD_NODENAME"],
                tuple(call_slurm("scontrol", "show", "hostnames", nodes).stdout.split()),
            )
        except (KeyError, ValueError):
            raise EngineError(
                "this process is not in a Slurm job: start it with srun inside a job, as in `srun --nodes 2 "
                "--ntasks-per-node 1 medexam ...`"
            ) from None

    @property
    def first_port(self) -> int:
        """Where its servers begin to look for a port."""
        return _PORTS[(int(self.job) + self.rank) % len(_PORTS)]

    def folder(self, shared: Path) -> Path:
        """Return where all nodes of this start of the job write; in a folder that they share."""
        return shared / f"medexam-job-{self.job}" / f"start-{self.start}.{self.step}"

    def meet(self, shared: Path) -> Node:
        """Agree where the nodes of one server meet; raises `EngineError` if this node does not see the first one's
        word.
        """
        path = self.folder(shared) / "meeting.json"
        if self.rank == 0:
            words = call_slurm("scontrol", "show", "node", self.names[-1], "--oneliner").stdout.split()
            address = next((word.partition("=")[2] for word in words if word.startswith("NodeAddr=")), self.names[-1])
            own = head = _own_address(address)
            port = next_free(head, _MEETING_PORTS[int(self.job) % len(_MEETING_PORTS)])
            try:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                write_whole(path, json.dumps({"address": head, "port": port}))
            except OSError as error:
                raise EngineError(f"{path}: cannot be written: {error.strerror}; name another --folder") from None
        else:
            head, port = self._read_meeting(path)
            own = _own_address(head)
        interface = next((name for name, address in _addresses() if address == own), None)
        return Node(self.rank, self.count, head, port, own, interface)

    def _read_meeting(self, path: Path) -> tuple[str, int]:
        deadline = time.monotonic() + TIMING.meeting_s
        while True:
            try:
                list(path.parent.iterdir())  # has NFS look again
                meeting = json.loads(path.read_text(encoding="utf-8"))
                return str(meeting["address"]), int(meeting["port"])
            except (OSError, ValueError):
                if time.monotonic() > deadline:
                    raise EngineError(
                        f"{self.name} does not see {path}, which {self.names[0]} writes, within "
                        f"{TIMING.meeting_s:.0f} s; name a folder on shared storage with --folder"
                    ) from None
            time.sleep(_POLL_S)


def _own_address(peer: str) -> str:
    """Find the address of this machine on the interface that the user chose for NCCL, else on the way to `peer`.

    The route decides, so that a name that stands for 127.0.1.1 in /etc/hosts does no harm. Raises `EngineError` if no
    way leads there.
    """
    interface_name = os.environ.get("NCCL_SOCKET_IFNAME", "").removeprefix("=")
    if preferred := [address for interface, address in _addresses() if interface == interface_name]:
        return min(preferred, key=lambda address: ":" in address)
    try:
        entries = socket.getaddrinfo(peer, _ANY_PORT, type=socket.SOCK_DGRAM)
        family, *_, address = min(entries, key=lambda entry: entry[0] != socket.AF_INET)
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)  # sends nothing
            return str(probe.getsockname()[0])
    except OSError as error:
        raise EngineError(f"no route to the node {peer} ({error}); ask the administrator") from None


def _addresses() -> list[tuple[str, str]]:
    """List the interfaces of this machine with each of their addresses."""
    families = (socket.AF_INET, socket.AF_INET6)
    return [
        (name, entry.address.partition("%")[0])
        for name, entries in psutil.net_if_addrs().items()
        for entry in entries
        if entry.family in families
    ]
