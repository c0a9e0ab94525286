"""No test depends on another: each has a HOME of its own, and leaves the process as it was.

Converted weights are shared: they take a minute to make, are named after what they were made from, and no test writes
them. So is what libraries compile for seconds and keep.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from medexam.files import cache_dir

CACHE = cache_dir()
MODELS = CACHE / "models"
KEPT = ("models", "dtype_speed.json")
"""What of the cache every HOME has."""
LIBRARY_CACHES = {"MPLCONFIGDIR": "matplotlib", "NUMBA_CACHE_DIR": "numba"}
_SET_BY_IMPORTS = (
    "EXPERIMENTAL_OPENAI_",
    "KMP_",
    "LITELLM_",
    "MLFLOW_",
    "PYTEST_",
    "RAY_",
    "TIKTOKEN_",
    "TORCHINDUCTOR_",
)
"""How the names of variables begin that libraries set for good when they are imported, and pytest for each test."""
_CONVERT = "from medexam.serve import smollm2_folder; smollm2_folder()"


def make_home(base: Path) -> Path:
    """A HOME without anything but what is shared."""
    home = Path(tempfile.mkdtemp(dir=base))
    (cache := home / ".cache" / "medexam").mkdir(parents=True)
    for name in KEPT:
        if (CACHE / name).exists():
            (cache / name).symlink_to(CACHE / name)
    return home


@pytest.fixture(scope="session", autouse=True)
def _homes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the tests' HOMEs; fixtures of several tests have one of their own."""
    MODELS.mkdir(parents=True, exist_ok=True)
    base = tmp_path_factory.mktemp("homes")
    with pytest.MonkeyPatch.context() as patch:
        for name, folder in LIBRARY_CACHES.items():
            (CACHE / folder).mkdir(exist_ok=True)
            patch.setenv(name, str(CACHE / folder))
        for name in ("MEDEXAM_CACHE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
            patch.delenv(name, raising=False)
        patch.setenv("HOME", str(make_home(base)))
        # Runs that a fixture makes for several tests are signed with the key that lies there.
        patch.setenv("XDG_STATE_HOME", str(base / "state"))
        if any(item.get_closest_marker("model") for item in request.session.items):
            # In a process of its own: a worker would keep the memory that this takes. A fault shows in the tests.
            subprocess.run([sys.executable, "-c", _CONVERT], check=False, capture_output=True)
        yield base


@pytest.fixture(autouse=True)
def _isolated(_homes: Path) -> Iterator[None]:
    """A HOME of the test's own; fails a test that leaves the process otherwise than it found it."""
    home = make_home(_homes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        paths, modules, before = list(sys.path), set(sys.modules), _state()
        yield
        after = _state()
    sys.path[:] = paths
    if (measured := home / ".cache" / "medexam" / KEPT[1]).exists() and not (CACHE / KEPT[1]).exists():
        shutil.copy(measured, CACHE)
    for name in set(sys.modules) - modules:
        # Own code of the test; another test may have a module of the same name.
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(_homes.parent)):
            del sys.modules[name]
    names = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    changed = {name: (before.get(name), after.get(name)) for name in names if not name.startswith(_SET_BY_IMPORTS)}
    assert not changed, f"the test leaves the process changed (before, after): {changed}"


def _state() -> dict[str, Any]:
    """Name -> value of what a test leaves as it was."""
    handlers = {number.name: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    return {"working directory": str(Path.cwd()), **handlers, **os.environ}
