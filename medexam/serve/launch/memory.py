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

from medexam.errors import EngineError
from medexam.serve.launch.profile import Profile

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
_MANY_GB = 70 * 2**30 / 1e9
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
_NONE: Mapping[str, float] = MappingProxyType({})
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


def find_gpus() -> tuple[Gpu, ...]:
    """Find the cards that this process may use, in the order of CUDA_VISIBLE_DEVICES if it is set.

    () without a driver or a card, or if the card reports no memory of its own. As for CUDA, an entry of
    CUDA_VISIBLE_DEVICES that names no card ends the list.
    """
    try:
        process = subprocess.run(_ASK, capture_output=True, text=True, timeout=30, check=True)  # noqa: S603
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


@dataclass(frozen=True)
class Layout:
    """A model over cards of one size, and the sum of its memory; all in GB (10^9 bytes) per GPU."""

    max_context: int
    tensor_parallel: int
    nodes: int
    """Machines that hold one part of the layers each."""
    gpus: int
    """On all nodes together, for all copies of the model behind one address."""
    memory_share: float
    """Part of a card's memory that vLLM may take."""
    card_gb: float
    weights: float
    computing: float
    """What the sampler, CUDA graphs and libraries take."""
    context: float
    """Keys and values of one whole context."""

    @property
    def contexts(self) -> float:
        """Whole contexts that the cache holds at once; the model fits if one does."""
        return max(self.card_gb * (self.memory_share - _MARGIN) - self.weights - self.computing, 0.0) / self.context

    def __str__(self) -> str:
        """Write the sum in words."""
        margin, usable = self.card_gb * _MARGIN, self.card_gb * self.memory_share
        return (
            f"{self.weights:.1f} GB of weights + {self.computing:.1f} GB to compute + {self.context:.1f} GB of cache "
            f"for one context of {self.max_context} tokens + {margin:.1f} GB of margin = "
            f"{self.weights + self.computing + self.context + margin:.1f} GB <= {usable:.1f} GB "
            f"({self.memory_share:.0%} of {self.card_gb:.1f} GB)"
        )


def list_fits(
    profile: Profile, card_gb: float, numbers: Mapping[str, float] = _NONE, nodes: int = 1
) -> Iterator[Layout]:
    """Yield the layouts that fit on cards of `card_gb`, the fewest GPUs first, each with its longest context.

    A context longer than the shortest leaves a quarter of itself free, since the sum is an estimate. The `numbers` of
    vLLM's flags are fixed.
    """
    tensor, pipeline, data, length, sequences = (int(numbers.get(flag, 0)) for flag in _COUNTED)
    heads, longest = profile.heads or _COUNTS[-1], min(profile.context_limit, _CONTEXTS[0])
    pipeline, data, share = pipeline or nodes, data or 1, numbers.get(_SHARE, _MOST)
    sequences = sequences or (_MANY_SEQUENCES if card_gb >= _MANY_GB else _SEQUENCES)
    lengths = [length] if length else [longest, *(context for context in _CONTEXTS if context < longest)]
    layers = profile.layers / pipeline
    computing = sequences * profile.vocabulary * _SAMPLER_BYTES / 1e9 + layers * _GRAPHS_GB_OF_LAYER + _LIBRARIES_GB
    for count in [tensor] if tensor else [count for count in _COUNTS if heads % count == 0]:
        gpus = count * pipeline * data
        weights = profile.weights_gb / (count * pipeline)
        # A head is not cut: more GPUs than heads keep copies.
        token = 2 * layers * max(profile.kv_heads / count, 1.0) * profile.head_dim * _CACHE_BYTES / 1e9
        for context in lengths:
            layout = Layout(context, count, pipeline, gpus, share, card_gb, weights, computing, token * context)
            if gpus % nodes == 0 and layout.contexts >= (1 if context == lengths[-1] else 1.25):
                yield layout
                break


def place(
    name: str, profile: Profile, values: Mapping[str, str | None], *, nodes: int = 1, printing: bool = False
) -> tuple[Layout, list[Gpu]]:
    """Choose the layout for the cards of this machine, and the cards: the largest first, and the fewest of them.

    Printing needs no card. Raises `EngineError` if the model does not fit.
    """
    cards = find_gpus()
    if not cards and printing:
        size = CARDS[_ASSUMED_GB]
        cards = tuple(Gpu(index, f"{_ASSUMED_GB} GB", size, size) for index in range(_COUNTS[-1]))
    if not cards:
        raise EngineError(
            f"{name} needs a GPU, and nvidia-smi finds none here that CUDA_VISIBLE_DEVICES allows: run this where "
            "one is, submit it with --slurm, look at the command with --print, or try the profile smollm2-cpu"
        )
    numbers = {}
    for flag in (*_COUNTED, _SHARE):
        if (value := values.get(flag)) is not None:
            try:
                numbers[flag] = float(value)
            except ValueError:
                raise EngineError(f"{flag} {value}: not a number") from None
    free = [card for card in cards if printing or card.free_gb >= card.total_gb * numbers.get(_SHARE, _MOST)]
    for size in sorted({card.total_gb for card in free}, reverse=True):
        able = [card for card in free if card.total_gb >= size]
        for layout in list_fits(profile, size, numbers, nodes):
            if (count := layout.gpus // nodes) <= len(able):
                return layout, able[:count]
    fewest = {size: next(list_fits(profile, least, numbers, nodes), None) for size, least in CARDS.items()}
    ways = [f"{layout.gpus // nodes} x {size} GB" for size, layout in fewest.items() if layout]
    raise EngineError(
        f"{name} takes {' or '.join(ways) or 'more than eight GPUs'}, free of other programs, and here are "
        f"{', '.join(map(str, cards))}: stop what else runs there, take quantised weights, ask for a shorter context "
        "with -- --max-model-len N, or split it with -- --tensor-parallel-size N"
    )
