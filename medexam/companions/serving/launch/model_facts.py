"""What a model's own files say of its size: layers, heads, weights and context, of a folder or out of the hub's cache.

A model without a profile is laid out by these facts, with the same arithmetic as a profile.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medexam.companions.serving.launch.memory_fit import card_memory, estimate_memory
from medexam.companions.serving.launch.profile import Layout, Profile

_WEIGHTS = ("*.safetensors", "*.bin")
_SIZES_GB = (80.0, 40.0, 24.0, 141.0)
"""The first is what a job asks for where the cards are not known."""
_CONTEXTS = (32_768, 16_384, 8_192)
"""Contexts that a layout is made for, the longest first that the model takes."""
_MOST_OF_NODE = 8
_FULL = "float32"
_LICENCE = "see the model's page"


def find_snapshot(model: str, revision: str | None = None) -> Path | None:
    """Find the folder of a hub id in the hub's cache; None if it is not there."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface").expanduser()
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser()
    repository = cache / f"models--{model.replace('/', '--')}"
    revision_name = revision or "main"
    try:
        reference = repository / "refs" / revision_name
        commit = reference.read_text(encoding="ascii").strip() if reference.is_file() else revision_name
        snapshot = repository / "snapshots" / commit
        return snapshot if snapshot.is_dir() else None
    except OSError:
        return None


def profile_of(model: str, folder: Path, nodes: int = 1) -> Profile | None:
    """Build a profile of a model folder's own files; None if they do not say enough, or no layout fits."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        text = {**config, **config.get("text_config", {})}
        heads = int(text["num_attention_heads"])
        kv_heads = int(text.get("num_key_value_heads") or heads)
        facts = {
            "weights_gb": _weights_gb(folder, text),
            "layers": int(text["num_hidden_layers"]),
            "kv_heads": kv_heads,
            "head_dim": int(text.get("head_dim") or int(text["hidden_size"]) // heads),
            "vocabulary": int(text["vocab_size"]),
            "context_limit": int(text["max_position_embeddings"]),
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if facts["weights_gb"] <= 0:
        return None
    draft = Profile(
        model=model, dtype="auto", licence=_LICENCE, **facts, layouts=(Layout(gpu_gb=_SIZES_GB[0], max_context=1),)
    )
    layouts = make_layouts(draft, heads, nodes)
    return draft.model_copy(update={"layouts": layouts}) if layouts else None


def make_layouts(profile: Profile, heads: int | None, nodes: int) -> tuple[Layout, ...]:
    """Lay the model out for each size of card on the fewest GPUs that it fits on. Each of several nodes holds a part of
    the layers.

    `heads` are those of attention, which GPUs share evenly; None: as many as of keys and values.
    """
    layouts = []
    contexts = [context for context in _CONTEXTS if context <= profile.context_limit] or [profile.context_limit]
    for size in _SIZES_GB:
        candidates = (
            Layout(gpu_gb=size, tensor_parallel=count, pipeline_parallel=nodes, nodes=nodes, max_context=context)
            for count in (1, 2, 4, _MOST_OF_NODE)
            if (heads or profile.kv_heads) % count == 0
            for context in contexts
        )
        layouts += [
            next(
                (candidate for candidate in candidates if estimate_memory(profile, candidate, card_memory(size)).fits),
                None,
            )
        ]
    return tuple(layout for layout in layouts if layout is not None)


def _weights_gb(folder: Path, config: Mapping[str, Any]) -> float:
    """Sum the GB of the weights as vLLM loads them, which halves those in 32 bits."""
    byte_count = 0
    for pattern in _WEIGHTS:
        index = next(folder.glob(f"{pattern}.index.json"), None)
        if index is not None:
            names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            byte_count = sum((folder / name).stat().st_size for name in names)
        else:
            byte_count = sum(path.stat().st_size for path in folder.glob(pattern))
        if byte_count:
            break
    in_32_bits = (config.get("dtype") or config.get("torch_dtype")) == _FULL
    return byte_count / (2e9 if in_32_bits else 1e9)
