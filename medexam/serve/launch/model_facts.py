"""What a model's own files say of its size: layers, heads, weights and context, of a folder or out of the hub's cache.

A model without a profile is laid out by these facts, with the same arithmetic as a profile.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medexam.serve.launch.memory_fit import card_memory, estimate_memory
from medexam.serve.launch.profile import Layout, Profile

_WEIGHTS = ("*.safetensors", "*.bin")
_SIZES_GB = (80.0, 40.0, 24.0, 141.0)
"""The first is what a job asks for where the cards are not known."""
_CONTEXTS = (32_768, 16_384, 8_192)
"""Contexts that a layout is made for, the longest first that the model takes."""
_MOST_OF_NODE = 8
_FULL = "float32"
_LICENCE = "see the model's page"


def find_snapshot(model: str, revision: str | None = None) -> Path | None:
    """The folder of a hub id in the hub's cache; None if it is not there."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface").expanduser()
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser()
    stored = cache / f"models--{model.replace('/', '--')}"
    wanted = revision or "main"
    try:
        reference = stored / "refs" / wanted
        commit = reference.read_text(encoding="ascii").strip() if reference.is_file() else wanted
        snapshot = stored / "snapshots" / commit
        return snapshot if snapshot.is_dir() else None
    except OSError:
        return None


def profile_of(model: str, folder: Path, nodes: int = 1) -> Profile | None:
    """A profile made of a model folder's own files; None if they do not say enough, or no layout fits."""
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
    bare = Profile(
        model=model,
        dtype="auto",
        licence=_LICENCE,
        **facts,
        layouts=(Layout(gpu_gb=_SIZES_GB[0], max_context=1),),
    )
    layouts = make_layouts(bare, heads, nodes)
    return bare.model_copy(update={"layouts": layouts}) if layouts else None


def make_layouts(profile: Profile, heads: int | None = None, nodes: int = 1) -> tuple[Layout, ...]:
    """For each size of card the fewest GPUs that the model fits on; each of several nodes holds a part of the layers.

    `heads` are those of attention, which GPUs share evenly; None: as many as of keys and values.
    """
    found = []
    contexts = [one for one in _CONTEXTS if one <= profile.context_limit] or [profile.context_limit]
    for size in _SIZES_GB:
        tried = (
            Layout(gpu_gb=size, tensor_parallel=count, pipeline_parallel=nodes, nodes=nodes, max_context=context)
            for count in (1, 2, 4, _MOST_OF_NODE)
            if (heads or profile.kv_heads) % count == 0
            for context in contexts
        )
        found += [next((one for one in tried if estimate_memory(profile, one, card_memory(size)).fits), None)]
    return tuple(layout for layout in found if layout is not None)


def _weights_gb(folder: Path, config: Mapping[str, Any]) -> float:
    """GB of the weights as vLLM loads them, which halves those in 32 bits."""
    stored = 0
    for pattern in _WEIGHTS:
        index = next(folder.glob(f"{pattern}.index.json"), None)
        if index is not None:
            names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            stored = sum((folder / name).stat().st_size for name in names)
        else:
            stored = sum(path.stat().st_size for path in folder.glob(pattern))
        if stored:
            break
    full = (config.get("dtype") or config.get("torch_dtype")) == _FULL
    return stored / (2e9 if full else 1e9)
