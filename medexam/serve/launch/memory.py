"""Whether a model fits on the cards that there are, by a sum that an error can print, and which cards it gets.

On each GPU lie its part of the weights, what vLLM computes in, and the keys and values of what is in flight, of which
at least one whole context must fit; a margin stays free, since the parts are estimates.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from medexam.errors import EngineError
from medexam.serve.launch.flags import given_values
from medexam.serve.launch.gpus import Gpu, find_gpus
from medexam.serve.launch.profile import Profile

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
CARDS: Mapping[int, float] = {24: 24.1, 40: 42.4, 80: 85.1, 141: 150.7}
"""GB as a card is sold -> the least that `nvidia-smi` reports of such cards: L4 and A10, A100, A100 and H100, H200."""
_ASSUMED_GB = 40
"""The cards of a job or of a command that is only shown, where none is here."""
_COUNTS = (1, 2, 4, 8)
"""GPUs of one server on a node."""
_CONTEXTS = (131_072, 65_536, 32_768, 16_384, 8_192)
"""Tokens of prompt and reply that a server is laid out for: the most that fit on the fewest GPUs."""


@dataclass(frozen=True)
class Layout:
    """How a model is laid over cards."""

    max_context: int
    """Tokens of prompt and reply together."""
    tensor_parallel: int = 1
    """GPUs that share each layer."""
    pipeline_parallel: int = 1
    """Groups of GPUs that hold one part of the layers each."""
    data_parallel: int = 1
    """Copies of the model behind one address."""
    memory_share: float = 0.95
    """Part of a card's memory that vLLM may take."""
    sequences: int | None = None
    """Requests that are computed at once; None: vLLM's own number."""

    @property
    def gpus(self) -> int:
        """GPUs of one server, on all its nodes together."""
        return self.tensor_parallel * self.pipeline_parallel * self.data_parallel


_FIELDS = {
    "--max-model-len": "max_context",
    "--tensor-parallel-size": "tensor_parallel",
    "--pipeline-parallel-size": "pipeline_parallel",
    "--data-parallel-size": "data_parallel",
    "--gpu-memory-utilization": "memory_share",
    "--max-num-seqs": "sequences",
}
"""vLLM's flag -> the field of a layout that it says."""


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
    def contexts(self) -> float:
        """Whole contexts that the cache holds at once; the model fits if one does."""
        return max(self.usable - self.needed + self.context, 0.0) / self.context

    def __str__(self) -> str:
        """Write the sum in words."""
        return (
            f"{self.weights:.1f} GB of weights + {self.computing:.1f} GB to compute + {self.context:.1f} GB of cache "
            f"for one context of {self.layout.max_context} tokens + {self.card_gb * MARGIN:.1f} GB of margin = "
            f"{self.needed:.1f} GB {'<=' if self.contexts >= 1 else '>'} {self.usable:.1f} GB "
            f"({self.layout.memory_share:.0%} of {self.card_gb:.1f} GB)"
        )


@dataclass(frozen=True)
class Placement:
    """Where a model's server runs on this machine."""

    layout: Layout | None = None
    """None: nothing says how to lay the model out, or it runs on the processor."""
    gpus: tuple[int, ...] | None = None
    """The indices of its cards, () for the processor, None if vLLM takes the cards it sees."""
    card: str = ""
    """What the driver calls the cards."""
    card_gb: float = 0.0
    note: str = ""


def estimate_memory(profile: Profile, layout: Layout, card_gb: float) -> MemoryFit:
    """Sum the memory of one layout on cards of `card_gb`."""
    heads = max(profile.kv_heads / layout.tensor_parallel, 1.0)  # a head is not cut: more GPUs than heads keep copies
    layers = profile.layers / layout.pipeline_parallel
    sequences = layout.sequences or (_MANY_SEQUENCES if card_gb >= _MANY_GB else _SEQUENCES)
    computing = sequences * profile.vocabulary * _SAMPLER_BYTES / 1e9 + layers * _GRAPHS_GB_OF_LAYER + _LIBRARIES_GB
    token = 2 * layers * heads * profile.head_dim * _CACHE_BYTES
    weights = profile.weights_gb / (layout.tensor_parallel * layout.pipeline_parallel)
    return MemoryFit(layout, card_gb, weights, computing, token * layout.max_context / 1e9)


def list_fits(profile: Profile, card_gb: float, flags: Sequence[str] = (), nodes: int = 1) -> Iterator[MemoryFit]:
    """Yield the layouts that fit on cards of `card_gb`, the fewest GPUs first, each with its longest context.

    A context longer than the shortest leaves a quarter of itself free, since the sum is an estimate. What vLLM's
    `flags` say is fixed.
    """
    fixed = _said_by(profile, flags)
    heads, most = profile.heads or math.prod(_COUNTS), min(profile.context_limit, _CONTEXTS[0])
    counts = [fixed["tensor_parallel"]] if "tensor_parallel" in fixed else [n for n in _COUNTS if heads % n == 0]
    contexts = [context for context in _CONTEXTS if context < most]
    lengths = [fixed["max_context"]] if "max_context" in fixed else [most, *contexts]
    for count in counts:
        for context in lengths:
            layout = replace(
                Layout(int(context), int(count), pipeline_parallel=nodes),
                **fixed,  # type: ignore[arg-type]
            )
            fit = estimate_memory(profile, layout, card_gb)
            if layout.gpus % nodes == 0 and fit.contexts >= (1 if context == lengths[-1] else 1.25):
                yield fit
                break


def place(name: str, profile: Profile, flags: Sequence[str], *, nodes: int = 1, printing: bool = False) -> Placement:
    """Choose the layout for the cards of this machine: the largest cards first, and the fewest of them.

    Printing needs no card. Raises `EngineError` with the sum of the memory if the model does not fit.
    """
    cards = [replace(card, free_gb=card.total_gb) if printing else card for card in find_gpus()]
    if not cards and printing:
        size = CARDS[_ASSUMED_GB]
        cards = [Gpu(index, f"{_ASSUMED_GB} GB", size, size) for index in range(_COUNTS[-1])]
    if not cards:
        raise EngineError(
            f"{name} needs a GPU, and nvidia-smi finds none here that CUDA_VISIBLE_DEVICES allows: run this where "
            "one is, submit it with --slurm, look at the command with --print, or try the profile smollm2-cpu"
        )
    fixed = _said_by(profile, flags)
    share = fixed.get("memory_share", Layout.memory_share)
    free = [card for card in cards if card.free_gb >= card.total_gb * share]
    for size in sorted({card.total_gb for card in free}, reverse=True):
        able = [card for card in free if card.total_gb >= size]
        for fit in list_fits(profile, size, flags, nodes):
            count = fit.layout.gpus // nodes
            if count <= len(able):
                note = (
                    f"{name} on {fit.layout.gpus} x {able[0].name}, per GPU: {fit}; the cache holds "
                    f"{fit.contexts:.1f} whole contexts at once"
                )
                return Placement(fit.layout, tuple(card.index for card in able[:count]), able[0].name, size, note)
    if free and fixed.keys() & {"max_context", "tensor_parallel"}:
        tensor = int(fixed.get("tensor_parallel") or max(count for count in _COUNTS if count <= len(free)))
        layout = replace(Layout(min(profile.context_limit, _CONTEXTS[-1]), tensor, nodes), **fixed)  # type: ignore[arg-type]
        fit = estimate_memory(profile, layout, min(card.total_gb for card in free))
        if fit.contexts < 1:
            tokens = int(fit.contexts * layout.max_context)
            shorter = f"a context of at most {tokens} tokens (-- --max-model-len {tokens}), " if tokens else ""
            raise EngineError(
                f"{name} does not fit: {fit}; take {shorter}more GPUs (-- --tensor-parallel-size N), larger ones, or a "
                "smaller model"
            )
    fewest = {size: next(list_fits(profile, least, flags, nodes), None) for size, least in CARDS.items()}
    ways = [f"{fit.layout.gpus // nodes} x {size} GB" for size, fit in fewest.items() if fit]
    raise EngineError(
        f"{name} takes {' or '.join(ways) or 'more than eight GPUs'}, free of other programs, and here are "
        f"{', '.join(map(str, cards))}: stop what else runs there, take quantised weights, or say how to split it with "
        "-- --tensor-parallel-size N"
    )


def _said_by(profile: Profile, flags: Sequence[str]) -> dict[str, float]:
    """Return the fields of a layout that vLLM's flags say."""
    fixed: dict[str, float] = {}
    values = given_values(flags)
    for flag, field in _FIELDS.items():
        if (value := values.get(flag)) is not None:
            try:
                fixed[field] = float(value) if field == "memory_share" else int(value)
            except ValueError:
                raise EngineError(f"{flag} {value}: not a number") from None
    if fixed.get("max_context", 0) > profile.context_limit:
        raise EngineError(
            f"{profile.model} takes at most {profile.context_limit} tokens, not {fixed['max_context']:.0f}; "
            "ask for fewer with --max-model-len"
        )
    return fixed
