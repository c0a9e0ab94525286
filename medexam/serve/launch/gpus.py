"""The GPUs of this machine, asked of `nvidia-smi`, which comes with every driver; no library is loaded for it."""

import contextlib
import os
import subprocess
from dataclasses import dataclass

_ASK = ("nvidia-smi", "--query-gpu=index,uuid,name,memory.total,memory.free", "--format=csv,noheader,nounits")
_TIMEOUT_S = 30.0
_GB_PER_MIB = 2**20 / 1e9


@dataclass(frozen=True)
class Gpu:
    """One card."""

    index: int
    """Its place in the order of the PCI bus, as `nvidia-smi` counts."""
    name: str
    total_gb: float
    """Memory in GB (10^9 bytes)."""
    free_gb: float
    uuid: str = ""

    def __str__(self) -> str:
        """Describe one card for an error's line."""
        return f"GPU {self.index} ({self.name}, {self.free_gb:.1f} of {self.total_gb:.1f} GB free)"


def find_gpus() -> tuple[Gpu, ...]:
    """Find the cards that this process may use, in the order of CUDA_VISIBLE_DEVICES if it is set.

    () without a driver or a card, or if the card reports no memory of its own. As for CUDA, an entry of
    CUDA_VISIBLE_DEVICES that names no card ends the list.
    """
    try:
        process = subprocess.run(_ASK, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ()
    gpus: list[Gpu] = []
    for line in process.stdout.splitlines():
        with contextlib.suppress(ValueError):
            index, uuid, name, total, free = (part.strip() for part in line.split(","))
            gpus.append(Gpu(int(index), name, float(total) * _GB_PER_MIB, float(free) * _GB_PER_MIB, uuid))
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is None:
        return tuple(gpus)
    selected: list[Gpu] = []
    for entry in (part.strip() for part in visible.split(",")):
        match = [gpu for gpu in gpus if entry == str(gpu.index) or (entry[:4] == "GPU-" and gpu.uuid.startswith(entry))]
        if len(match) != 1 or match[0] in selected:
            break
        selected += match
    return tuple(selected)
