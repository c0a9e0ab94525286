"""No test depends on another: each has a HOME of its own, and leaves the process as it was.

Shared is what takes long to make: converted weights, what libraries compile and keep, the tables of MLflow's stores.
"""

import os
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from medexam.files import cache_dir

CACHE = cache_dir()
MODELS = CACHE / "models"
_SET_BY_IMPORTS = ("EXPERIMENTAL_OPENAI_", "KMP_", "LITELLM_", "MLFLOW_", "PYTEST_", "RAY_", "TIKTOKEN_", "TORCH")
"""How the names of variables begin that libraries set when they are imported, and pytest for each test."""
_TABLES = sqlite3.connect(":memory:", check_same_thread=False)
"""Those of the first store: MLflow makes them in fifty steps, which take a second."""


def make_home(base: Path) -> Path:
    """Make a HOME without anything but what is shared."""
    home = Path(tempfile.mkdtemp(dir=base))
    (cache := home / ".cache" / "medexam").mkdir(parents=True)
    (cache / MODELS.name).symlink_to(MODELS)
    return home


@pytest.fixture(scope="session", autouse=True)
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the tests' HOMEs; fixtures of several tests have one of their own."""
    base = tmp_path_factory.mktemp("homes")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MEDEXAM_CACHE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
            patch.delenv(name, raising=False)
        for name, folder in (("MPLCONFIGDIR", CACHE / "matplotlib"), ("NUMBA_CACHE_DIR", CACHE / "numba")):
            patch.setenv(name, str(folder))
            folder.mkdir(parents=True, exist_ok=True)
        MODELS.mkdir(exist_ok=True)
        patch.setenv("HOME", str(make_home(base)))
        yield base


@pytest.fixture(autouse=True)
def _isolated(_homes: Path) -> Iterator[None]:
    """A HOME of the test's own; fails a test that leaves the process otherwise than it found it."""
    paths, modules = list(sys.path), set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(make_home(_homes)))
        before = _state()
        yield
        after = _state()
    sys.path[:] = paths
    for name in set(sys.modules) - modules:
        # Code of the test's own; another test may have a module of the same name.
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(_homes.parent)):
            del sys.modules[name]
    changed = {name for name, _ in before.items() ^ after.items() if not name.startswith(_SET_BY_IMPORTS)}
    left = {name: (before.get(name), after.get(name)) for name in changed}
    assert not left, f"the test leaves the process changed (before, after): {left}"


def _state() -> dict[str, Any]:
    """Name -> value of what a test leaves as it was."""
    handlers = {number.name: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    return {"working directory": str(Path.cwd()), **handlers, **os.environ}


@pytest.fixture(autouse=True)
def _tables_once() -> None:
    """Copy MLflow's tables from here on, if it is imported."""
    if (utils := sys.modules.get("mlflow.store.db.utils")) is None or hasattr(utils, "_made_by_mlflow"):
        return

    def initialize(engine: Any) -> None:
        with closing(sqlite3.connect(engine.url.database)) as database:
            if _TABLES.execute("select 1 from sqlite_master").fetchone():
                return _TABLES.backup(database)
            utils._made_by_mlflow(engine)
            return database.backup(_TABLES)

    utils._made_by_mlflow, utils._initialize_tables = utils._initialize_tables, initialize
