"""Names that MLflow refuses are replaced by some that it takes; the store is blamed only where it is damaged."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medexam.errors import TrackingError
from medexam.experiments.track.copies import Copy, put_copy, send_copy
from medexam.experiments.track.database import is_damaged, make_database
from medexam.experiments.track.names import ORIGINAL, original_names, storable_names
from medexam.experiments.track.runs import track

NAMES = [
    "recall@5",
    "recall_5",
    "F1 (exact)",
    "50%",
    "predictors[0].demos",
    "../up",
    "/top",
    "a//b",
    "..",
    "é",
    "x" * 300,
]


def test_whatever_a_metric_is_called_its_value_is_in_mlflow(client) -> None:
    experiment = client.create_experiment("names")
    copy = Copy(
        name="names",
        key_tags={"medexam.kind": "run"},
        began=1,
        ended=2,
        metrics=[(name, float(place), 0) for place, name in enumerate(NAMES)],
        params={**dict.fromkeys(NAMES, "set"), **{f"args.{number}": "1" for number in range(250)}},
    )
    data = client.get_run(send_copy(client, experiment, copy)).data
    original = {name.removeprefix(ORIGINAL): value for name, value in data.tags.items() if name.startswith(ORIGINAL)}
    assert {original.get(name, name): value for name, value in data.metrics.items()} == dict(
        zip(NAMES, map(float, range(len(NAMES))), strict=True)
    )
    assert {original.get(name, name) for name in data.params} == copy.params.keys()
    assert data.metrics["recall_5"] == 1.0


@given(st.lists(st.text(max_size=12), max_size=8))
def test_mlflow_takes_every_name_and_none_twice(names: list[str]) -> None:
    from mlflow.utils.validation import _validate_metric_name, _validate_param_name, _validate_tag_name

    stored = storable_names(names)
    assert stored.keys() == set(names)
    assert len(set(stored.values())) == len(stored)
    for name in stored.values():
        _validate_metric_name(name)
        _validate_param_name(name)
    for tag in original_names(stored):
        _validate_tag_name(tag)
        assert len(tag) <= 250


def test_a_damaged_store_is_to_be_moved_and_no_other(make_run, tmp_path: Path, monkeypatch) -> None:
    run, path = make_run({"kind": "zero_shot"}, "r"), tmp_path / "mlflow.db"
    uri = f"sqlite:///{path}"
    track([run], tracking_uri=uri)

    def refuse(*_: object) -> None:
        raise ValueError("no such name")

    with monkeypatch.context() as patch:
        patch.setattr("medexam.experiments.track.runs.put_copy", refuse)
        with pytest.raises(TrackingError, match="no such name") as raised:
            track([run], tracking_uri=uri)
    assert "away" not in str(raised.value)
    with closing(sqlite3.connect(path)) as database:
        size = database.execute("PRAGMA page_size").fetchone()[0]
    with path.open("r+b") as stream:
        stream.seek(size)
        stream.write(b"\xff" * 40 * size)
    with pytest.raises(TrackingError, match=rf"the database is damaged: restore it, or move {path} away"):
        track([run], tracking_uri=uri)


def test_pending_questions_are_named(make_run) -> None:
    with pytest.raises(TrackingError, match="what is answered is on disk, 10 pending; send it later"):
        track([make_run({"kind": "zero_shot"}, "rm")], tracking_uri="mysql://nowhere")


@pytest.mark.parametrize("value", ["a'b", 'a"b', "a'b\"c", "%", "a` = 'x"])
def test_a_run_whose_id_holds_quotes_is_known_again(client, value) -> None:
    experiment = client.create_experiment("quotes")
    copy = Copy(name="quotes", key_tags={"medexam.run_id": value, "medexam.kind": "run"}, began=1, ended=2)
    first, outdated = put_copy(client, experiment, copy)
    assert put_copy(client, experiment, copy) == (first, [])
    assert outdated == []


@pytest.mark.parametrize(
    ("verdict", "damaged"),
    [
        ("ok", False),
        ("*** in database main ***\nPage 195: unable to get the page. error code=7", False),
        ("*** in database main ***\nPage 195: unable to get the page. error code=11", True),
        ("wrong # of entries in index x", True),
    ],
)
def test_a_database_that_cannot_be_read_for_want_of_memory_is_not_damaged(
    tmp_path, monkeypatch, verdict, damaged
) -> None:
    class Checked:
        def execute(self, _: str) -> "Checked":
            return self

        def fetchone(self) -> tuple[str]:
            return (verdict,)

        def close(self) -> None:
            """Nothing is open."""

    monkeypatch.setattr(sqlite3, "connect", lambda *_, **__: Checked())
    assert is_damaged(tmp_path / "mlflow.db") is damaged


@pytest.mark.skipif(os.name == "nt", reason="needs permissions")
def test_the_umask_decides_who_may_write_the_store(tmp_path) -> None:
    before = os.umask(0o002)
    try:
        make_database(tmp_path / "mlflow.db")
    finally:
        os.umask(before)
    assert (tmp_path / "mlflow.db").stat().st_mode & 0o777 == 0o664
