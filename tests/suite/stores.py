"""MLflow's tables are made once in a process and copied: it makes them in fifty steps, which take a second or two.

Processes that tests start make theirs in full.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from medexam.experiments.track import database


@pytest.fixture(scope="session", autouse=True)
def _tables_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    kept, make_tables = tmp_path_factory.mktemp("tables") / "mlflow.db", database._make_tables

    def copy_tables(draft: Path, path: Path) -> None:
        if not kept.exists():
            make_tables(kept, path)
        shutil.copyfile(kept, draft)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_make_tables", copy_tables)
        yield
