"""MLflow stores that were left half made, that two processes make at once, that hang, and that are locked."""

import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from medexam.cli import load_command
from medexam.errors import TrackingError
from medexam.experiments import open_store
from medexam.experiments.track import time_limits
from medexam.experiments.track.runs import track
from medexam.experiments.track.time_limits import TimeLimits
from medexam.experiments.track.ui import serve_ui
from soak.disks import limited_files
from waiting import BACKSTOP_S

ZERO_SHOT = {"kind": "zero_shot"}


def leave_half_made(path: Path) -> None:
    """What MLflow leaves that is killed amid its first step: SQLite keeps the column and not the note of the step."""
    from mlflow.store.tracking.dbmodels.initial_models import Base
    from sqlalchemy import create_engine

    engine = create_engine(f"sqlite:///{path}")
    Base.metadata.create_all(engine)
    engine.dispose()
    with closing(sqlite3.connect(path)) as database:
        database.execute("ALTER TABLE metrics ADD COLUMN step BIGINT DEFAULT '0' NOT NULL")


def test_a_store_that_was_left_half_made_is_made_anew(make_run, tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    leave_half_made(path)
    (tracked,) = track([make_run(ZERO_SHOT, "r")], tracking_uri=f"sqlite:///{path}")
    with open_store(f"sqlite:///{path}") as client:
        assert client.get_run(tracked.mlflow_run_id).info.status == "FINISHED"
    assert not list(tmp_path.glob(".mlflow.db.*.draft"))


def test_a_database_of_anothers_is_never_replaced(make_run, tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    leave_half_made(path)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE diary (day TEXT)")
        database.execute("INSERT INTO diary VALUES ('Monday')")
    with pytest.raises(TrackingError, match=r"duplicate column.*; the run is complete on disk; send it later"):
        track([make_run(ZERO_SHOT, "r")], tracking_uri=f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT day FROM diary").fetchall() == [("Monday",)]


def test_without_mlflow_the_line_names_its_extra(make_run, tmp_path: Path, monkeypatch) -> None:
    run, uri = make_run(ZERO_SHOT, "r"), f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(TrackingError, match=r"pip install 'medexam\[mlflow\]'; .* send it later with `medexam track"):
        track([run], tracking_uri=uri)
    with pytest.raises(TrackingError, match=r"pip install 'medexam\[mlflow\]'$"):
        serve_ui(uri, host="127.0.0.1", port=5000)


def test_two_processes_make_one_store(tmp_path: Path) -> None:
    visit = "import sys; from medexam.experiments.track.store import open_store\n"
    visit += "with open_store(sys.argv[1]) as client: print(client.create_experiment(sys.argv[2]))"
    uri = f"sqlite:///{tmp_path / 'fresh' / 'mlflow.db'}"
    command = [sys.executable, "-c", visit, uri]
    both = [subprocess.Popen([*command, name], stdout=subprocess.PIPE) for name in ("one", "other")]
    said = sorted(each.communicate()[0] for each in both)
    assert ([each.returncode for each in both], said) == ([0, 0], [b"1\n", b"2\n"])


@contextmanager
def hanging(drip: bytes) -> Iterator[str]:
    """The address of a server that takes every connection and sends `drip`, byte by byte and again and again."""
    over = Event()

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while not over.wait(0.02):
                if drip:
                    connection.sendall(drip)

    def accept() -> None:
        with suppress(OSError):
            while True:
                Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def given_up(monkeypatch) -> list[object]:
    """The calls of MLflow that took longer than they may."""
    calls, call = [], TimeLimits.call

    def note(self, function, *arguments, **options):
        try:
            return call(self, function, *arguments, **options)
        except TimeoutError:
            calls.append(function)
            raise

    monkeypatch.setattr(TimeLimits, "call", note)
    return calls


@pytest.mark.parametrize("drip", [b"", b"HTTP/1.1 200 OK\r\nX: "], ids=["silent", "dripping"])
def test_a_server_that_hangs_costs_no_more_than_a_call(drip: bytes, make_run, given_up, monkeypatch) -> None:
    monkeypatch.setattr(time_limits, "CALL_S", 0.5)
    run = make_run(ZERO_SHOT, "r")
    refusal = pytest.raises(TrackingError, match=r"no answer within 0\.5 s.*`medexam track RUN`")
    with hanging(drip) as address, refusal as caught:
        track([run], tracking_uri=address)
    assert len(given_up) == 1
    assert "\n" not in str(caught.value)


def test_a_locked_database_costs_no_more_than_a_call(make_run, uri: str, given_up, monkeypatch) -> None:
    monkeypatch.setattr(time_limits, "CALL_S", 1.0)
    run = make_run(ZERO_SHOT, "r")
    with closing(sqlite3.connect(uri.removeprefix("sqlite:///"))) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TrackingError, match="send it later"):
            track([run], tracking_uri=uri)
    assert len(given_up) == 1
    # The call that was left to itself goes on now, and must not write under the limits of another test.
    for thread in threading.enumerate():
        if thread.name == "mlflow":
            thread.join(BACKSTOP_S)


def test_a_full_disk_is_one_message_and_no_log(make_run, uri: str, capfd) -> None:
    run = make_run(ZERO_SHOT, "r")
    # A small part of the store may be written: the first commit fails.
    with limited_files(20_000), pytest.raises(TrackingError, match="disk"):
        track([run], tracking_uri=uri)
    assert capfd.readouterr().err == ""


def test_many_calls_together_end_in_time_too(monkeypatch) -> None:
    monkeypatch.setattr(time_limits, "SEND_S", 2.0)
    limits = TimeLimits()
    for _ in range(3):
        limits.call(time.sleep, 0.05)
    with pytest.raises(TimeoutError, match="no answer within"):
        limits.call(time.sleep, 9)
    with pytest.raises(TimeoutError, match=r"all calls together took longer than 2 s"):
        limits.call(time.sleep, 0)
    assert limits.call(time.monotonic, extra_s=1) > 0


def test_the_table_is_printed_before_the_store_is_waited_for(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(time_limits, "CALL_S", 0.2)
    spec = tmp_path / "spec.yaml"
    spec.write_text("name: trial\ndataset: {name: headqa_sample}\nprogram: {kind: longest}\n")
    printed = []
    monkeypatch.setattr(TimeLimits, "__init__", lambda self: (printed.append(capsys.readouterr().out), made(self))[1])
    with hanging(b"") as address:
        words = [str(spec), "--runs-dir", str(tmp_path / "runs"), "--tracking-uri", address]
        load_command("run")(words, standalone_mode=False)
    assert "longest" in printed[0]
    assert "MLflow at http" in capsys.readouterr().err


made = TimeLimits.__init__
