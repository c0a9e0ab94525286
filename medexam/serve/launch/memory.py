"""Which cards a model gets and how it is laid over them, by a sum of its memory that the command's notes show.

On each GPU lie its part of the weights, what vLLM computes in, and the keys and values of what is in flight, of which
at least one whole context must fit; a margin stays free, since the parts are estimates. The cards are asked of
`nvidia-smi`, which comes with every driver.
"""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from medexam.errors import EngineError
from medexam.serve.launch.profile import Size

_ASK = ("nvidia-smi", "--query-gpu=index,uuid,name,memory.total,memory.free", "--format=csv,noheader,nounits")
_GB_PER_MIB = 2**20 / 1e9
_MARGIN = 0.02
_SAMPLER_BYTES = 40
"""Bytes for each sequence and token of the vocabulary: vLLM measured a peak of 1.26 GiB for Llama-3-8B, at 256
sequences and 128,256 tokens (vllm-project/vllm, pull request 10511)."""
_GRAPHS_GB_OF_LAYER = 0.01
"""CUDA graphs: logs of vLLM 0.21 to 0.27 tell of 0.11 to 0.73 GiB."""
_LIBRARIES_GB = 1.0
_CACHE_BYTES = 2
"""Bytes of one number in the cache."""
LARGE_GB = 70 * 2**30 / 1e9
_SEQUENCES, _MANY_SEQUENCES = 256, 1024
"""What vLLM 0.32 computes at once unless it is told otherwise; the larger number on cards of 70 GiB or more."""
CARDS: Mapping[int, float] = {24: 24.1, 40: 42.4, 80: 85.1, 141: 150.7}
"""GB as a card is sold -> the least that `nvidia-smi` reports of such cards: L4 and A10, A100, A100 and H100, H200."""
_ASSUMED_GB = 40
"""The cards of a job or of a command that is only shown, where none is here."""
_COUNTED = (
    "--tensor-parallel-size",
    "--pipeline-parallel-size",
    "--data-parallel-size",
    "--max-model-len",
    "--max-num-seqs",
)
_SHARE, _MOST = "--gpu-memory-utilization", 0.95
"""vLLM's flags that fix a layout, the last with its value unless it is given."""
_COUNTS = (1, 2, 4, 8)
_CONTEXTS = (131_072, 65_536, 32_768, 16_384, 8_192)
"""Tokens of prompt and reply that a server is laid out for: the most that fit on the fewest GPUs."""


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
        return f"GPU {self.index} ({self.name}, {self.free_gb:.1f} of {self.total_gb:.1f} GB free)"


def find_gpus() -> list[Gpu]:
    """Find the cards that this process may use, in the order of CUDA_VISIBLE_DEVICES if it is set.

    None without a driver or a card, or if the card reports no memory of its own. As for CUDA, an entry of
    CUDA_VISIBLE_DEVICES that names no card ends the list.
    """
    try:
        process = subprocess.run(_ASK, capture_output=True, text=True, timeout=30, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return []
    gpus: list[Gpu] = []
    for line in process.stdout.splitlines():
        with contextlib.suppress(ValueError):
            index, uuid, name, total, free = (part.strip() for part in line.split(","))
            gpus.append(Gpu(int(index), name, float(total) * _GB_PER_MIB, float(free) * _GB_PER_MIB, uuid))
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is None:
        return gpus
    selected: list[Gpu] = []
    for entry in (part.strip() for part in visible.split(",")):
        match = [gpu for gpu in gpus if entry == str(gpu.index) or (entry[:4] == "GPU-" and gpu.uuid.startswith(entry))]
        if len(match) != 1:
            break
        selected += match
    return selected


class Layout(NamedTuple):
    """A model over cards of one size."""

    gpus: int
    """On all nodes together, for all copies of the model behind one address."""
    max_context: int
    flags: dict[str, str | None]
    """What vLLM is told of it."""
    memory: str
    """The sum of the memory of one GPU, in words."""


def list_fits(
    size: Size, card_gb: float, numbers: Mapping[str, float] = MappingProxyType({}), nodes: int = 1
) -> Iterator[Layout]:
    """Yield the layouts that fit on cards of `card_gb`, the fewest GPUs first, each with its longest context.

    A context longer than the shortest leaves a quarter of itself free, since the sum is an estimate. The `numbers` of
    vLLM's flags are fixed.
    """
    tensor, parts, copies, length, sequences = (int(numbers.get(flag, 0)) for flag in _COUNTED)
    longest, parts, share = min(size.context_limit, _CONTEXTS[0]), parts or nodes, numbers.get(_SHARE, _MOST)
    sequences = sequences or (_MANY_SEQUENCES if card_gb >= LARGE_GB else _SEQUENCES)
    lengths = [length] if length else [longest, *(context for context in _CONTEXTS if context < longest)]
    layers = size.layers / parts
    computing = sequences * size.vocabulary * _SAMPLER_BYTES / 1e9 + layers * _GRAPHS_GB_OF_LAYER + _LIBRARIES_GB
    for count in [tensor] if tensor else [each for each in _COUNTS if (size.heads or _COUNTS[-1]) % each == 0]:
        weights, gpus = size.weights_gb / (count * parts), count * parts * (copies or 1)
        # A head is not cut: more GPUs than heads keep copies.
        token = 2 * layers * max(size.kv_heads / count, 1.0) * size.head_dim * _CACHE_BYTES / 1e9
        for context in lengths:
            cache = token * context
            contexts = (card_gb * (share - _MARGIN) - weights - computing) / cache
            if gpus % nodes == 0 and contexts >= (1 if context == lengths[-1] else 1.25):
                margin = card_gb * _MARGIN
                memory = (
                    f"{weights:.1f} GB of weights + {computing:.1f} GB to compute + {cache:.1f} GB of cache for one "
                    f"context of {context} tokens + {margin:.1f} GB of margin = "
                    f"{weights + computing + cache + margin:.1f} GB <= {card_gb * share:.1f} GB ({share:.0%} of "
                    f"{card_gb:.1f} GB); the cache holds {contexts:.1f} whole contexts at once"
                )
                flags: dict[str, str | None] = {"--max-model-len": str(context), _SHARE: f"{share:g}"}
                flags |= {flag: str(ways) for flag, ways in zip(_COUNTED, (count, parts), strict=False) if ways > 1}
                yield Layout(gpus, context, flags, memory)
                break


def place(
    name: str, size: Size, values: Mapping[str, str | None], *, nodes: int = 1, printing: bool = False
) -> tuple[Layout, list[Gpu]]:
    """Choose the layout for the cards of this machine, and the cards: the largest first, and the fewest of them.

    Printing needs no card. Raises `EngineError` if the model does not fit.
    """
    cards = find_gpus()
    if not cards and printing:
        assumed = CARDS[_ASSUMED_GB]
        cards = [Gpu(index, f"{_ASSUMED_GB} GB", assumed, assumed) for index in range(_COUNTS[-1])]
    if not cards:
        raise EngineError(
            f"{name} needs a GPU, and nvidia-smi finds none here that CUDA_VISIBLE_DEVICES allows: run this where "
            "one is, submit it with --slurm, look at the command with --print, or try the profile smollm2-cpu"
        )
    try:
        numbers = {flag: float(value) for flag in (*_COUNTED, _SHARE) if (value := values.get(flag)) is not None}
    except ValueError as error:
        raise EngineError(f"one of vLLM's flags needs a number: {error}") from None
    free = [card for card in cards if printing or card.free_gb >= card.total_gb * numbers.get(_SHARE, _MOST)]
    for card_gb in sorted({card.total_gb for card in free}, reverse=True):
        able = [card for card in free if card.total_gb >= card_gb]
        for layout in list_fits(size, card_gb, numbers, nodes):
            if (count := layout.gpus // nodes) <= len(able):
                return layout, able[:count]
    fewest = {sold: next(list_fits(size, least, numbers, nodes), None) for sold, least in CARDS.items()}
    ways = [f"{layout.gpus // nodes} x {sold} GB" for sold, layout in fewest.items() if layout]
    raise EngineError(
        f"{name} takes {' or '.join(ways) or 'more than eight GPUs'}, free of other programs, and here are "
        f"{', '.join(map(str, cards))}: stop what else runs there, take quantised weights, ask for a shorter context "
        "with -- --max-model-len N, or split it with -- --tensor-parallel-size N"
    )
