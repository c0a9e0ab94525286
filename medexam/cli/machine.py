"""What `medexam doctor` without a server says of this machine: what is here, and what that lets its user do."""

import os
import platform
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from types import MappingProxyType

from medexam.datasets.locating import find_files
from medexam.experiments.store.run_folder import default_runs_dir
from medexam.files import cache_dir
from medexam.plugins import find_broken_parts
from medexam.serve.launch.memory import find_gpus
from medexam.specs.catalogue import CATALOGUE

EXTRAS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
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
)
"""Extra -> the module that it brings, and what it is for."""
KEYS = ("_API_KEY", "AWS_ACCESS_KEY_ID", "HF_TOKEN")
"""How variables of providers end; whether they are set is said, their values never."""
PATIENCE_S = 2.0
"""Seconds that the hub has to answer."""
HUB = "huggingface.co"
BYTES_A_WEIGHT = 2.5
"""Of a model in bfloat16, with room for its states."""
GB = 1e9

Row = tuple[str, str, str]
"""What was looked at, what is here, and what that lets you do."""


def machine_rows() -> Iterator[Row]:
    """Yield what is here, row by row; nothing is loaded, and only the hub's address is opened."""
    yield "system", f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors", ""
    yield "versions", ", ".join(_versions()), ""
    with suppress(AttributeError, ValueError, OSError):  # where the system says it
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        weights = f"a local model of up to {memory / BYTES_A_WEIGHT / GB:.0f} billion weights"
        yield "memory", f"{memory / GB:.0f} GB", weights
    yield _gpus()
    for name, folder in (("disk of the runs", default_runs_dir()), ("disk of the cache", cache_dir())):
        place = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
        free = shutil.disk_usage(place).free
        yield name, f"{free / GB:.0f} GB free, {folder}", "" if free > GB else "make room before a run"
    keys = sorted(name for name, value in os.environ.items() if value and name.endswith(KEYS))
    yield "keys", ", ".join(keys) or "none; such as OPENAI_API_KEY", "hosted models, such as --model openai/gpt-4o-mini"
    here = [name for name, entry in CATALOGUE.items() if find_files(name, entry.languages[0])]
    yield "data sets", ", ".join(here), "`medexam data list` says where to get others"
    for extra, (module, purpose) in EXTRAS.items():
        missing = find_spec(module) is None
        how = f": pip install 'medexam[{extra}]'" if missing else ""
        yield f"extra {extra}", "missing" if missing else "installed", f"{purpose}{how}"
    yield from ((f"part {part}", "cannot be loaded", reason) for part, reason in find_broken_parts())
    yield _network()


def _versions() -> Iterator[str]:
    yield f"Python {sys.version.partition(' ')[0]}"
    for package in ("medexam", "dspy", "litellm", "torch", "transformers", "vllm", "mlflow"):
        with suppress(PackageNotFoundError):
            yield f"{package} {version(package)}"


def _gpus() -> Row:
    gpus = find_gpus()
    if not gpus:
        return "GPU", "none", "small models, or a server or provider elsewhere"
    names = ", ".join(f"{gpu.name} with {gpu.total_gb:.0f} GB" for gpu in gpus)
    return "GPU", names, "`medexam serve --list` shows which models fit"


def _network() -> Row:
    cached = "models and data sets of the hub only from the cache"
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON"):
        return "network", "HF_HUB_OFFLINE is set", cached
    try:
        socket.create_connection((HUB, 443), timeout=PATIENCE_S).close()
    except OSError:
        return "network", f"{HUB} does not answer", cached
    return "network", f"{HUB} answers", "models and data sets of the hub"
