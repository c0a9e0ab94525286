"""What vLLM's build for processors wants to be told: its cache, block size and type, and which cores are its own."""

import contextlib
import os
from pathlib import Path

from medexam.toolkit.errors import EngineError
from medexam.toolkit.servers import BFLOAT16, processor_features

BLOCK_SIZE = "32"
"""Tokens of a block of the cache; the CPU build's own 128 shares far fewer prompt prefixes."""
CACHE_GIB = "2"
"""GiB of keys and values for one server."""
_TOPOLOGY = Path("/sys/devices/system/cpu")


def cpu_flags() -> dict[str, str | None]:
    """Return flags and their values; float32 if the processor does not multiply bfloat16, since it is many times
    faster.

    Prompts are read whole: vLLM 0.32 takes back the random numbers of a request with a seed whose prompt is read in
    parts, which torch's generators for processors refuse, and the server ends.
    """
    native = BFLOAT16 & (processor_features() or set())
    flags: dict[str, str | None] = {"--block-size": BLOCK_SIZE, "--no-enable-chunked-prefill": None}
    return flags | ({} if native else {"--dtype": "float32"})


def cpu_environment(replica: int, replicas: int) -> dict[str, str]:
    """Return the variables for one of several servers, each with cores of its own; a single one takes what vLLM
    chooses.

    Raises `EngineError` if there are fewer cores than servers.
    """
    cache = {"VLLM_CPU_KVCACHE_SPACE": CACHE_GIB}
    if replicas == 1:
        return cache
    cores = _cores()
    if len(cores) < replicas:
        raise EngineError(
            f"{replicas} servers on {len(cores)} cores: use at most {len(cores)} replicas on the processor"
        )
    share = cores[replica * len(cores) // replicas : (replica + 1) * len(cores) // replicas]
    return cache | {"VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, share))}


def _cores() -> list[int]:
    """List one logical processor of each core that this process may use."""
    cores: dict[str, int] = {}
    for number in sorted(os.sched_getaffinity(0)):
        siblings = str(number)
        with contextlib.suppress(OSError):
            siblings = (_TOPOLOGY / f"cpu{number}/topology/thread_siblings_list").read_text(encoding="ascii").strip()
        cores.setdefault(siblings, number)
    return list(cores.values())
