"""Which GPUs each of a model's servers gets, and in which layout."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from medexam.companions.serving.launch.gpus import Gpu, find_gpus
from medexam.companions.serving.launch.memory_fit import MemoryFit, card_memory, check_fit, choose_layout, layouts_over
from medexam.companions.serving.launch.profile import Layout, Profile
from medexam.companions.serving.launch.settings import ServerSettings
from medexam.companions.serving.launch.vllm_flags import given_values
from medexam.toolkit.errors import EngineError

_DEFAULTS = ServerSettings()

_LAYOUT = {
    "--tensor-parallel-size": "tensor_parallel",
    "--pipeline-parallel-size": "pipeline_parallel",
    "--data-parallel-size": "data_parallel",
    "--max-model-len": "max_context",
    "--max-num-seqs": "sequences",
    "--gpu-memory-utilization": "memory_share",
}
"""vLLM's flag -> the field of a layout that it changes."""


@dataclass(frozen=True)
class Placement:
    """Where a model's servers run on this machine."""

    layout: Layout | None
    """None: no profile says how to lay the model out."""
    gpus: tuple[tuple[int, ...] | None, ...]
    """A server each: the indices of its cards, () for the processor, None if vLLM takes the cards it sees."""
    notes: tuple[str, ...] = ()


def place_profile(
    name: str,
    profile: Profile,
    settings: ServerSettings = _DEFAULTS,
    flags: Sequence[str] = (),
    *,
    nodes: int = 1,
    printing: bool = False,
) -> Placement:
    """Choose the layout for the cards of this machine, and each server's share of them.

    vLLM's own `flags` change the layouts as they change vLLM. Printing needs no card: if none fits, the first layout is
    shown. Raises `EngineError` with the sum of the memory if the model does not fit.
    """
    replicas, gpus = settings.replicas, settings.gpus
    profile = _overridden(profile, flags, settings.max_context)
    if profile.on_cpu:
        return Placement(layouts_over(name, profile, nodes)[0], ((),) * replicas)
    cards = find_gpus()
    if printing:
        cards = tuple(replace(card, free_gb=card.total_gb) for card in cards)
    try:
        if not cards:
            raise EngineError(
                f"{name} needs a GPU, and nvidia-smi finds none here that CUDA_VISIBLE_DEVICES allows: run this where "
                "one is, submit it with --slurm, look at the command with --print, or try the profile smollm2-cpu"
            )
        layout, server_cards = choose_layout(name, profile, _select_cards(cards, gpus), replicas=replicas, nodes=nodes)
    except EngineError as error:
        if not printing:
            raise
        reason = str(error) if cards else "no GPU here"
        return _imagined(name, profile, settings, nodes, reason, context_given=_gives_context(settings, flags))
    size = min(card.total_gb for card in server_cards)
    fit = check_fit(name, profile, layout, size, context_given=_gives_context(settings, flags))
    note = f"{name} on {layout.gpus} x {server_cards[0].name}, per GPU: {_describe_fit(layout, fit)}"
    return Placement(fit.layout, _shares([card.index for card in server_cards], replicas), (note,))


def place_without_profile(
    replicas: int, gpus: Sequence[int] | None, flags: Sequence[str], *, printing: bool = False
) -> Placement:
    """Choose cards for a model without a profile: `gpus` in equal parts, as many as `flags` ask for, or vLLM's own
    choice.

    Printing needs no card: if there are too few, the first numbers are shown.
    """
    if gpus is None and replicas == 1:
        return Placement(None, (None,))
    if gpus is None:
        sizes = [given_values(flags).get(flag) or "" for flag in ("--tensor-parallel-size", "--pipeline-parallel-size")]
        gpu_count = math.prod(int(size) if size.isdigit() else 1 for size in sizes) * replicas
        cards = [card.index for card in find_gpus()]
        if len(cards) < gpu_count and printing:
            cards = list(range(gpu_count))
        if len(cards) < gpu_count:
            raise EngineError(
                f"{replicas} replicas need {gpu_count} GPUs, and this machine has {len(cards)}; use fewer replicas"
            )
        return Placement(None, _shares(cards[:gpu_count], replicas))
    if len(gpus) < replicas or len(gpus) % replicas:
        raise EngineError(
            f"{len(gpus)} GPUs cannot be divided evenly among {replicas} replicas; name the same "
            "number for each with --gpus"
        )
    return Placement(None, _shares(list(gpus), replicas))


def _gives_context(settings: ServerSettings, flags: Sequence[str]) -> bool:
    return settings.max_context is not None or "--max-model-len" in given_values(flags)


def _describe_fit(layout: Layout, fit: MemoryFit) -> str:
    """Say the sum, and how the layout was lowered to fit."""
    changes = []
    if fit.layout.sequences != layout.sequences:
        changes.append(f"{fit.layout.sequences} sequences at once")
    if fit.layout.max_context != layout.max_context:
        changes.append(f"{fit.layout.max_context} tokens of context instead of {layout.max_context}")
    return f"lowered to {' and '.join(changes)}: {fit.note}" if changes else fit.note


def _imagined(
    name: str, profile: Profile, settings: ServerSettings, nodes: int, reason: str, *, context_given: bool
) -> Placement:
    replicas, gpus = settings.replicas, settings.gpus
    layouts = layouts_over(name, profile, nodes)
    if gpus is not None:
        layouts = [layout for layout in layouts if layout.gpus_per_node * replicas <= len(gpus)]
    if not layouts:
        raise EngineError(f"{name} has no layout for the GPUs that --gpus names; name more of them")
    layout = layouts[0]
    fit = check_fit(name, profile, layout, card_memory(layout.gpu_gb), context_given=context_given)
    note = (
        f"{reason}; so this is the layout for {layout.gpus} x {layout.gpu_gb:.0f} GB, per GPU: "
        f"{_describe_fit(layout, fit)}"
    )
    count = layout.gpus_per_node * replicas
    return Placement(fit.layout, _shares(list(gpus or range(count))[:count], replicas), (note,))


def _select_cards(cards: Sequence[Gpu], gpus: Sequence[int] | None) -> tuple[Gpu, ...]:
    if gpus is None:
        return tuple(cards)
    card_by_index = {card.index: card for card in cards}
    missing = [index for index in gpus if index not in card_by_index]
    if missing:
        raise EngineError(f"no GPU {missing[0]} here; there are {', '.join(map(str, cards))}; name others with --gpus")
    return tuple(card_by_index[index] for index in dict.fromkeys(gpus))


def _shares(cards: Sequence[int], replicas: int) -> tuple[tuple[int, ...], ...]:
    share = len(cards) // replicas
    return tuple(tuple(cards[number * share : (number + 1) * share]) for number in range(replicas))


def _overridden(profile: Profile, flags: Sequence[str], max_context: int | None) -> Profile:
    changes: dict[str, float] = {} if max_context is None else {"max_context": max_context}
    flag_values = given_values(flags)
    for flag, field in _LAYOUT.items():
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
