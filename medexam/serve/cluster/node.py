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
from medexam.serve.launch.command import Node, claim_port
from medexam.serve.timing import TIMING


@dataclass(frozen=True)
class JobNode:
    """A node, as Slurm's variables tell its processes."""

    job: str
    start: str
    """How often the job was requeued, so that nobody takes an earlier start's files for this one's."""
    step: str
    rank: int
    count: int
    name: str
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
        """Where its servers begin to look for a port: jobs that start together on one node get different ones."""
        return 8_000 + (int(self.job) + self.rank) % 1_000 * 16

    def folder(self, shared: Path) -> Path:
        """Return where all nodes of this start of the job write; in a folder that they share."""
        return shared / f"medexam-job-{self.job}" / f"start-{self.start}.{self.step}"

    def meet(self, shared: Path) -> Node:
        """Agree where the nodes of one server meet; raises `EngineError` if the first one's word is not seen."""
        path = self.folder(shared) / "meeting.json"
        if self.rank == 0:
            words = call_slurm("scontrol", "show", "node", self.names[-1], "--oneliner").stdout.split()
            last = next((word.partition("=")[2] for word in words if word.startswith("NodeAddr=")), self.names[-1])
            interface, head = _own_address(last)
            port = claim_port(head, start=29_600 + int(self.job) % 1_000)
            try:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                write_whole(path, json.dumps([head, port]))
            except OSError as error:
                raise EngineError(f"{path}: cannot be written: {error.strerror}; name another --folder") from None
            return Node(0, self.count, head, port, head, interface)
        deadline = time.monotonic() + TIMING.meeting_s
        while True:
            try:
                list(path.parent.iterdir())  # has NFS look again
                head, port = json.loads(path.read_text(encoding="utf-8"))
                break
            except (OSError, ValueError):
                if time.monotonic() > deadline:
                    raise EngineError(
                        f"{self.name} does not see {path}, which {self.names[0]} writes, within "
                        f"{TIMING.meeting_s:.0f} s; name a folder on shared storage with --folder"
                    ) from None
            time.sleep(0.2)
        interface, own = _own_address(head)
        return Node(self.rank, self.count, head, port, own, interface)


def _own_address(peer: str) -> tuple[str | None, str]:
    """Find the interface of this machine that the user chose for NCCL, else the one on the way to `peer`, and its
    address.

    The route decides, so that a name that stands for 127.0.1.1 in /etc/hosts does no harm. Raises `EngineError` if no
    way leads there.
    """
    addresses = [
        (interface, entry.address.partition("%")[0])
        for interface, entries in psutil.net_if_addrs().items()
        for entry in entries
        if entry.family in (socket.AF_INET, socket.AF_INET6)
    ]
    chosen = os.environ.get("NCCL_SOCKET_IFNAME", "").removeprefix("=")
    if preferred := [pair for pair in addresses if pair[0] == chosen]:
        return min(preferred, key=lambda pair: ":" in pair[1])
    try:
        entries = socket.getaddrinfo(peer, 9, type=socket.SOCK_DGRAM)
        family, *_, address = min(entries, key=lambda entry: entry[0] != socket.AF_INET)
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)  # sends nothing
            own = str(probe.getsockname()[0])
    except OSError as error:
        raise EngineError(f"no route to the node {peer} ({error}); ask the administrator") from None
    return next((interface for interface, address in addresses if address == own), None), own
