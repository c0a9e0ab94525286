"""How many processors and how much memory a job asks for on each node: the share that its GPUs are of the node.

A node's size is asked of `sinfo`. Where that is not known, rules of thumb stand in.
"""

import contextlib
import re
import subprocess
from dataclasses import dataclass

from medexam.companions.serving.launch.profile import Profile

_ASK = ("sinfo", "--noheader", "--exact", "--format=%c|%m|%G")
_TIMEOUT_S = 20.0
_GPUS = re.compile(r"gpu(?::[^:,()]+)?:(\d+)")
_CPUS_OF_SERVER, _CPUS_OF_GPU = 4, 4
"""Without a node to share: vLLM asks for two cores and one a GPU; a core counts as two processors."""
_GB_OF_SERVER, _GB_OF_GPU = 16, 16
"""Without a node to share: GB of memory for libraries, tokenizers, and the buffers of each GPU's worker."""
_KEPT = 0.95
"""Part of a node's memory that jobs may take, where one takes the whole node."""


@dataclass(frozen=True)
class NodeKind:
    """Nodes of one size in a partition."""

    cpus: int
    memory_mb: int
    gpus: int


@dataclass(frozen=True)
class Share:
    """What a job takes of each node."""

    cpus: int
    memory_mb: int


def find_nodes(partition: str | None) -> tuple[NodeKind, ...]:
    """Find the kinds of nodes that a job may get; () if no `sinfo` answers here."""
    command = [*_ASK, *([] if partition is None else [f"--partition={partition}"])]
    with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
        process = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)  # noqa: S603
        return tuple(dict.fromkeys(_read(line) for line in process.stdout.splitlines() if line.strip()))
    return ()


def share_of_node(kinds: tuple[NodeKind, ...], gpus: int, profile: Profile | None) -> Share:
    """Share processors and memory out to the servers of one node, which take `gpus` cards; without cards, the whole
    node.

    Among several kinds of nodes the smallest share counts, so that any of them can run the job.
    """
    able = [kind for kind in kinds if kind.gpus >= gpus]
    if able and gpus:
        cpus = min(kind.cpus * gpus // kind.gpus for kind in able)
        memory = min(int(kind.memory_mb * _KEPT * gpus / kind.gpus) for kind in able)
        return Share(max(cpus, 1), memory)
    weights = 0.0 if profile is None else profile.weights_gb
    if gpus:
        return Share(_CPUS_OF_SERVER + _CPUS_OF_GPU * gpus, (_GB_OF_SERVER + _GB_OF_GPU * gpus) * 1000)
    if able:
        return Share(min(kind.cpus for kind in able), min(int(kind.memory_mb * _KEPT) for kind in able))
    return Share(_CPUS_OF_SERVER, int(_GB_OF_SERVER + weights) * 1000)


def _read(line: str) -> NodeKind:
    cpus, memory, generic = line.strip().split("|", 2)
    return NodeKind(int(cpus.rstrip("+")), int(memory.rstrip("+")), sum(map(int, _GPUS.findall(generic))))
