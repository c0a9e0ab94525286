"""How much faster this machine multiplies bfloat16 than float32, measured once for each width of a model.

The result is kept in the cache, because it decides which type `dtype: auto` stands for, and that type is part of a
run's identity. This module knows matrices; it loads no model.
"""

import importlib.metadata
import json
import platform
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from medexam.files import cache_dir, write_whole
from medexam.inputs import UnreadableError, read_json

CPU_INFO = Path("/proc/cpuinfo")
MEMORY = "dtype_speed.json"
_ROWS = (256, 8)
"""Tokens multiplied at once when prompts are read, and when replies are written."""
_EXPANSION = 4
"""How many times as wide as its hidden states a model's widest layer is."""
_ROUNDS = 5


@cache
def bfloat16_gain(width: int) -> float:
    """Measure how many times as fast as float32 bfloat16 is here, for a model whose hidden states have this width.

    The geometric mean of reading and writing, from the cache or measured now, in less than a second for a width of
    2,048.
    """
    place, key = cache_dir() / MEMORY, f"{_machine()}, width {width}"
    gains = _read(place)
    if key not in gains:
        gains[key] = round(_measure(width), 3)
        # Without a cache it is measured again by the next process.
        with suppress(OSError):
            write_whole(place, json.dumps(gains, indent=2) + "\n")
    return gains[key]


def _read(place: Path) -> dict[str, float]:
    try:
        gains = read_json(place)
    except (OSError, UnreadableError):
        return {}
    if not isinstance(gains, dict):
        return {}
    return {key: float(gain) for key, gain in gains.items() if isinstance(gain, int | float) and gain > 0}


def _machine() -> str:
    """Name the processor and the version of what multiplies."""
    processor = platform.processor() or platform.machine()
    with suppress(OSError):
        lines = CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
        names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
        processor = next(names, processor)
    return f"{processor}, torch {importlib.metadata.version('torch')}"


def _measure(width: int) -> float:
    import torch

    gain = 1.0
    with torch.inference_mode():
        for rows in _ROWS:
            times = dict.fromkeys((torch.float32, torch.bfloat16), float("inf"))
            sides = {
                kind: (torch.ones(rows, width, dtype=kind), torch.ones(_EXPANSION * width, width, dtype=kind))
                for kind in times
            }
            # In turn, so that other work on the machine slows both.
            for _ in range(_ROUNDS):
                for kind, (states, weights) in sides.items():
                    start = time.perf_counter()
                    torch.nn.functional.linear(states, weights)
                    times[kind] = min(times[kind], time.perf_counter() - start)
            gain *= times[torch.float32] / times[torch.bfloat16]
    return float(gain ** (1 / len(_ROWS)))
