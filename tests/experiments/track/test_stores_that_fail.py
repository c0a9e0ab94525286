"""A store that fails, hangs or is damaged stops no run, loses nothing that others keep in it, and is one clear line."""

import socket
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import medexam as package
from medexam.experiments import STORE_TIMES

ZERO_SHOT = {"kind": "zero_shot"}


@pytest.fixture
def refused(medexam):
    """`refused(folder, uri)` -> the one line in which `medexam track` says why nothing was sent."""

    def send(folder, uri) -> str:
        before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        code, out, err = medexam("track", folder, "--tracking-uri", uri)
        *warnings, said = err.splitlines()
        assert (code, out) == (2, "")
        assert all("warning:" in line for line in warnings)
        assert before == {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        return said

    return send


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_server_that_hangs_costs_no_more_than_a_call(make_run, refused, silent, monkeypatch) -> None:
    monkeypatch.setattr(STORE_TIMES, "call_s", 0.5)
    said = refused(make_run(ZERO_SHOT, "r"), silent)
    assert "no answer within 0.5 s" in said
    assert "the run is complete on disk; send it later with `medexam track RUN`" in said


def test_a_run_ends_and_is_shown_whatever_its_store_does(medexam, silent, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(STORE_TIMES, "call_s", 0.2)
    (tmp_path / "spec.yaml").write_text("name: trial\ndataset: {name: headqa_sample}\nprogram: {kind: longest}\n")
    code, out, err = medexam("run", "spec.yaml", "--runs-dir", tmp_path / "runs", "--tracking-uri", silent)
    assert (code, "longest" in out) == (0, True)
    assert "MLflow at http" in err
    assert "the run is complete on disk; send it later" in err


@pytest.mark.parametrize("what", ["folder", "text", "unwritable", "refusing"])
def test_what_is_no_store_is_refused_at_once(make_run, refused, tmp_path, monkeypatch, what) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    path = tmp_path / "store.db"
    if what == "folder":
        path.mkdir()
    else:
        path.write_text("not a database, but longer than the header of one " * 40)
    # Bound and not listening: nobody else can answer there meanwhile.
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        uris = {
            "unwritable": f"sqlite:///{path}/mlflow.db",
            "refusing": f"http://127.0.0.1:{bound.getsockname()[1]}",
        }
        assert "send it later" in refused(make_run(ZERO_SHOT, "r"), uris.get(what, f"sqlite:///{path}"))


def test_an_experiment_deleted_in_the_store_is_named(make_run, refused, track, client, uri) -> None:
    run = make_run(ZERO_SHOT, "r")
    (sent,) = track(run).values()
    client.delete_experiment(client.get_run(sent).info.experiment_id)
    assert "mlflow experiments restore" in refused(run, uri)


def test_a_damaged_store_is_to_be_moved_and_no_other(make_run, refused, track, tmp_path, monkeypatch) -> None:
    run, path = make_run(ZERO_SHOT, "r"), tmp_path / "runs" / "mlflow.db"
    track(run)

    def refuse(*_: object, **__: object) -> None:
        raise ValueError("no such name")

    with monkeypatch.context() as patch:
        patch.setattr("mlflow.MlflowClient.create_run", refuse)
        said = refused(make_run({"kind": "longest"}, "r"), f"sqlite:///{path}")
    assert ("no such name" in said, "away" in said) == (True, False)
    with closing(sqlite3.connect(path)) as database:
        size = database.execute("PRAGMA page_size").fetchone()[0]
    with path.open("r+b") as stream:
        stream.seek(size)
        stream.write(b"\xff" * 40 * size)
    assert f"the database is damaged: restore it, or move {path} away" in refused(run, f"sqlite:///{path}")


def leave_half_made(path: Path) -> None:
    """What MLflow leaves that is killed amid its first step: SQLite keeps the column and not the note of the step."""
    from mlflow.store.tracking.dbmodels.initial_models import Base
    from sqlalchemy import create_engine

    engine = create_engine(f"sqlite:///{path}")
    Base.metadata.create_all(engine)
    engine.dispose()
    with closing(sqlite3.connect(path)) as database:
        database.execute("ALTER TABLE metrics ADD COLUMN step BIGINT DEFAULT '0' NOT NULL")


@pytest.mark.nightly
def test_a_store_that_was_left_half_made_is_made_anew_and_one_of_others_is_never_replaced(
    make_run, refused, track, tmp_path, monkeypatch
) -> None:
    from mlflow.store.db import utils

    # The suite copies the tables of a store, which replaces whatever is there; here MLflow makes them.
    made_by_mlflow = getattr(utils, "_made_by_mlflow", utils._initialize_tables)
    monkeypatch.setattr(utils, "_initialize_tables", made_by_mlflow)
    run, path = make_run(ZERO_SHOT, "r"), tmp_path / "half.db"
    leave_half_made(path)
    assert list(track(run, store=f"sqlite:///{path}")) == [run.name]
    path = tmp_path / "diary.db"
    leave_half_made(path)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE diary (day TEXT)")
        database.execute("INSERT INTO diary VALUES ('Monday')")
    assert "duplicate column" in refused(run, f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT day FROM diary").fetchall() == [("Monday",)]


@pytest.mark.parametrize(("store", "why"), [(True, "pip install 'medexam[mlflow]'"), ("nonsense://x", "nonsense")])
def test_python_gets_its_runs_whatever_their_store_does(tmp_path, monkeypatch, capsys, store, why) -> None:
    if store is True:
        monkeypatch.setitem(sys.modules, "mlflow", None)
    spec = {"name": "trial", "dataset": {"name": "headqa_sample", "limit": 4}, "program": "longest"}
    (run,) = package.run(spec, runs_dir=tmp_path / "runs", track=store, progress=False)
    said = capsys.readouterr().err
    assert (run.complete, why in said, "the run is complete on disk; send it later" in said) == (True, True, True)
