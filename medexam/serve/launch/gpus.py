"""The GPUs of this machine, asked of `nvidia-smi`, which comes with every driver; no library is loaded for it."""

import os
import subprocess
from dataclasses import dataclass

_ASK = ("nvidia-smi", "--query-gpu=index,uuid,name,memory.total,memory.free", "--format=csv,noheader,nounits")
_PARTS = 5
_TIMEOUT_S = 30.0
_BYTES_PER_MIB = 2**20


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
    gpus = [gpu for line in process.stdout.splitlines() if (gpu := _read(line)) is not None]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return tuple(gpus) if visible is None else _visible(gpus, visible)


def _read(line: str) -> Gpu | None:
    parts = [part.strip() for part in line.split(",")]
    if len(parts) != _PARTS:
        return None
    index, uuid, name, total, free = parts
    try:
        return Gpu(int(index), name, _gb(total), _gb(free), uuid)
    except ValueError:
        return None


def _gb(mib: str) -> float:
    return float(mib) * _BYTES_PER_MIB / 1e9


def _visible(gpus: list[Gpu], entries: str) -> tuple[Gpu, ...]:
    visible_gpus: list[Gpu] = []
    for entry in (part.strip() for part in entries.split(",")):
        match = [gpu for gpu in gpus if entry and (entry == str(gpu.index) or _is_uuid(gpu, entry))]
        if len(match) != 1 or match[0] in visible_gpus:
            break
        visible_gpus += match
    return tuple(visible_gpus)


def _is_uuid(gpu: Gpu, entry: str) -> bool:
    return entry.startswith("GPU-") and gpu.uuid.startswith(entry)
