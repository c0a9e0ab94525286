"""A store that fails, hangs or is none stops no run, and is one clear line."""

import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import medexam as package

ZERO_SHOT = {"kind": "zero_shot"}


@pytest.fixture(autouse=True)
def _short(monkeypatch) -> None:
    """A server is waited for half a second, once."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")


@pytest.fixture
def refused(medexam, capsys):
    """`refused(folder, uri)` -> the one line in which `medexam track` says why nothing was sent."""

    def send(folder, uri) -> str:
        before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        capsys.readouterr()  # what MLflow said where a fixture made its store
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


@pytest.mark.usefixtures("tracked")
def test_a_run_ends_and_is_shown_whatever_its_store_does(medexam, silent, tmp_path) -> None:
    (tmp_path / "spec.yaml").write_text("name: trial\ndataset: {name: headqa_sample}\nprogram: {kind: longest}\n")
    code, out, err = medexam("run", "spec.yaml", "--runs-dir", tmp_path / "runs", "--tracking-uri", silent)
    assert (code, "longest" in out) == (0, True)
    assert "MLflow at http" in err
    assert "send it later with `medexam track FOLDER`" in err


@pytest.mark.parametrize("what", ["folder", "text", "unwritable", "refusing"])
def test_what_is_no_store_is_refused_at_once(make_run, refused, tmp_path, what) -> None:
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


def test_a_store_that_was_cut_off_while_it_was_made_is_made_anew(
    make_run, medexam, track, tmp_path, monkeypatch
) -> None:
    run, store = make_run(ZERO_SHOT, "r"), f"sqlite:///{tmp_path}/new.db"

    def cut_off(uri: str) -> None:
        Path(uri.removeprefix("sqlite:///")).write_bytes(b"half a database" * 400)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr("mlflow.MlflowClient", cut_off)
        medexam("track", run, "--tracking-uri", store)
    assert track(run, store=store)


def test_an_experiment_deleted_in_the_store_is_named(make_run, refused, track, client, uri) -> None:
    run = make_run(ZERO_SHOT, "r")
    (sent,) = track(run).values()
    client.delete_experiment(client.get_run(sent).info.experiment_id)
    assert "mlflow experiments restore -x" in refused(run, uri)


def test_traces_that_do_not_arrive_are_sent_again(make_run, refused, track, client, uri, monkeypatch) -> None:
    run = make_run(ZERO_SHOT, "r", model={"engine": "embedded"})

    def fail(*_: object, **__: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr("mlflow.tracing.client.TracingClient.log_spans", fail)
        patch.setattr("mlflow.tracing.client.TracingClient.start_trace", fail)
        assert "took 0 of 20 traces" in refused(run, uri)
    (sent,) = track(run).values()
    stored = client.get_run(sent).info
    assert len(client.search_traces(locations=[stored.experiment_id], run_id=stored.run_id)) == 20


@pytest.mark.parametrize(("store", "why"), [(True, "pip install 'medexam[mlflow]'"), ("nonsense://x", "nonsense")])
def test_python_gets_its_runs_whatever_their_store_does(tmp_path, monkeypatch, capsys, store, why) -> None:
    if store is True:
        monkeypatch.setitem(sys.modules, "mlflow", None)
    spec = {"name": "trial", "dataset": {"name": "headqa_sample", "limit": 4}, "program": "longest"}
    (run,) = package.run(spec, runs_dir=tmp_path / "runs", track=store, progress=False)
    said = capsys.readouterr().err
    assert (run.complete, why in said, "send it later" in said) == (True, True, True)
