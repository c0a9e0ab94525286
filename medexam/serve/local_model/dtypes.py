"""On which device a local model runs and in which type it multiplies, known before anything is loaded.

`auto` depends on the machine, so a run records what it became: two types are two models.
"""

import sys
from pathlib import Path

from medexam.errors import EngineError

_ACCELERATORS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""What a Linux machine with a card that torch calls CUDA has at least one of."""
_NATIVE = {"amx_bf16", "avx512_bf16", "bf16"}
"""What Linux calls a processor's instructions that multiply bfloat16."""


def pick_device(asked: str) -> str:
    """The device that `auto` stands for, else `asked`; raises `EngineError` for CUDA without a CUDA device."""
    if asked == "cpu" or (asked == "auto" and _has_no_card()):
        return "cpu"
    import torch

    if asked == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if asked.startswith("cuda") and not torch.cuda.is_available():
        raise EngineError(f"model.device is {asked!r} and torch finds no CUDA device; use 'cpu' or 'auto'")
    return asked


def pick_dtype(asked: str, device: str) -> str:
    """The type that `auto` stands for on a device, else `asked`.

    `auto` takes bfloat16 only where the device multiplies it natively: a processor without such instructions emulates
    it at a quarter of the speed of float32.
    """
    if asked != "auto":
        return asked
    if device.startswith("cuda"):
        import torch

        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    return "bfloat16" if _multiplies_bfloat16() else "float32"


def _has_no_card() -> bool:
    return sys.platform == "linux" and not any(Path(device).exists() for device in _ACCELERATORS)


def _multiplies_bfloat16() -> bool:
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        import torch

        able = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
        return any(able.get(feature) for feature in _NATIVE)
    flags = next((line for line in told.splitlines() if line.startswith(("flags", "Features"))), "")
    return not _NATIVE.isdisjoint(flags.split())
