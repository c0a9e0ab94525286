"""The energy that GPUs have used, by their own counters: NVML's on this machine, or those that a server's metrics hold.

A counter runs since the driver or the server started, over whatever the GPU did. The difference of two looks is what a
run took, with the idle time and what others asked meanwhile.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx

from medexam.serve.contract import EngineInfo
from medexam.serve.network.connections import open_client
from medexam.serve.network.endpoints import NO_KEY, Endpoint

_TIMEOUT_S = 2.0
_LOOPBACK = ("://127.", "://localhost", "://[::1]")
_COUNTER = re.compile(
    r"^(nv_energy_consumption|DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION)(?:\{.*\})? (\d{1,18}(?:\.\d+)?(?:e\+?\d\d?)?)$",
    re.MULTILINE,
)
_JOULES = {"nv_energy_consumption": 1.0, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 1e-3}
"""Counter of Triton, or of NVIDIA's exporter behind a server's address -> joules of its unit."""


@dataclass(frozen=True)
class EnergyCount:
    """Joules by the counters of some GPUs, since these began to count."""

    joules: float
    gpus: int
    by: str
    """What told: `nvml` or `metrics`."""


async def count_energy(info: EngineInfo | None, ca_bundle: Path | None = None) -> EnergyCount | None:
    """Read the counters of the GPUs behind an engine; None where none tells, and for models of others.

    Of a model in this process, and of servers on this machine, NVML's over all its cards, if nvidia-ml-py is installed.
    Raises `SpecError` for a CA bundle that cannot be read.
    """
    if info is None:
        return None
    if info.endpoints:
        is_here = all(any(mark in base for mark in _LOOPBACK) for base in info.endpoints)
        local_count = await asyncio.to_thread(count_local_energy) if is_here else None
        if local_count is not None or info.engine != "vllm":
            return local_count
        return await _count_servers(info.endpoints, ca_bundle)
    on_gpu = str(info.details.get("device", "")).startswith("cuda")
    return await asyncio.to_thread(count_local_energy) if on_gpu else None


def count_local_energy(nvml: Any = None) -> EnergyCount | None:
    """Sum the counters of this machine's cards by `nvml`, the module `pynvml`; None if it or a counter is missing."""
    try:
        nvml = nvml or import_module("pynvml")
        nvml.nvmlInit()
    except Exception:  # the package, the driver or a card is missing, each with an error of its own
        return None
    try:
        cards = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        joules = [nvml.nvmlDeviceGetTotalEnergyConsumption(card) / 1000 for card in cards]
    except nvml.NVMLError:
        return None
    finally:
        nvml.nvmlShutdown()
    return EnergyCount(sum(joules), len(joules), "nvml") if joules else None


async def _count_servers(addresses: Sequence[str], ca_bundle: Path | None) -> EnergyCount | None:
    """Sum the counters that the servers' metrics hold; None unless each of them holds one."""
    counts = await asyncio.gather(*(_count(Endpoint(base, NO_KEY, ca_bundle)) for base in addresses))
    if not all(counts):
        return None
    values = [joules for server_counts in counts for joules in server_counts]
    return EnergyCount(sum(values), len(values), "metrics")


async def _count(endpoint: Endpoint) -> list[float]:
    try:
        async with open_client(endpoint, _TIMEOUT_S) as client:
            reply = await client.get(f"{endpoint.root}/metrics")
    except httpx.HTTPError:
        return []
    matches = _COUNTER.findall(reply.text) if reply.is_success else []
    return [float(value) * _JOULES[name] for name, value in matches]
