"""What one text says of a model: `model: TEXT` in a spec, `--set model=TEXT` and `--model TEXT` are read here.

It knows forms of texts and asks nobody: whether a provider has such a model, or which kind of server answers at an
address, is found out later.
"""

import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from medexam.errors import SpecError
from medexam.plugins import added_names
from medexam.specs.model import REGISTRY, EngineName
from medexam.specs.names import ENGINES
from medexam.text import nearest

HUB = "hf:"
"""Opens a model of the Hugging Face hub that this process loads."""
ADDRESSES = ("http://", "https://")
FORMS = (
    "PROVIDER/MODEL such as openai/gpt-4o-mini, an address such as http://127.0.0.1:8000/v1, ./FOLDER, "
    "hf:ORGANISATION/NAME, a profile of `medexam serve --list`, or an engine"
)
"""Every way to write a model in one text."""
OF_CONNECTION = frozenset(
    {
        *("engine", "args", "name", "profile", "start", "path", "revision", "endpoints", "wait_s", "api_key_env"),
        *("api_key_file", "ca_bundle", "timeout_s", "dtype", "device", "price", "extra_body"),
    }
)
"""The fields of a model that say which one it is and how it is reached; the others say how it is sampled."""
_OWN = re.compile(r".+\.py:[\w.]+|[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
"""A class of one's own, in a file or a module."""
_USUAL: Mapping[str, str] = MappingProxyType(
    {
        "gpt": "openai",
        "o1": "openai",
        "o3": "openai",
        "o4": "openai",
        "chatgpt": "openai",
        "claude": "anthropic",
        "gemini": "gemini",
        "mistral": "mistral",
        "deepseek": "deepseek",
        "grok": "xai",
        "command": "cohere_chat",
        "sonar": "perplexity",
        "glm": "zai",
    }
)
"""How names of a provider's models begin -> the provider."""
_PROFILES = resources.files("medexam") / "serve" / "profiles"


def read_model(text: str) -> dict[str, Any]:
    """Return the fields of the model that `text` means; raises `SpecError`, listing every form, if it means none."""
    text = text.strip()
    engines = (*get_args(EngineName), *added_names(ENGINES))
    if text in engines:
        return {"engine": text}
    if text.startswith(ADDRESSES):
        address, _, name = text.partition("#")
        return {"engine": "vllm", "endpoints": [address], **({"name": name} if name else {})}
    if text.startswith(REGISTRY):
        return {"engine": "vllm", "endpoints": [text]}
    if text.startswith(HUB) and text != HUB:
        return {"engine": "embedded", "name": text.removeprefix(HUB)}
    if _OWN.fullmatch(text):
        return {"engine": text}
    if is_path(text):
        return {"engine": "embedded", "path": text}
    if text.endswith((".yaml", ".yml")) or text in _profile_names():
        return {"engine": "vllm", "profile": text}
    if "/" in text and not text.startswith(("http:", "https:")):
        if Path(text).is_dir():
            raise SpecError(f"model {text}: write the folder as ./{text}")
        return {"engine": "litellm", "name": text}
    raise SpecError(f"model {text!r} is not known: {_suggest(text, engines)}give {FORMS}")


def is_path(text: str) -> bool:
    """Return whether a model is written as a folder or a file of this machine."""
    return (
        text.startswith(("./", "../", "/", "~", ".\\", "..\\")) or text.lower().endswith(".gguf") or text in (".", "..")
    )


def _profile_names() -> list[str]:
    """List the profiles of models that ship with the package."""
    return sorted(item.name.removesuffix(".yaml") for item in _PROFILES.iterdir() if item.name.endswith(".yaml"))


def _suggest(text: str, engines: tuple[str, ...]) -> str:
    provider = next((owner for begin, owner in _USUAL.items() if text.lower().startswith(begin)), None)
    if provider is not None:
        return f"did you mean {provider}/{text}? "
    if text.startswith(("http:", "https:")):
        scheme, _, place = text.partition(":")
        return f"did you mean {scheme}://{place.lstrip('/')}? "
    if Path(text).exists():
        return f"did you mean ./{text}? "
    suggestion = nearest(text, [*engines, *_profile_names()])
    return f"did you mean {suggestion}? " if suggestion else ""
