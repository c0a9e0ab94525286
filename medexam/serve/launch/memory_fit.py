"""Whether a model fits on the cards that there are, by a sum that an error can print.

On each GPU lie its part of the weights, what the runtime needs, and the keys and values of what is in flight, of which
at least one whole context must fit. The sum of the keys and values is an upper bound: layers that look back over a
window alone need less.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from medexam.errors import EngineError
from medexam.serve.launch.gpus import Gpu
from medexam.serve.launch.profile import Layout, Profile

_MOST_GPUS = 64


@dataclass(frozen=True)
class MemoryFit:
    """The sum for one layout on cards of one size; all in GB (10^9 bytes) per GPU."""

    layout: Layout
    card_gb: float
    weights: float
    context: float
    """Keys and values of one whole context."""

    @property
    def usable(self) -> float:
        """What vLLM may take."""
        return self.card_gb * self.layout.memory_share

    @property
    def needed(self) -> float:
        """Weights, runtime and one context."""
        return self.weights + self.layout.reserve_gb + self.context

    @property
    def fits(self) -> bool:
        """Whether at least one context fits."""
        return self.needed <= self.usable

    @property
    def contexts(self) -> float:
        """Whole contexts that the cache holds at once."""
        return max(self.usable - self.weights - self.layout.reserve_gb, 0.0) / self.context

    @property
    def note(self) -> str:
        """The sum in words, and what the cache then holds."""
        return f"{self}; the cache holds {self.contexts:.1f} whole contexts at once"

    def __str__(self) -> str:
        """The sum in words."""
        sign = "<=" if self.fits else ">"
        return (
            f"{self.weights:.1f} GB of weights + {self.layout.reserve_gb:.1f} GB for the runtime + "
            f"{self.context:.1f} GB of cache for one context of {self.layout.max_context} tokens = "
            f"{self.needed:.1f} GB {sign} {self.usable:.1f} GB "
            f"({self.layout.memory_share:.0%} of {self.card_gb:.1f} GB)"
        )


def estimate_memory(profile: Profile, layout: Layout, card_gb: float) -> MemoryFit:
    """The sum for one layout on cards of `card_gb`."""
    parts = layout.tensor_parallel * layout.pipeline_parallel
    heads = max(profile.kv_heads / layout.tensor_parallel, 1.0)  # a head is not cut: more GPUs than heads keep copies
    token = 2 * profile.layers / layout.pipeline_parallel * heads * profile.head_dim * profile.kv_bytes
    return MemoryFit(layout, card_gb, profile.weights_gb / parts, token * layout.max_context / 1e9)


def layouts_over(name: str, profile: Profile, nodes: int) -> list[Layout]:
    """The layouts over `nodes` machines; raises `EngineError` if there is none."""
    layouts = [layout for layout in profile.layouts if layout.nodes == nodes]
    if not layouts:
        have = ", ".join(str(count) for count in sorted({layout.nodes for layout in profile.layouts}))
        raise EngineError(f"{name} has no layout for {nodes} nodes, only for {have}; add one in a profile of your own")
    return layouts


def choose_layout(
    name: str, profile: Profile, cards: Sequence[Gpu], *, replicas: int = 1, nodes: int = 1
) -> tuple[Layout, tuple[Gpu, ...]]:
    """The layout for the largest card size that enough of `cards` have, and the cards for all replicas on this node.

    A card counts if as much of it is free as vLLM may take. Among layouts for one size the first that has its GPUs
    wins; if the cards are smaller than every layout's, the first whose sum fits them does. Raises `EngineError`
    if none has its GPUs.
    """
    layouts = layouts_over(name, profile, nodes)
    for layout in sorted(layouts, key=lambda one: -one.gpu_gb):
        if chosen := _cards(layout, [card for card in cards if card.total_gb >= layout.gpu_gb], replicas):
            return layout, chosen
    for layout in sorted(layouts, key=lambda one: one.gpu_gb):
        if chosen := _cards(
            layout, [card for card in cards if estimate_memory(profile, layout, card.total_gb).fits], replicas
        ):
            return layout, chosen
    raise EngineError(_too_few(name, profile, layouts, cards, replicas))


def check_fit(name: str, profile: Profile, layout: Layout, card_gb: float) -> MemoryFit:
    """The sum, if it fits; raises `EngineError` with the sum and the ways out if it does not."""
    found = estimate_memory(profile, layout, card_gb)
    if not found.fits:
        raise EngineError(f"{_parted(name, profile, found)}: {_ways_out(profile, found)}")
    return found


def _cards(layout: Layout, cards: Sequence[Gpu], replicas: int) -> tuple[Gpu, ...]:
    free = [card for card in cards if card.free_gb >= card.total_gb * layout.memory_share]
    count = layout.gpus_per_node * replicas
    return tuple(free[:count]) if len(free) >= count else ()


def _parted(name: str, profile: Profile, found: MemoryFit) -> str:
    parts = found.layout.tensor_parallel * found.layout.pipeline_parallel
    weights = f"{profile.weights_gb:.1f} GB of weights over {_gpus(parts)} = {found.weights:.1f} GB each"
    return f"{name} needs {weights}: {found}"


def _ways_out(profile: Profile, found: MemoryFit) -> str:
    layout = found.layout
    ways = []
    room = found.usable - found.weights - layout.reserve_gb
    tokens = int(room / found.context * layout.max_context) // 256 * 256
    if tokens > 0:
        ways.append(f"a context of at most {tokens} tokens (--max-model-len {tokens})")
    enough = _enough(profile, layout, found.card_gb)
    if enough is not None:
        ways.append(f"{enough} GPUs of that size (-- --tensor-parallel-size {enough})")
    return "use " + ", or ".join([*ways, "larger cards", "a smaller model"])


def _enough(profile: Profile, layout: Layout, card_gb: float) -> int | None:
    """The fewest GPUs of this size, doubled step by step, that the model fits on; None if more than `_MOST_GPUS`."""
    counts = (layout.tensor_parallel << step for step in range(1, _MOST_GPUS.bit_length()))
    for count in counts:
        wider = layout.model_copy(update={"tensor_parallel": count, "nodes": 1})
        if count <= _MOST_GPUS and estimate_memory(profile, wider, card_gb).fits:
            return count
    return None


def _too_few(name: str, profile: Profile, layouts: list[Layout], cards: Sequence[Gpu], replicas: int) -> str:
    largest = max((card.total_gb for card in cards), default=0.0)
    able = [layout for layout in layouts if layout.gpu_gb <= largest]
    wanted = " or ".join(
        f"{_gpus(layout.gpus_per_node * replicas)} of {layout.gpu_gb:.0f} GB"
        for layout in sorted(able or layouts, key=lambda one: (-one.gpu_gb, -one.gpus))
    )
    head = f"{name} wants {wanted}" + (f" for {replicas} replicas" if replicas > 1 else "")
    if not cards:
        return f"{head}, and none is here: use a machine that has them, or a smaller model"
    here = f"here are {', '.join(map(str, cards))}"
    widest = 2 ** (len(cards).bit_length() - 1)
    trial = (able or layouts)[0].model_copy(
        update={"tensor_parallel": widest, "pipeline_parallel": 1, "data_parallel": 1, "nodes": 1}
    )
    found = estimate_memory(profile, trial, min(card.total_gb for card in cards))
    if not found.fits:
        return f"{head}, and {here}. {_parted(name, profile, found)}: {_ways_out(profile, found)}"
    share = min(layout.memory_share for layout in layouts)
    ways = ["stop what else runs there"] + (["use fewer replicas"] if replicas > 1 else [])
    ways += [f"split the model otherwise (-- --tensor-parallel-size {widest})"]
    ways += ["take less of each card (-- --gpu-memory-utilization 0.8)"]
    return f"{head} with {share:.0%} of each free, and {here}: {', or '.join(ways)}"


def _gpus(count: int) -> str:
    return f"{count} GPU{'' if count == 1 else 's'}"
