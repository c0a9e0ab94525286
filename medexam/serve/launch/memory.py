"""Whether a model fits on the cards that there are, by a sum that an error can print, and which server gets which card.

On each GPU lie its part of the weights, what vLLM computes in, and the keys and values of what is in flight, of which
at least one whole context must fit; a margin stays free, since the parts are estimates.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from medexam.errors import EngineError
from medexam.serve.launch.flags import given_values
from medexam.serve.launch.gpus import Gpu, find_gpus
from medexam.serve.launch.profile import Layout, Profile

MARGIN = 0.02
"""Part of a card that stays free."""
_SAMPLER_BYTES = 40
"""Bytes for each sequence and token of the vocabulary: vLLM measured a peak of 1.26 GiB for Llama-3-8B, at 256
sequences and 128,256 tokens (vllm-project/vllm, pull request 10511)."""
_GRAPHS_GB_OF_LAYER = 0.01
"""CUDA graphs: logs of vLLM 0.21 to 0.27 tell of 0.11 to 0.73 GiB."""
_LIBRARIES_GB = 1.0
"""CUDA's context, NCCL's buffers and workspaces, an assumption."""
_CACHE_BYTES = 2
"""Bytes of one number in the cache."""
_MANY_GB = 70 * 2**30 / 1e9
_SEQUENCES, _MANY_SEQUENCES = 256, 1024
"""What vLLM 0.32 computes at once unless it is told otherwise; the larger number on cards of 70 GiB or more."""
_REPORTED = {24: 24.1, 40: 42.4, 80: 85.1, 141: 150.7}
"""GB as a card is sold -> the least that `nvidia-smi` reports of such cards: L4 and A10, A100, A100 and H100, H200."""
_FIELDS = {
    "--tensor-parallel-size": "tensor_parallel",
    "--pipeline-parallel-size": "pipeline_parallel",
    "--data-parallel-size": "data_parallel",
    "--max-model-len": "max_context",
    "--max-num-seqs": "sequences",
    "--gpu-memory-utilization": "memory_share",
}
"""vLLM's flag -> the field of a layout that it changes."""


@dataclass(frozen=True)
class MemoryFit:
    """The sum for one layout on cards of one size; all in GB (10^9 bytes) per GPU."""

    layout: Layout
    card_gb: float
    weights: float
    computing: float
    """What the sampler, CUDA graphs and libraries take."""
    context: float
    """Keys and values of one whole context."""

    @property
    def usable(self) -> float:
        """What vLLM may take."""
        return self.card_gb * self.layout.memory_share

    @property
    def needed(self) -> float:
        """The whole sum, with one context and the margin."""
        return self.weights + self.computing + self.context + self.card_gb * MARGIN

    @property
    def fits(self) -> bool:
        """Whether at least one context fits."""
        return self.needed <= self.usable

    @property
    def contexts(self) -> float:
        """Whole contexts that the cache holds at once."""
        return max(self.usable - self.needed + self.context, 0.0) / self.context

    def __str__(self) -> str:
        """Write the sum in words."""
        return (
            f"{self.weights:.1f} GB of weights + {self.computing:.1f} GB to compute + {self.context:.1f} GB of cache "
            f"for one context of {self.layout.max_context} tokens + {self.card_gb * MARGIN:.1f} GB of margin = "
            f"{self.needed:.1f} GB {'<=' if self.fits else '>'} {self.usable:.1f} GB "
            f"({self.layout.memory_share:.0%} of {self.card_gb:.1f} GB)"
        )


def card_memory(gpu_gb: float) -> float:
    """Return the GB that a card reports which is sold with `gpu_gb`."""
    return _REPORTED.get(round(gpu_gb), gpu_gb)


def estimate_memory(profile: Profile, layout: Layout, card_gb: float) -> MemoryFit:
    """Sum the memory of one layout on cards of `card_gb`."""
    heads = max(profile.kv_heads / layout.tensor_parallel, 1.0)  # a head is not cut: more GPUs than heads keep copies
    layers = profile.layers / layout.pipeline_parallel
    sequences = layout.sequences or (_MANY_SEQUENCES if card_gb >= _MANY_GB else _SEQUENCES)
    computing = sequences * profile.vocabulary * _SAMPLER_BYTES / 1e9 + layers * _GRAPHS_GB_OF_LAYER + _LIBRARIES_GB
    token = 2 * layers * heads * profile.head_dim * _CACHE_BYTES
    return MemoryFit(
        layout,
        card_gb,
        profile.weights_gb / (layout.tensor_parallel * layout.pipeline_parallel),
        computing,
        token * layout.max_context / 1e9,
    )


@dataclass(frozen=True)
class Placement:
    """Where a model's servers run on this machine."""

    layout: Layout | None
    """None: nothing says how to lay the model out."""
    gpus: tuple[tuple[int, ...] | None, ...]
    """A server each: the indices of its cards, () for the processor, None if vLLM takes the cards it sees."""
    card: str = ""
    """What the driver calls the cards."""
    notes: tuple[str, ...] = ()


def place_profile(
    name: str, profile: Profile, replicas: int, flags: Sequence[str], *, nodes: int = 1, printing: bool = False
) -> Placement:
    """Choose the layout for the cards of this machine, and each server's share of them.

    vLLM's own `flags` change the layouts as they change vLLM. Printing needs no card: if none fits, the first layout is
    shown. Raises `EngineError` with the sum of the memory if the model does not fit.
    """
    profile = _overridden(profile, flags)
    layouts = [layout for layout in profile.layouts if layout.nodes == nodes]
    if not layouts:
        have = ", ".join(str(count) for count in sorted({layout.nodes for layout in profile.layouts}))
        raise EngineError(f"{name} has no layout for {nodes} nodes, only for {have}; add one in your own profile")
    if profile.on_cpu:
        return Placement(layouts[0], ((),) * replicas)
    cards = [replace(card, free_gb=card.total_gb) if printing else card for card in find_gpus()]
    choice = _choose(profile, layouts, cards, replicas)
    if choice is None and printing:
        size, count = layouts[0].gpu_gb, layouts[0].gpus_per_node * replicas
        card_gb = card_memory(size)
        choice = layouts[0], tuple(Gpu(index, f"{size:.0f} GB", card_gb, card_gb) for index in range(count))
    if choice is None and not cards:
        raise EngineError(
            f"{name} needs a GPU, and nvidia-smi finds none here that CUDA_VISIBLE_DEVICES allows: run this where "
            "one is, submit it with --slurm, look at the command with --print, or try the profile smollm2-cpu"
        )
    if choice is None:
        sizes = {layout.gpu_gb: layout.gpus_per_node * replicas for layout in reversed(layouts)}
        raise EngineError(
            f"{name} takes {' or '.join(f'{count} x {size:.0f} GB' for size, count in sorted(sizes.items()))}, free "
            f"of other programs, and here are {', '.join(map(str, cards))}: stop what else runs there, take fewer "
            "replicas or quantised weights, or say how to split it with -- --tensor-parallel-size N"
        )
    layout, chosen = choice
    fit = estimate_memory(profile, layout, min(card.total_gb for card in chosen))
    if not fit.fits:
        tokens = int(fit.contexts * layout.max_context)
        shorter = f"a context of at most {tokens} tokens (-- --max-model-len {tokens}), " if tokens else ""
        raise EngineError(
            f"{name} does not fit: {fit}; take {shorter}more GPUs (-- --tensor-parallel-size N), larger ones, or a "
            "smaller model"
        )
    card = chosen[0].name
    note = (
        f"{name} on {layout.gpus} x {card}, per GPU: {fit}; the cache holds {fit.contexts:.1f} whole contexts at once"
    )
    return Placement(layout, _shares([each.index for each in chosen], replicas), card, (note,))


def place_unknown(replicas: int, flags: Sequence[str], *, printing: bool = False) -> Placement:
    """Leave the cards of one server to vLLM, and give each of several as many as `flags` say."""
    if replicas == 1:
        return Placement(None, (None,))
    values = given_values(flags)
    sizes = [values.get(flag) or "" for flag in ("--tensor-parallel-size", "--pipeline-parallel-size")]
    count = math.prod(int(size) if size.isdigit() else 1 for size in sizes) * replicas
    cards = list(range(count)) if printing else [card.index for card in find_gpus()]
    if len(cards) < count:
        raise EngineError(
            f"{replicas} replicas need {count} GPUs, and this machine has {len(cards)}; use fewer replicas"
        )
    return Placement(None, _shares(cards[:count], replicas))


def _choose(
    profile: Profile, layouts: Sequence[Layout], cards: Sequence[Gpu], replicas: int
) -> tuple[Layout, tuple[Gpu, ...]] | None:
    """Choose the layout for the largest cards of which enough are free; else the first that fits on smaller ones."""
    large = sorted(layouts, key=lambda layout: -layout.gpu_gb)
    options = [(layout, [card for card in cards if card.total_gb >= layout.gpu_gb]) for layout in large]
    options += [
        (layout, [card for card in cards if estimate_memory(profile, layout, card.total_gb).fits])
        for layout in sorted(layouts, key=lambda layout: layout.gpu_gb)
    ]
    for layout, able in options:
        free = [card for card in able if card.free_gb >= card.total_gb * layout.memory_share]
        count = layout.gpus_per_node * replicas
        if len(free) >= count:
            return layout, tuple(free[:count])
    return None


def _shares(cards: Sequence[int], replicas: int) -> tuple[tuple[int, ...], ...]:
    share = len(cards) // replicas
    return tuple(tuple(cards[number * share : (number + 1) * share]) for number in range(replicas))


def _overridden(profile: Profile, flags: Sequence[str]) -> Profile:
    changes: dict[str, float] = {}
    flag_values = given_values(flags)
    for flag, field in _FIELDS.items():
        if (value := flag_values.get(flag)) is not None:
            try:
                changes[field] = float(value) if field == "memory_share" else int(value)
            except ValueError:
                raise EngineError(f"{flag} {value}: not a number") from None
    if changes.get("max_context", 0) > profile.context_limit:
        raise EngineError(
            f"{profile.model} takes at most {profile.context_limit} tokens, not {changes['max_context']:.0f}; "
            "ask for fewer with --max-model-len"
        )
    layouts = tuple(layout.model_copy(update=changes) for layout in profile.layouts)
    return profile.model_copy(update={"layouts": layouts})
