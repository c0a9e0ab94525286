"""MLflow makes the tables of a store in fifty steps, which take a second: a process of the suite makes them once."""

import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

_FIRST = sqlite3.connect(":memory:", check_same_thread=False)
"""The tables, without rows."""


@pytest.fixture(autouse=True)
def _tables_once() -> None:
    """Copy tables from here on, if MLflow is imported and does not yet."""
    if (utils := sys.modules.get("mlflow.store.db.utils")) is not None and not hasattr(utils, "_made_by_mlflow"):
        utils._made_by_mlflow, utils._initialize_tables = utils._initialize_tables, _copying(utils._initialize_tables)


def _copying(make: Callable[[Any], None]) -> Callable[[Any], None]:
    def initialize(engine: Any) -> None:
        if engine.dialect.name != "sqlite":
            return make(engine)
        if not _FIRST.execute("select count(*) from sqlite_master").fetchone()[0]:
            make(engine)
            with closing(sqlite3.connect(engine.url.database)) as made:
                return made.backup(_FIRST)
        with closing(sqlite3.connect(engine.url.database)) as empty:
            return _FIRST.backup(empty)

    return initialize
