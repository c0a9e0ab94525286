"""Which model and how it is reached: the `model` part of a spec."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from medexam.specs.base import Spec

EngineName = Literal["embedded", "vllm", "litellm", "scripted"]
DType = Literal["auto", "float32", "bfloat16", "float16"]


class ModelSpec(Spec):
    """A model, the engine that runs it and its sampling."""

    engine: EngineName = "embedded"
    """`embedded`: transformers in this process. `vllm`: vLLM's OpenAI-compatible servers. `litellm`: any hosted
    model that litellm knows. `scripted`: replies from a table, for dry runs."""
    name: str | None = None
    """Hub id, or the name a server or provider knows the model by. None: SmolLM2-135M-Instruct when embedded, the
    only model of the server when vllm."""
    path: Path | None = None
    """embedded: a folder with the model. scripted: a YAML file with the replies."""
    revision: str | None = None
    """embedded: the hub's branch, tag or commit; None is the default branch."""
    endpoints: tuple[str, ...] = ()
    """vllm: base addresses such as `http://127.0.0.1:8000/v1`. litellm: at most one, for a compatible provider."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; None: the provider's usual one, or no key."""
    timeout_s: Annotated[float, Field(gt=0)] = 600.0
    """vllm, litellm: seconds that one request may take, waiting in the server's queue included."""
    dtype: DType = "auto"
    """embedded: the weights' type; `auto` is bfloat16 where the device multiplies it natively, else float32."""
    device: str = "auto"
    """embedded: `cpu`, `cuda`, `cuda:1` or `auto`."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """0 takes the likeliest token at each step."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """Tokens a reply may have; None leaves it to the program, which knows how long its replies are."""
    seed: int = 0
    """Seed of the sampling; without effect at temperature 0."""

    @model_validator(mode="after")
    def _engine_has_what_it_needs(self) -> Self:
        if self.engine == "vllm" and not self.endpoints:
            raise ValueError("engine 'vllm' needs endpoints, such as [http://127.0.0.1:8000/v1]")
        if self.engine == "litellm" and not self.name:
            raise ValueError("engine 'litellm' needs a name, such as openai/gpt-4o-mini")
        if self.engine == "litellm" and len(self.endpoints) > 1:
            raise ValueError("engine 'litellm' takes one endpoint at most")
        if self.engine == "scripted" and self.path is None:
            raise ValueError("engine 'scripted' needs a path to the YAML file with its replies")
        if self.engine in ("embedded", "scripted") and self.endpoints:
            raise ValueError(f"engine {self.engine!r} runs in this process and takes no endpoints")
        if self.engine == "embedded" and self.name and self.path:
            raise ValueError("engine 'embedded' takes a name from the hub or a path, not both")
        return self

    @property
    def label(self) -> str:
        """Short name for tables: the model's own, without its folder or organisation."""
        if self.engine == "scripted":
            return "scripted"
        if self.path is not None:
            return self.path.name
        if self.name is not None:
            return self.name.rsplit("/", 1)[-1]
        return "SmolLM2-135M-Instruct" if self.engine == "embedded" else "served"
