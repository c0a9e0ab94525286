"""MLflow makes the tables of a store in fifty steps, which take a second: a process of the suite makes them once."""

import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

_FIRST = sqlite3.connect(":memory:", check_same_thread=False)
"""The tables of a store that was empty."""


@pytest.fixture(autouse=True)
def _tables_once() -> None:
    """Copy tables from here on, if MLflow is imported and does not yet."""
    if (utils := sys.modules.get("mlflow.store.db.utils")) is not None and not hasattr(utils, "_made_by_mlflow"):
        utils._made_by_mlflow, utils._initialize_tables = utils._initialize_tables, _copying(utils._initialize_tables)


def _copying(make: Callable[[Any], None]) -> Callable[[Any], None]:
    def initialize(engine: Any) -> None:
        if engine.dialect.name != "sqlite":
            return make(engine)
        with closing(sqlite3.connect(engine.url.database)) as database:
            is_empty = _is_empty(database)
            if is_empty and not _is_empty(_FIRST):
                return _FIRST.backup(database)
            make(engine)
            return database.backup(_FIRST) if is_empty else None

    return initialize


def _is_empty(database: sqlite3.Connection) -> bool:
    return not database.execute("select count(*) from sqlite_master").fetchone()[0]
