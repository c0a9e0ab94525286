"""The SQLite file of an MLflow store: made whole before it gets its name, and made anew where it was left half made.

MLflow makes its tables in some fifty steps, and refuses a file for good in which a process was killed between two of
them, or in which two processes made them at once.
"""

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from medexam.experiments.track.copies import OVERVIEW, SENT
from medexam.files import cache_dir, drafting

SQLITE = "sqlite:///"
_WAIT_S = 60.0
"""What another process may take to make the tables; it takes two seconds on an idle machine."""
_WRITING_S = 600.0
"""What another process may take to send its runs; traces of large ones take minutes."""
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_CODE = 0xFF
"""The bits of an extended code of SQLite's that hold the code itself."""
_UNREAD = re.compile(r"unable to get the page\. error code=(\d+)")
"""What SQLite's check says of a page that was not read: for damage, or for want of memory."""
_BESIDE = ("-journal", "-wal", "-shm")
"""Ends of the names of the files that SQLite keeps beside a database."""


def sqlite_path(tracking_uri: str) -> Path | None:
    """Return the database file of a SQLite store; None for any other store."""
    return Path(tracking_uri.removeprefix(SQLITE)) if tracking_uri.startswith(SQLITE) else None


def artifact_root(tracking_uri: str) -> Path | None:
    """Return where a SQLite store's artifacts lie: beside its file. None for a server, which decides on its own."""
    path = sqlite_path(tracking_uri)
    return path.resolve().parent / "mlartifacts" if path is not None else None


def make_database(path: Path) -> None:
    """Make the store at `path` unless it is there; one that was left half made is replaced.

    Raises `OSError` where it cannot be made or another process makes it for too long, and `sqlite3.Error` where the
    file is no database or stays locked.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not _is_half_made(path):
        return
    with _lock(path, _WAIT_S):
        if path.exists() and not _is_half_made(path):
            return
        # A folder, since SQLite keeps files beside a database that must go with it.
        with drafting(path) as folder:
            folder.mkdir()
            draft = folder / path.name
            # SQLite itself would let no group write, whatever the umask says.
            draft.touch()
            _make_tables(draft, path)
            with draft.open("rb") as stream:
                os.fsync(stream.fileno())
            for end in _BESIDE:
                path.with_name(f"{path.name}{end}").unlink(missing_ok=True)
            draft.replace(path)


@contextmanager
def writing_alone(tracking_uri: str) -> Iterator[None]:
    """Keep other commands of this machine from writing to a store meanwhile.

    Two that look at once whether a run is there would both send it. Raises `filelock.Timeout`, an `OSError`, where
    another one writes for too long; where the disk knows no locks, nothing is kept.
    """
    path = sqlite_path(tracking_uri)
    if path is None:
        name = hashlib.sha256(tracking_uri.encode()).hexdigest()[:16]
        path = cache_dir() / "mlflow" / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _lock(path, _WRITING_S)
        lock.acquire()
    except Timeout:
        raise
    except (OSError, NotImplementedError):
        yield
        return
    try:
        yield
    finally:
        lock.release()


def _lock(path: Path, timeout_s: float) -> FileLock:
    """Build a lock beside a store; every user who may write the folder may take it."""
    mode = path.parent.stat().st_mode & 0o666
    return FileLock(path.parent / f".{path.name}.lock", timeout=timeout_s, mode=mode)


@dataclass(frozen=True)
class SentExperiment:
    """What a store holds of an experiment, by MLflow's ids."""

    experiment_id: str
    parent: str
    children: Mapping[str, str]
    """A run's own id -> MLflow's."""


def find_sent(path: Path, experiment: str, digest: str) -> SentExperiment | None:
    """Find the experiment that was sent under this digest and not deleted since; None too if it cannot be told.

    It reads the file itself: importing MLflow to ask it takes longer than all else that printing a finished run does.
    """
    parents = """
        SELECT runs.experiment_id, runs.run_uuid FROM runs
        JOIN experiments ON experiments.experiment_id = runs.experiment_id
        JOIN tags ON tags.run_uuid = runs.run_uuid
        WHERE experiments.name = ? AND experiments.lifecycle_stage = 'active' AND runs.lifecycle_stage = 'active'
        AND tags.key = ? AND tags.value = ?"""
    children = """
        SELECT named.value, runs.run_uuid FROM runs
        JOIN tags AS named ON named.run_uuid = runs.run_uuid AND named.key = 'medexam.run_id'
        JOIN tags AS of ON of.run_uuid = runs.run_uuid AND of.key = ? AND of.value = ?
        WHERE runs.lifecycle_stage = 'active'"""
    # Another version of MLflow may keep other tables; a file that another process writes is locked.
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        row = database.execute(parents, (experiment, SENT, digest)).fetchone()
        if row is not None:
            rows = database.execute(children, (OVERVIEW, row[1])).fetchall()
            return SentExperiment(str(row[0]), str(row[1]), {str(run_id): str(mlflow_id) for run_id, mlflow_id in rows})
    return None


def is_damaged(path: Path) -> bool:
    """Return whether SQLite itself finds the file damaged, or no database; False where it cannot be looked at."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            verdict = str(database.execute("PRAGMA quick_check(1)").fetchone()[0])
    except (sqlite3.DatabaseError, MemoryError) as error:
        # Locked, or not to be opened, says nothing of what it holds.
        return getattr(error, "sqlite_errorcode", 0) & _CODE in _DAMAGE
    unread = _UNREAD.search(verdict)
    return verdict != "ok" and (unread is None or int(unread[1]) & _CODE in _DAMAGE)


def _make_tables(draft: Path, path: Path) -> None:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    root = path.resolve().parent / "mlartifacts"
    SqlAlchemyStore(f"{SQLITE}{draft}", root.as_uri()).engine.dispose()


def _is_half_made(path: Path) -> bool:
    """Return whether the database holds not even the experiment that MLflow makes last, nor anything else."""
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        tables = {str(name) for (name,) in rows if name not in ("alembic_version", "sqlite_sequence")}
        # One with rows is another's database, or has lost a table: it is never replaced.
        return not any(database.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone() for name in tables)  # noqa: S608
