"""Whether a model fits on the cards that there are, by a sum that an error can print.

On each GPU lie its part of the weights, what vLLM computes in, and the keys and values of what is in flight, of which
at least one whole context must fit; a margin stays free, since the parts are estimates. The sum of the keys and values
is an upper bound: layers that look back over a window alone need less.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from medexam.companions.serving.launch.gpus import Gpu
from medexam.companions.serving.launch.profile import Layout, Profile
from medexam.text import count_of
from medexam.toolkit.errors import EngineError

_MOST_GPUS = 64
MARGIN = 0.02
"""Part of a card that stays free."""
_SAMPLER_BYTES = 40
"""Bytes for each sequence and token of the vocabulary: vLLM measured a peak of 1.26 GiB for Llama-3-8B, at 256
sequences and 128,256 tokens (vllm-project/vllm, pull request 10511)."""
_GRAPHS_GB_OF_LAYER = 0.01
"""CUDA graphs: logs of vLLM 0.21 to 0.27 tell of 0.11 to 0.73 GiB."""
_LIBRARIES_GB = 1.0
"""CUDA's context, NCCL's buffers and workspaces, an assumption."""
_MANY_GB = 70 * 2**30 / 1e9
_SEQUENCES, _MANY_SEQUENCES = 256, 1024
"""What vLLM 0.32 computes at once unless it is told otherwise; the larger number on cards of 70 GiB or more."""
_FEWEST_SEQUENCES, _SHORTEST_CONTEXT, _STEP = 64, 2048, 256
"""How far a layout may be lowered to fit, and the step of its context."""
_REPORTED = {24: 24.1, 40: 42.4, 80: 85.1, 141: 150.7}
"""GB as a card is sold -> the least that `nvidia-smi` reports of such cards: L4 and A10, A100, A100 and H100, H200."""


@dataclass(frozen=True)
class MemoryFit:
    """The sum for one layout on cards of one size; all in GB (10^9 bytes) per GPU."""

    layout: Layout
    card_gb: float
    weights: float
    activations: float
    graphs: float
    libraries: float
    context: float
    """Keys and values of one whole context."""
    sequences: int
    """Requests that are computed at once."""

    @property
    def usable(self) -> float:
        """What vLLM may take."""
        return self.card_gb * self.layout.memory_share

    @property
    def fixed(self) -> float:
        """Everything but keys and values."""
        return self.weights + self.activations + self.graphs + self.libraries + self.card_gb * MARGIN

    @property
    def needed(self) -> float:
        """The whole sum, with one context and the margin."""
        return self.fixed + self.context

    @property
    def fits(self) -> bool:
        """Whether at least one context fits."""
        return self.needed <= self.usable

    @property
    def contexts(self) -> float:
        """Whole contexts that the cache holds at once."""
        return max(self.usable - self.fixed, 0.0) / self.context

    @property
    def note(self) -> str:
        """The sum in words, and what the cache then holds."""
        return f"{self}; the cache holds {self.contexts:.1f} whole contexts at once"

    def __str__(self) -> str:
        """Write the sum in words."""
        sign = "<=" if self.fits else ">"
        return (
            f"{self.weights:.1f} GB of weights + {self.activations:.1f} GB to compute {self.sequences} sequences + "
            f"{self.graphs:.1f} GB of CUDA graphs + {self.libraries:.1f} GB for libraries + {self.context:.1f} GB of "
            f"cache for one context of {self.layout.max_context} tokens + {self.card_gb * MARGIN:.1f} GB of margin = "
            f"{self.needed:.1f} GB {sign} {self.usable:.1f} GB "
            f"({self.layout.memory_share:.0%} of {self.card_gb:.1f} GB)"
        )


def card_memory(gpu_gb: float) -> float:
    """Return the GB that a card reports which is sold with `gpu_gb`."""
    return _REPORTED.get(round(gpu_gb), gpu_gb)


def estimate_memory(profile: Profile, layout: Layout, card_gb: float) -> MemoryFit:
    """Sum the memory of one layout on cards of `card_gb`."""
    parts = layout.tensor_parallel * layout.pipeline_parallel
    heads = max(profile.kv_heads / layout.tensor_parallel, 1.0)  # a head is not cut: more GPUs than heads keep copies
    layers = profile.layers / layout.pipeline_parallel
    token = 2 * layers * heads * profile.head_dim * profile.kv_bytes
    sequences = layout.sequences or (_MANY_SEQUENCES if card_gb >= _MANY_GB else _SEQUENCES)
    computing = (sequences * profile.vocabulary * _SAMPLER_BYTES / 1e9, layers * _GRAPHS_GB_OF_LAYER, _LIBRARIES_GB)
    if layout.reserve_gb is not None:
        computing = (layout.reserve_gb, 0.0, 0.0)
    context = token * layout.max_context / 1e9
    return MemoryFit(layout, card_gb, profile.weights_gb / parts, *computing, context, sequences)


def fit_lowered(profile: Profile, layout: Layout, card_gb: float, *, context_given: bool = False) -> MemoryFit:
    """Sum the memory of the layout, with fewer sequences and then a shorter context if it does not fit otherwise.

    What is given stays: `layout.sequences`, and the context if `context_given`. If nothing fits, the sum as it was.
    """
    full_fit = estimate_memory(profile, layout, card_gb)
    fit = full_fit
    for lowered in _lowered(layout, full_fit.sequences, context_given=context_given):
        fit = estimate_memory(profile, lowered, card_gb)
        if fit.fits:
            return fit
    return full_fit


def _lowered(layout: Layout, sequences: int, *, context_given: bool) -> Iterator[Layout]:
    yield layout
    if layout.sequences is None:
        while sequences > _FEWEST_SEQUENCES:
            sequences //= 2
            layout = layout.model_copy(update={"sequences": sequences})
            yield layout
    if not context_given:
        for context in range(layout.max_context // _STEP * _STEP, _SHORTEST_CONTEXT - 1, -_STEP):
            yield layout.model_copy(update={"max_context": context})


def layouts_over(name: str, profile: Profile, nodes: int) -> list[Layout]:
    """List the layouts over `nodes` machines; raises `EngineError` if there is none."""
    layouts = [layout for layout in profile.layouts if layout.nodes == nodes]
    if not layouts:
        have = ", ".join(str(count) for count in sorted({layout.nodes for layout in profile.layouts}))
        raise EngineError(f"{name} has no layout for {nodes} nodes, only for {have}; add one in your own profile")
    return layouts


def choose_layout(
    name: str, profile: Profile, cards: Sequence[Gpu], *, replicas: int = 1, nodes: int = 1
) -> tuple[Layout, tuple[Gpu, ...]]:
    """Choose the layout for the largest card size that enough of `cards` have, and the cards for all replicas on this
    node.

    A card counts if as much of it is free as vLLM may take. Among layouts for one size the first that has its GPUs
    wins; if the cards are smaller than every layout's, the first whose sum fits them does. Raises `EngineError`
    if none has its GPUs.
    """
    layouts = layouts_over(name, profile, nodes)
    for layout in sorted(layouts, key=lambda candidate: -candidate.gpu_gb):
        if choice := _cards(layout, [card for card in cards if card.total_gb >= layout.gpu_gb], replicas):
            return layout, choice
    for layout in sorted(layouts, key=lambda candidate: candidate.gpu_gb):
        if choice := _cards(
            layout, [card for card in cards if fit_lowered(profile, layout, card.total_gb).fits], replicas
        ):
            return layout, choice
    raise EngineError(_too_few(name, profile, layouts, cards, replicas))


def check_fit(name: str, profile: Profile, layout: Layout, card_gb: float, *, context_given: bool = False) -> MemoryFit:
    """Sum the memory, of the layout lowered if need be; raises `EngineError` with the sum and the ways out if nothing
    fits.
    """
    fit = fit_lowered(profile, layout, card_gb, context_given=context_given)
    if not fit.fits:
        raise EngineError(f"{_parted(name, profile, fit)}: {_ways_out(profile, fit)}")
    return fit


def _cards(layout: Layout, cards: Sequence[Gpu], replicas: int) -> tuple[Gpu, ...]:
    free = [card for card in cards if card.free_gb >= card.total_gb * layout.memory_share]
    count = layout.gpus_per_node * replicas
    return tuple(free[:count]) if len(free) >= count else ()


def _parted(name: str, profile: Profile, fit: MemoryFit) -> str:
    parts = fit.layout.tensor_parallel * fit.layout.pipeline_parallel
    weights = f"{profile.weights_gb:.1f} GB of weights over {_gpus(parts)} = {fit.weights:.1f} GB each"
    return f"{name} needs {weights}: {fit}"


def _ways_out(profile: Profile, fit: MemoryFit) -> str:
    layout = fit.layout
    ways = []
    tokens = int(fit.contexts * layout.max_context) // _STEP * _STEP
    if tokens > 0:
        ways.append(f"a context of at most {tokens} tokens (--max-model-len {tokens})")
    enough = _enough(profile, layout, fit.card_gb)
    if enough is not None:
        ways.append(f"{enough} GPUs of that size (-- --tensor-parallel-size {enough})")
    return "use " + ", or ".join([*ways, "larger cards", "a smaller model"])


def _enough(profile: Profile, layout: Layout, card_gb: float) -> int | None:
    """Find the fewest GPUs of this size, doubled step by step, that the model fits on; None if over `_MOST_GPUS`."""
    counts = (layout.tensor_parallel << step for step in range(1, _MOST_GPUS.bit_length()))
    for count in counts:
        wider = layout.model_copy(update={"tensor_parallel": count, "nodes": 1})
        if count <= _MOST_GPUS and fit_lowered(profile, wider, card_gb, context_given=True).fits:
            return count
    return None


def _too_few(name: str, profile: Profile, layouts: list[Layout], cards: Sequence[Gpu], replicas: int) -> str:
    largest = max((card.total_gb for card in cards), default=0.0)
    able = [layout for layout in layouts if layout.gpu_gb <= largest]
    demand = " or ".join(
        f"{_gpus(layout.gpus_per_node * replicas)} of {layout.gpu_gb:.0f} GB"
        for layout in sorted(able or layouts, key=lambda candidate: (-candidate.gpu_gb, -candidate.gpus))
    )
    head = f"{name} wants {demand}" + (f" for {replicas} replicas" if replicas > 1 else "")
    if not cards:
        return f"{head}, and none is here: use a machine that has them, or a smaller model"
    supply = f"here are {', '.join(map(str, cards))}"
    widest = 2 ** (len(cards).bit_length() - 1)
    trial = (able or layouts)[0].model_copy(
        update={"tensor_parallel": widest, "pipeline_parallel": 1, "data_parallel": 1, "nodes": 1}
    )
    fit = fit_lowered(profile, trial, min(card.total_gb for card in cards))
    if not fit.fits:
        return f"{head}, and {supply}. {_parted(name, profile, fit)}: {_ways_out(profile, fit)}"
    share = min(layout.memory_share for layout in layouts)
    ways = ["stop what else runs there"] + (["use fewer replicas"] if replicas > 1 else [])
    ways += [f"split the model otherwise (-- --tensor-parallel-size {widest})"]
    ways += ["take less of each card (-- --gpu-memory-utilization 0.8)"]
    return f"{head} with {share:.0%} of each free, and {supply}: {', or '.join(ways)}"


def _gpus(count: int) -> str:
    return count_of(count, "GPU")
