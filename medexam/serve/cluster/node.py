"""One node of a Slurm job: its place among the others, by which address they reach it, and where its servers run.

Slurm's variables and `scontrol` say everything; the nodes exchange nothing.
"""

import os
import socket
from typing import NamedTuple, Self

import psutil

from medexam.errors import EngineError
from medexam.serve.cluster.job import call_slurm
from medexam.serve.launch.command import Node


class JobNode(NamedTuple):
    """A node, as Slurm's variables tell its processes."""

    job: str
    start: str
    """How often the job was requeued."""
    rank: int
    name: str
    names: tuple[str, ...]
    """Those of all nodes, in order of their ranks."""

    @classmethod
    def find(cls) -> Self:
        """Find the node that this process runs on; raises `EngineError` outside a step of a Slurm job."""
        environment = os.environ
        try:
            names = tuple(call_slurm("scontrol", "show", "hostnames", environment["SLURM_STEP_NODELIST"]).split())
            if len(names) != int(environment["SLURM_STEP_NUM_TASKS"]):
                raise EngineError("each node needs exactly one task: write srun --ntasks-per-node=1")
            job, start = environment["SLURM_JOB_ID"], environment.get("SLURM_RESTART_COUNT", "0")
            return cls(job, start, int(environment["SLURM_PROCID"]), environment["SLURMD_NODENAME"], names)
        except (KeyError, ValueError):
            raise EngineError(
                "this process is not in a Slurm job: start it with srun inside a job, as in `srun --nodes 2 "
                "--ntasks-per-node 1 medexam ...`"
            ) from None

    @property
    def first_port(self) -> int:
        """Where its servers begin to look for a port: jobs that start together on one node get different ones."""
        return 8_000 + (int(self.job) + self.rank) % 1_000 * 16

    def join(self) -> Node:
        """Return its place in one server over all nodes, which meet at the first; raises `EngineError` without a way
        there.

        vLLM, NCCL and gloo are told the address on that way: they would choose among several by chance.
        """
        head = _address_of(self.names[0])
        interface, own = _own_address(head if self.rank else _address_of(self.names[-1]))
        variables = {"VLLM_HOST_IP": own}
        if interface is not None:
            variables |= {"NCCL_SOCKET_IFNAME": f"={interface}", "GLOO_SOCKET_IFNAME": interface}
        return Node(self.rank, len(self.names), head, 29_600 + int(self.job) % 1_000, variables)


def _address_of(name: str) -> str:
    words = call_slurm("scontrol", "show", "node", name, "--oneliner").split()
    return next((word.partition("=")[2] for word in words if word.startswith("NodeAddr=")), name)


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
