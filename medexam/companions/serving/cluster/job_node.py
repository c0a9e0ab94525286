"""One node of a Slurm job: its place among the others, and where its servers run.

The first node of a server over several chooses where all meet, and writes it on shared storage. Slurm's variables say
everything else.
"""

import json
import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from medexam.companions.serving.cluster.addresses import address_of, interface_of, own_address, resolve
from medexam.companions.serving.launch.ports import next_free
from medexam.companions.serving.launch.timing import TIMING
from medexam.companions.serving.launch.vllm_flags import Node
from medexam.toolkit.errors import EngineError
from medexam.toolkit.files import write_whole

_PORTS = range(8_000, 24_000, 16)
"""Where the servers of a job begin to look for a port: jobs that start together on one node get different ones."""
_MEETING_PORTS = range(29_600, 30_600)
"""Where the nodes of one server begin to look for a port to meet on."""
_POLL_S = 0.2
_TIMEOUT_S = 20.0


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
                tuple(_slurm("scontrol", "show", "hostnames", nodes).split()),
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

    def address_of(self, name: str) -> str:
        """Find the address by which Slurm reaches a node."""
        words = _slurm("scontrol", "show", "node", name, "--oneliner").split()
        addresses = [word.partition("=")[2] for word in words if word.startswith("NodeAddr=")]
        return resolve(addresses[0] if addresses else name)

    def meet(self, shared: Path) -> Node:
        """Agree where the nodes of one server meet; raises `EngineError` if this node does not see the first one's
        word.
        """
        path = self.folder(shared) / "meeting.json"
        if self.rank == 0:
            address = _chosen_address() or own_address(self.address_of(self.names[-1]))
            port = next_free(address, _MEETING_PORTS[int(self.job) % len(_MEETING_PORTS)])
            write_shared(path, {"address": address, "port": port})
            head = address
        else:
            word = read_shared(path, TIMING.meeting_s, f"{self.name} does not see {path}, which {self.names[0]} writes")
            head, port = str(word["address"]), int(word["port"])
            address = _chosen_address() or own_address(head)
        return Node(self.rank, self.count, head, port, address, interface_of(address))


def write_shared(path: Path, word: Mapping[str, object]) -> None:
    """Write a word for other nodes; raises `EngineError` if that cannot be done."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, json.dumps(word))
    except OSError as error:
        raise EngineError(f"{path}: cannot be written: {error.strerror}; name another with --slurm-folder") from None


def read_shared(path: Path, timeout_s: float, complaint: str) -> dict[str, Any]:
    """Read another node's word, once it is there; raises `EngineError` with the complaint if it does not come."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            list(path.parent.iterdir())  # has NFS look again
            return dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            if time.monotonic() > deadline:
                raise EngineError(
                    f"{complaint}, within {timeout_s:.0f} s; name a folder on shared storage with --slurm-folder"
                ) from None
        time.sleep(_POLL_S)


def _chosen_address() -> str | None:
    """Return the address on the interface that the user chose for NCCL; None: the route decides."""
    return address_of(os.environ.get("NCCL_SOCKET_IFNAME", "").removeprefix("="))


def _slurm(*command: str) -> str:
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        raise EngineError(f"`{' '.join(command)}` fails: {error}") from None
    return process.stdout
