"""Which model and how it is reached: the `model` part of a spec."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from medexam.plugins import is_live_name, load_object
from medexam.specs.base import Spec
from medexam.specs.extra_body import check_extra_body
from medexam.specs.names import ENGINES, part_name, short_name
from medexam.specs.secret_values import INSTEAD, is_variable

EngineName = Literal["embedded", "vllm", "litellm", "scripted"]
REGISTRY = "registry:"
"""Opens an endpoint that is a registry file."""
DType = Literal["auto", "float32", "bfloat16", "float16"]
Thinking = Literal["on", "off"] | Annotated[int, Field(ge=1)]
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
REQUEST_SETTINGS = ("min_p", "reasoning_effort", "thinking", "extra_body")
"""Fields that not every engine can pass on; one that cannot refuses them by name."""


class ModelSpec(Spec):
    """A model, the engine that runs it and its sampling."""

    engine: str = "embedded"
    """`embedded`: transformers in this process. `vllm`: vLLM's OpenAI-compatible servers. `litellm`: any hosted
    model that litellm knows. `scripted`: replies from a table, for dry runs. Or one that an installed package adds,
    or a class of one's own, `./file.py:Name` or `module:Name`."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of an engine of one's own."""
    name: str | None = None
    """Hub id, or the name a server or provider knows the model by. None: SmolLM2-135M-Instruct when embedded; when
    vllm the profile's model, or the only model of the server."""
    profile: str | None = None
    """vllm: a model profile, by its name or as a YAML file; it gives `name` and `revision` if they are None."""
    start: bool = False
    """vllm: start the profile's server on this machine, use it, and stop it at the end of the run."""
    path: Path | None = None
    """embedded: a folder with the model. scripted: a YAML file with the replies."""
    revision: str | None = None
    """embedded: the hub's branch, tag or commit; None is the default branch."""
    endpoints: tuple[str, ...] = ()
    """vllm: base addresses such as `http://127.0.0.1:8000/v1`, or one `registry:FILE`, which is read at the start
    and again after a fault; none: those that `medexam serve` started on this machine. litellm: at most one, which is
    asked in OpenAI's API."""
    wait_s: Annotated[float, Field(ge=0)] = 300.0
    """vllm, litellm: seconds that a run waits for a server that `endpoints` names: for the first reply of one that
    loads its model, for the first server of a registry, and when the last one has left."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; None: the key that a registry names, the provider's usual
    variable, or no key."""
    api_key_file: Path | None = None
    """A file that holds the key and that only its owner may read; instead of `api_key_env`."""
    ca_bundle: Path | None = None
    """vllm: a file of certificates (PEM) that https endpoints are checked against; None: the system's."""
    timeout_s: Annotated[float, Field(gt=0)] = 600.0
    """vllm, litellm: seconds that one request may take, waiting in the server's queue included."""
    dtype: DType = "auto"
    """embedded: the weights' type; `auto` is bfloat16 if the device multiplies it, else float32."""
    device: str = "auto"
    """embedded: `cpu`, `cuda`, `cuda:1` or `auto`."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    """0 takes the likeliest token at each step. None, only for a `dspy.LM`, leaves it to the provider."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Draw from the likeliest tokens that together have this probability; None draws from all."""
    top_k: Annotated[int, Field(ge=1)] | None = None
    """Draw from this many of the likeliest tokens; None draws from all."""
    min_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Draw from the tokens that are at least this share as likely as the likeliest; None draws from all."""
    stop: tuple[str, ...] = ()
    """Texts at which a reply ends, in its thinking too; they are no part of it."""
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    """Tokens a reply may have, its thinking included; None leaves it to the program, which knows how long its
    replies are, and gives a hosted model that thinks 8,192 tokens more. 0, only for a `dspy.LM`, leaves it to the
    provider."""
    price: tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(ge=0)]] | None = None
    """US dollars of a million tokens, of prompts and of replies; None: what litellm's list says of a hosted model."""
    seed: int | None = 0
    """Seed of the sampling; without effect at temperature 0. None sends none, and a provider that takes none gets
    none."""
    reasoning_effort: ReasoningEffort | None = None
    """How much a reasoning model thinks, in the words that it knows; None leaves it to the model."""
    thinking: Thinking | None = None
    """`on` or `off`, or how many tokens of a reply may be thinking, not when embedded; None leaves it to the model."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """vllm, litellm: further fields of each request, the server's or provider's own. No API key, and no field
    that the spec or a program sets."""

    def __hash__(self) -> int:
        """Return the hash of its JSON: `args` may hold lists."""
        return hash(self.model_dump_json())

    @field_validator("engine")
    @classmethod
    def _engine_is_known(cls, engine: str) -> str:
        return part_name(engine, get_args(EngineName), ENGINES)

    @field_validator("thinking", mode="before")
    @classmethod
    def _switch_is_a_word(cls, thinking: Any) -> Any:
        """Take true and false as `on` and `off`, which YAML reads so."""
        return {True: "on", False: "off"}[thinking] if isinstance(thinking, bool) else thinking

    @field_validator("stop")
    @classmethod
    def _stops_are_texts(cls, stop: tuple[str, ...]) -> tuple[str, ...]:
        if not all(stop):
            raise ValueError("a text at which replies end must not be empty")
        return stop

    @model_validator(mode="after")
    def _engine_has_what_it_needs(self) -> Self:
        self._check_servers()
        if self.args and not self.is_own:
            raise ValueError(f"args belongs to an engine of your own, not to {self.engine!r}: leave it out")
        if self.engine == "litellm" and not self.name:
            raise ValueError("engine 'litellm' needs a name, such as openai/gpt-4o-mini")
        if self.engine == "litellm" and len(self.endpoints) > 1:
            raise ValueError("engine 'litellm' takes one endpoint at most")
        if self.engine == "scripted" and self.path is None:
            raise ValueError("engine 'scripted' needs a path to the YAML file with its replies")
        if (self.is_own or self.engine in ("embedded", "scripted")) and self.endpoints:
            raise ValueError(f"engine {self.engine!r} runs in this process and takes no endpoints")
        self._check_sampling()
        if self.engine == "embedded" and self.name and self.path:
            raise ValueError("engine 'embedded' takes a name from the hub or a path, not both")
        if self.engine == "embedded" and self.name and self.name.startswith(("/", "./", "../", "~")):
            raise ValueError(f"name means a model of the hub: for a folder or file write path: {self.name}")
        return self

    def _check_sampling(self) -> None:
        if not is_live_name(self.engine) and (self.temperature is None or self.max_tokens == 0):
            name = "max_tokens, of at least 1" if self.max_tokens == 0 else "temperature, such as 0"
            raise ValueError(f"only a dspy.LM of a script leaves this to the provider: set {name}")
        if not self.temperature and (self.top_p, self.top_k, self.min_p) != (None, None, None):
            raise ValueError(
                "top_p, top_k and min_p change nothing at temperature 0: set a temperature, or leave them out"
            )
        if self.engine == "embedded" and isinstance(self.thinking, int):
            raise ValueError(
                "engine 'embedded' limits no thinking within a reply: set thinking to on or off, and max_tokens"
            )
        if self.reasoning_effort == "none" and self.thinking not in (None, "off"):
            raise ValueError(
                f"reasoning_effort: none turns thinking off, and thinking is {self.thinking!r}: leave one out"
            )
        unsupported_settings = {"embedded": ("extra_body",), "scripted": REQUEST_SETTINGS}.get(
            self.engine, REQUEST_SETTINGS if self.is_own else ()
        )
        if extra_settings := [name for name in unsupported_settings if name in self.request_settings]:
            advice = "hand it to your engine in args" if self.is_own else "leave it out"
            raise ValueError(f"engine {self.engine!r} takes no {' and no '.join(extra_settings)}: {advice}")
        check_extra_body(self.extra_body)

    def _check_servers(self) -> None:
        if self.engine != "vllm" and (self.start or self.ca_bundle):
            raise ValueError("start and ca_bundle belong to engine 'vllm'")
        if self.profile and (self.is_own or self.engine in ("embedded", "litellm", "scripted")):
            raise ValueError("profile belongs to engine 'vllm'")
        if self.start and self.profile is None:
            raise ValueError("start needs a profile, such as profile: smollm2-cpu")
        if self.start and self.endpoints:
            raise ValueError("start starts its own server and takes no endpoints")
        registries = [endpoint for endpoint in self.endpoints if endpoint.startswith(REGISTRY)]
        if registries and len(self.endpoints) > 1:
            raise ValueError("endpoints has a registry and addresses: give the registry alone, which names the servers")
        if any(mark in endpoint for endpoint in self.endpoints for mark in "@?#" if endpoint not in registries):
            raise ValueError(f"endpoints are addresses without user, password or query: {INSTEAD}")
        if self.api_key_env is not None and not is_variable(self.api_key_env):
            raise ValueError(
                "api_key_env is not the name of an environment variable: write the name there, never the key"
            )
        if self.api_key_env and self.api_key_file:
            raise ValueError("api_key_env or api_key_file, not both")

    @property
    def registry(self) -> Path | None:
        """The registry file that `endpoints` names; None where it names none."""
        first = self.endpoints[0] if self.endpoints else ""
        return Path(first.removeprefix(REGISTRY)).expanduser() if first.startswith(REGISTRY) else None

    @property
    def request_settings(self) -> dict[str, Any]:
        """Those of `REQUEST_SETTINGS` that are given, by name."""
        values = {name: getattr(self, name) for name in REQUEST_SETTINGS}
        return {name: value for name, value in values.items() if value not in (None, {})}

    @property
    def is_own(self) -> bool:
        """Whether the engine is a class of the user's own."""
        return ":" in self.engine

    def ask_engine(self, trait: str, *arguments: Any) -> Any:
        """Return what the class of an engine that an installed package adds says of itself; None if it says nothing."""
        if self.engine in get_args(EngineName) or (self.is_own and not self.engine.startswith(f"{ENGINES}:")):
            return None
        value = getattr(load_object(self.engine, ENGINES), trait, None)
        return value(*arguments) if callable(value) else value

    @property
    def loads_weights(self) -> bool:
        """Whether the process that asks holds the model itself."""
        return self.engine == "embedded"

    @property
    def is_billed(self) -> bool:
        """Whether a provider bills each token."""
        return (self.engine == "litellm" and not self.endpoints) or bool(self.ask_engine("is_billed", self))

    @property
    def is_free(self) -> bool:
        """Whether nobody can bill a token: the model runs in this process, or in one that this command starts."""
        return self.engine in ("embedded", "scripted") or self.start or bool(self.ask_engine("is_free", self))

    @property
    def is_named_by_server(self) -> bool:
        """Whether only a server that runs already knows the model's name."""
        return self.engine == "vllm" and self.name is None and not self.start

    @property
    def label(self) -> str:
        """Short name for tables: the model's own, without its folder or organisation."""
        if self.engine == "scripted":
            return "scripted"
        if self.path is not None:
            return self.path.name
        if self.name is not None:
            return self.name.rsplit("/", 1)[-1]
        if self.profile is not None:
            return Path(self.profile).name.removesuffix(".yaml").removesuffix(".yml")
        if self.is_own:
            return short_name(self.engine)
        return "SmolLM2-135M-Instruct" if self.engine == "embedded" else "served"
