"""On which device a local model runs and in which type it multiplies, known before anything is loaded.

`auto` depends on the machine, so a run records what it became: two types are two models.
"""

import sys
from pathlib import Path

from medexam.errors import EngineError
from medexam.serve.local_model.dtype_speed import CPU_INFO, bfloat16_gain

_ACCELERATORS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""What a Linux machine with a card that torch calls CUDA has at least one of."""
BFLOAT16 = {"amx_bf16", "avx512_bf16", "bf16"}
"""What Linux calls a processor's instructions that multiply bfloat16."""
LEAST_GAIN = 0.8
"""bfloat16 takes half the memory, so float32 is preferred only where it is clearly faster."""
USUAL_WIDTH = 2048
"""The width that is measured for models whose configuration is not at hand before they are loaded."""


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


def pick_dtype(dtype: str, device: str, width: int | None) -> str:
    """Choose the type that `auto` stands for on a device, else `dtype`. `width` is the size of the model's hidden
    states, if it is known before the model is loaded.

    `auto` takes bfloat16 only if the device multiplies it natively: a processor without such instructions emulates
    it at a quarter of the speed of float32. If a processor has them, both types are measured once, and float32 is
    taken only where it is clearly faster.
    """
    if dtype != "auto":
        return dtype
    if device.startswith("cuda"):
        import torch

        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    if not _multiplies_bfloat16():
        return "float32"
    return "bfloat16" if bfloat16_gain(width or USUAL_WIDTH) > LEAST_GAIN else "float32"


def explain_dtype(dtype: str, device: str, width: int | None) -> str | None:
    """Explain why `auto` stands for what it does on a processor; None if nothing was measured."""
    if dtype != "auto" or device != "cpu" or not _multiplies_bfloat16():
        return None
    return f"measured: bfloat16 {bfloat16_gain(width or USUAL_WIDTH):.2g} times as fast as float32"


def _has_no_card() -> bool:
    return sys.platform == "linux" and not any(Path(device).exists() for device in _ACCELERATORS)


def processor_features() -> set[str] | None:
    """Read the instructions of this machine's processor, by Linux's names; None on another system."""
    try:
        lines = CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return set(next((line for line in lines if line.startswith(("flags", "Features"))), "").split())


def _multiplies_bfloat16() -> bool:
    features = processor_features()
    if features is not None:
        return not BFLOAT16.isdisjoint(features)
    import torch

    able = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return any(able.get(feature) for feature in BFLOAT16)
