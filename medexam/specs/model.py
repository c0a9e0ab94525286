"""Which model and how it is reached: the `model` part of a spec, and what one text says of it.

It knows forms of texts and asks nobody: whether a provider has such a model, or which kind of server answers at an
address, is found out later.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from medexam.errors import SpecError
from medexam.plugins import added_names, is_live_name, load_object
from medexam.specs.base import ENGINES, INSTEAD, Spec, find_source, part_of, short_name, walk
from medexam.text import SECRET_NAME, nearest

EngineName = Literal["embedded", "vllm", "litellm", "scripted"]
REGISTRY = "registry:"
"""Opens an endpoint that is a registry."""
_ADDRESSES = ("http://", "https://")
SAMPLING = ("temperature", "top_p", "top_k", "min_p", "stop", "max_tokens", "seed", "reasoning_effort", "thinking")
"""The fields that say how a model is sampled; the others say which one it is and how it is reached."""
_HTTP = ("vllm", "litellm", "added")
_TAKEN_BY = {
    "args": ("own",),
    "path": ("embedded", "scripted", "own", "added"),
    "revision": ("embedded", "vllm", "own", "added"),
    **dict.fromkeys(("dtype", "device"), ("embedded", "own", "added")),
    "profile": ("vllm", "added"),
    "endpoints": _HTTP,
    "extra_body": _HTTP,
    **dict.fromkeys(("min_p", "reasoning_effort", "thinking"), ("embedded", *_HTTP)),
}
"""Field -> the engines that take it: `own` is one of the user's own, `added` one that a package adds."""
_OWN = re.compile(r".+\.py:[\w.]+|[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
"""A class of one's own, in a file or a module."""
_PATH = re.compile(r"(\.{0,2}[/\\]|~).*|\.{1,2}|.*\.gguf", re.IGNORECASE)
_PROFILES = Path(__file__).parents[1] / "serve" / "profiles"


class ModelSpec(Spec):
    """A model, the engine that runs it and its sampling."""

    engine: Annotated[str, part_of(ENGINES, EngineName)] = "embedded"
    """`embedded`: transformers in this process. `vllm`: its servers. `litellm`: any hosted model. `scripted`: replies
    from a table, for dry runs. Or one that an installed package adds, or a class of one's own, `./file.py:Name`."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of an engine of one's own."""
    name: str | None = None
    """Hub id, or the name a server or provider knows the model by. None: SmolLM2-135M-Instruct when embedded; when
    vllm the profile's model, or the only model of the server."""
    profile: str | None = None
    """vllm: a model profile, by its name or as a YAML file; it gives `name` and `revision` if they are None."""
    path: Path | None = None
    """embedded: a folder with the model. scripted: a YAML file with the replies."""
    revision: str | None = None
    """embedded: the hub's branch, tag or commit; None is the default branch."""
    endpoints: tuple[str, ...] = ()
    """vllm: base addresses such as `http://127.0.0.1:8000/v1`, or one `registry:FOLDER`; none: those that `medexam
    serve` started on this machine. litellm: at most one, which is asked in OpenAI's API."""
    wait_s: Annotated[float, Field(ge=0)] = 300.0
    """vllm, litellm: seconds that a run waits for a server of `endpoints` that loads its model, or has left."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; None: the registry's or provider's usual one, or no key."""
    timeout_s: Annotated[float, Field(gt=0)] = 600.0
    """vllm, litellm: seconds that one request may take, waiting in the server's queue included."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
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
    stop: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Texts at which a reply ends, in its thinking too; they are no part of it."""
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    """Tokens a reply may have, its thinking included; None leaves it to the program, and gives a hosted model that
    thinks 8,192 tokens more. 0, only for a `dspy.LM`, leaves it to the provider."""
    price: tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(ge=0)]] | None = None
    """US dollars of a million tokens, of prompts and of replies; None: what litellm's list says of a hosted model."""
    seed: int | None = 0
    """Seed of the sampling; without effect at temperature 0. None sends none."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    """How much a reasoning model thinks, in the words that it knows; None leaves it to the model."""
    thinking: Literal["on", "off"] | Annotated[int, Field(ge=1)] | None = None
    """`on` or `off`, or how many tokens of a reply may be thinking, not when embedded; None leaves it to the model."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """vllm, litellm: further fields of each request; no API key, and no field that the spec or a program sets."""

    @field_validator("thinking", mode="before")
    @classmethod
    def _switch_is_a_word(cls, thinking: Any) -> Any:
        return {True: "on", False: "off"}[thinking] if isinstance(thinking, bool) else thinking

    @model_validator(mode="after")
    def _settings_fit(self) -> Self:
        if advice := next((advice for is_wrong, advice in self._faults() if is_wrong), None):
            raise ValueError(advice)
        return self

    def _faults(self) -> Iterator[tuple[object, str]]:
        engine, endpoints, variable = self.engine, self.endpoints, self.api_key_env
        kind = engine if engine in get_args(EngineName) else "own" if self.is_own else "added"
        for name, engines in _TAKEN_BY.items():
            engine_names = " or ".join(repr(one) for one in engines if one not in ("own", "added"))
            names = f"engine {engine_names}" if engine_names else "an engine of your own"
            is_set = getattr(self, name) != type(self).model_fields[name].get_default(call_default_factory=True)
            yield kind not in engines and is_set, f"{name} belongs to {names}, not to {engine!r}: leave it out"
        yield engine == "litellm" and len(endpoints) > 1, "engine 'litellm' takes one endpoint at most"
        advice = "endpoints has a registry and addresses: give the registry alone, which names the servers"
        yield len(endpoints) > 1 and any(endpoint.startswith(REGISTRY) for endpoint in endpoints), advice
        with_key = not self.registry and any(mark in endpoint for endpoint in endpoints for mark in "@?#")
        yield with_key, f"endpoints are addresses without user, password or query: {INSTEAD}"
        is_name = variable is None or re.fullmatch(r"[A-Za-z_]\w*", variable, re.ASCII)
        yield not is_name, "api_key_env is not the name of an environment variable: write the name there, never the key"
        is_unset = self.max_tokens == 0 or self.temperature is None
        yield is_unset and not is_live_name(engine), "only a dspy.LM of a script leaves max_tokens and temperature open"
        advice = "engine 'embedded' limits no thinking within a reply: set thinking to on or off, and max_tokens"
        yield engine == "embedded" and isinstance(self.thinking, int), advice
        is_path = self.name and (self.path or self.name.startswith(("/", "./", "../", "~")))
        yield engine == "embedded" and is_path, "name is a model of the hub: for a folder or file write path alone"
        advice = "looks like a key, and specs are stored: name its variable in api_key_env"
        for path, _ in walk(self.extra_body):
            yield SECRET_NAME.search(path.rpartition(".")[2]), f"extra_body.{path} {advice}"

    @property
    def served_name(self) -> str | None:
        """The name that its servers know it by; `engine: litellm` writes a provider before it."""
        name = self.name
        return name.partition("/")[2] or name if name and self.engine == "litellm" else name

    @property
    def registry(self) -> Path | None:
        """The registry that `endpoints` names; None where it names none."""
        first = self.endpoints[0] if self.endpoints else ""
        return Path(first.removeprefix(REGISTRY)).expanduser() if first.startswith(REGISTRY) else None

    @property
    def request_settings(self) -> dict[str, Any]:
        """The settings that are given and that not every engine can pass on, by name; one that cannot refuses them."""
        values = self.model_dump(include={"min_p", "reasoning_effort", "thinking", "extra_body"})
        return {name: value for name, value in values.items() if value not in (None, {})}

    @property
    def is_own(self) -> bool:
        """Whether the engine is a class of the user's own."""
        return ":" in self.engine

    def ask_engine(self, trait: str, *arguments: Any) -> Any:
        """Return what the class of an engine that an installed package adds says of itself; None if it says nothing."""
        if not self.engine.startswith(f"{ENGINES}:") and (self.is_own or self.engine in get_args(EngineName)):
            return None
        value = getattr(load_object(self.engine, ENGINES), trait, None)
        return value(*arguments) if callable(value) else value

    @property
    def is_billed(self) -> bool:
        """Whether a provider bills each token."""
        return (self.engine == "litellm" and not self.endpoints) or bool(self.ask_engine("is_billed", self))

    @property
    def is_free(self) -> bool:
        """Whether nobody can bill a token: the model runs in this process."""
        return self.engine in ("embedded", "scripted") or bool(self.ask_engine("is_free", self))

    @property
    def label(self) -> str:
        """Short name for tables: the model's own, without its folder or organisation."""
        source = self.name if self.path is None else self.path
        if source is not None and self.engine != "scripted":
            return Path(source).name
        if self.profile is not None:
            return Path(self.profile).name.removesuffix(".yaml").removesuffix(".yml")
        return {"embedded": "SmolLM2-135M-Instruct", "scripted": "scripted"}.get(
            self.engine, short_name(self.engine) if self.is_own else "served"
        )


def read_model(text: str) -> dict[str, Any]:
    """Return the fields of the model that `text` means; raises `SpecError`, listing every form, if it means none."""
    source, text = find_source(text), text.strip()
    engines = (*get_args(EngineName), *added_names(ENGINES))
    profiles = [path.stem for path in sorted(_PROFILES.glob("*.yaml"))]
    if text in engines or (_OWN.fullmatch(text) and not text.startswith((REGISTRY, "hf:"))):
        return {"engine": text}
    if text.startswith((*_ADDRESSES, REGISTRY)):
        address, _, name = text.partition("#") if text.startswith(_ADDRESSES) else (text, "", "")
        return {"engine": "vllm", "endpoints": [address], **({"name": name} if name else {})}
    if text.startswith("hf:") and text != "hf:":
        return {"engine": "embedded", "name": text.removeprefix("hf:")}
    if _PATH.fullmatch(text):
        return {"engine": "embedded", "path": text}
    if text.endswith((".yaml", ".yml")) or text in profiles:
        return {"engine": "vllm", "profile": text}
    if "/" in text and not text.startswith(("http:", "https:")) and not os.path.isdir(text):  # noqa: PTH112 - a name too long is none
        return {"engine": "litellm", "name": text}
    is_there = os.path.exists(text)  # noqa: PTH110
    near = f"./{text}" if is_there else nearest(text, [*engines, *profiles])
    raise SpecError(
        f"{source}model {text!r} is not known: {f'did you mean {near}? ' if near else ''}"
        "give PROVIDER/MODEL such as openai/gpt-4o-mini, an address such as http://127.0.0.1:8000/v1, ./FOLDER, "
        "hf:ORGANISATION/NAME, a profile of `medexam serve --list`, or an engine"
    )
