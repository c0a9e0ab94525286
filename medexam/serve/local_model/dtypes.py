"""On which device a local model runs and in which type it multiplies, known before anything is loaded.

`auto` depends on the machine, so a run records what it became: two types are two models.
"""

import sys
from pathlib import Path

from medexam.errors import EngineError

_ACCELERATORS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""What a Linux machine with a card that torch calls CUDA has at least one of."""
_BFLOAT16 = {"amx_bf16", "avx512_bf16", "bf16"}
"""What Linux calls a processor's instructions that multiply bfloat16."""
_CPU_INFO = Path("/proc/cpuinfo")


def pick_device(device: str) -> str:
    """Choose the device that `auto` stands for, else `device`; raises `EngineError` for CUDA without a CUDA device."""
    if device == "cpu" or (device == "auto" and _has_no_card()):
        return "cpu"
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise EngineError(f"model.device is {device!r} and torch finds no CUDA device; use 'cpu' or 'auto'")
    return device


def pick_dtype(dtype: str, device: str) -> str:
    """Choose the type that `auto` stands for on a device, else `dtype`.

    `auto` is bfloat16 where the device multiplies it natively: a processor without such instructions emulates it at a
    quarter of the speed of float32.
    """
    if dtype != "auto":
        return dtype
    if device.startswith("cuda"):
        import torch

        native = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        native = multiplies_bfloat16()
    return "bfloat16" if native else "float32"


def _has_no_card() -> bool:
    return sys.platform == "linux" and not any(Path(device).exists() for device in _ACCELERATORS)


def multiplies_bfloat16() -> bool:
    """Return whether this machine's processor has instructions for bfloat16."""
    try:
        lines = _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        import torch

        return any(torch.cpu.get_capabilities().get(feature) for feature in _BFLOAT16)
    features = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return not _BFLOAT16.isdisjoint(features.split())
