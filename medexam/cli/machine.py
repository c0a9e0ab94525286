"""What `medexam doctor` without a server says of this machine: what is here, and what that lets its user do."""

import os
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from medexam.datasets.locating import find_files
from medexam.serve.launch.memory import find_gpus
from medexam.specs.catalogue import CATALOGUE

EXTRAS: Mapping[str, tuple[str, str]] = {
    "local": ("torch", "models in this process"),
    "mlflow": ("mlflow", "medexam ui and medexam track"),
    "bm25": ("bm25s", "passages by their words"),
    "retrieval": ("faiss", "passages by their meaning"),
    "data": ("datasets", "data sets of the hub, Excel"),
    "plots": ("matplotlib", "plots"),
    "optimize": ("optuna", "MIPRO"),
    "ray": ("ray", "clusters"),
    "vllm": ("vllm", "medexam serve in this environment"),
}
"""Extra -> the module that it brings, and what it is for."""
KEYS = ("_API_KEY", "AWS_ACCESS_KEY_ID", "HF_TOKEN")
"""How variables of providers end; whether they are set is said, their values never."""
_PACKAGES = ("medexam", "dspy", "litellm", "torch", "transformers", "vllm", "mlflow")


def machine_rows() -> Iterator[tuple[str, str, str]]:
    """Yield what was looked at, what is here, and what that lets you do; nothing is loaded or asked."""
    yield "versions", ", ".join(filter(None, map(_version, _PACKAGES))), ""
    gpus = ", ".join(f"{gpu.name} with {gpu.total_gb:.0f} GB" for gpu in find_gpus())
    use = "`medexam serve --list` shows which models fit" if gpus else "small models, or a server elsewhere"
    yield "GPU", gpus or "none", use
    keys = sorted(name for name, value in os.environ.items() if value and name.endswith(KEYS))
    yield "keys", ", ".join(keys) or "none; such as OPENAI_API_KEY", "hosted models, such as --model openai/gpt-4o-mini"
    here = [name for name, entry in CATALOGUE.items() if find_files(name, entry.languages[0])]
    yield "data sets", ", ".join(here), "`medexam data list` says where to get others"
    for extra, (module, purpose) in EXTRAS.items():
        missing = find_spec(module) is None
        how = f": pip install 'medexam[{extra}]'" if missing else ""
        yield f"extra {extra}", "missing" if missing else "installed", f"{purpose}{how}"


def _version(package: str) -> str | None:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return None
