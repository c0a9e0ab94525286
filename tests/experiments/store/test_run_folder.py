"""The run folder keeps what was finished, whatever happened to the process that wrote it."""

import json
import os
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

import medexam
from medexam.errors import RunFolderError
from medexam.experiments import RunFolder, find_runs
from medexam.predictions import Failure, Prediction, Reason, Status
from predicted import predicted


def _prediction(key: str, answer: int | None = 1, **more: object) -> Prediction:
    """A failure where there is no answer."""
    outcome = {"status": Status.ANSWERED, "answer": answer, "reply": "añ\n{Answer: 1}"}
    if answer is None:
        outcome = {"status": Status.FAILED, "failure": Failure(kind="LMTransportError", message="gone")}
    return predicted(**{"question": key, "program": "p", "spec_digest": "d", **outcome, **more})


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    made = RunFolder(tmp_path / "run")
    made.create()
    return made


@pytest.fixture
def log(folder):
    return folder.path / "predictions.jsonl"


def _write(folder: RunFolder, *predictions: Prediction) -> None:
    with folder.appending() as log:
        for prediction in predictions:
            log.append(prediction)


def test_the_last_prediction_of_each_question_counts(folder, log) -> None:
    _write(folder, _prediction("a"), _prediction("b", None), _prediction("c", reply="long " * 5_000))
    _write(folder, _prediction("d", None), _prediction("b", 2))
    found = folder.read_predictions()
    assert list(found) == ["a", "b", "c", "d"]
    assert (found["a"], found["b"].answer, found["d"].status) == (_prediction("a"), 2, Status.FAILED)
    assert len(log.read_text(encoding="utf-8").splitlines()) == 5


def test_a_file_cut_at_any_byte_loses_its_last_line_at_most(folder, log) -> None:
    _write(folder, _prediction("a"), _prediction("b"))
    whole = log.read_bytes()
    first = whole.index(b"\n") + 1
    for size in range(0, len(whole), 3):
        log.write_bytes(whole[:size])
        kept = list(folder.read_predictions())
        assert kept == (["a"] if size >= first else [])
        _write(folder, _prediction("c"))
        assert list(folder.read_predictions()) == [*kept, "c"]


def test_a_merge_of_shards_that_was_cut_off_is_repeated_without_harm(folder, log) -> None:
    unread = {"answer": None, "status": Status.UNANSWERED, "reason": Reason.UNPARSED}
    silent = _prediction("b").model_copy(update=unread)
    _write(folder, _prediction("a"), silent, _prediction("d", None), _prediction("c"))
    (folder.path / "parts").mkdir()
    (folder.path / "parts" / "0.jsonl").write_bytes(log.read_bytes())
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:2]))
    folder.merge_shards()
    assert [json.loads(line)["question"] for line in log.read_bytes().splitlines()] == ["a", "b", "d", "c"]


@pytest.mark.parametrize("torn", [1, 4095, 4096, 4097, 20_000])
def test_only_what_stands_behind_the_last_line_is_cut_off(folder, log, torn) -> None:
    _write(folder, _prediction("a"), _prediction("b", reply="x" * 9_000))
    whole = log.read_bytes()
    log.write_bytes(whole + b"y" * torn)
    _write(folder, _prediction("c"))
    assert log.read_bytes().startswith(whole + b'{"')
    assert list(folder.read_predictions()) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"", "line 2 is damaged"),
        (b"{", "line 2 is damaged"),
        (b"\xff", "line 2 is damaged"),
        *((b'"option_scores":{"1":%b}' % score, "line 2 is damaged") for score in (b'"nan"', b"NaN", b"1e999")),
        (b'"spec_digest":"other"', r"line 2 belongs to another run \(digest other, .* is d\)"),
    ],
)
def test_a_line_that_is_damaged_or_of_another_run_is_named(folder, log, line, said) -> None:
    _write(folder, _prediction("a"))
    first = log.read_bytes()
    whole = b"%b,%b}" % (first.strip()[:-1], line) if line[:1] == b'"' else line
    log.write_bytes(first + whole + b"\n" + first)
    for read in (folder.read_predictions, folder.read_outcomes):
        with pytest.raises(RunFolderError, match=said) as caught:
            read()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("damage", "said"),
    [((b"{", b""), "line 1 is damaged"), ((b"You are", b"They"), "line 1 is damaged"), ((b"\n", b""), "lacks turn")],
)
def test_a_shared_turn_that_is_lost_or_changed_is_named(ask, spec, tmp_path, damage, said) -> None:
    (run,) = ask(spec)
    copied = run.folder.rename(tmp_path / "copied")
    prompts = copied / "prompts.jsonl"
    prompts.write_bytes(prompts.read_bytes().replace(*damage, 1))
    with pytest.raises(RunFolderError, match=rf"prompts\.jsonl.* {said}.*restore the file") as caught:
        medexam.load_run(copied).report()
    assert "\n" not in str(caught.value)


def test_a_run_of_a_kind_whose_package_is_gone_is_read(ask, spec, tmp_path) -> None:
    (run,) = ask({**spec, "program": {"kind": "blind", "option": 2}})
    record = run.folder / "spec.json"
    document = json.loads(record.read_text())
    document["cell"]["program"] = {"kind": "mine", "reader": "x"}
    record.write_text(json.dumps(document))
    read = medexam.load_run(run.folder)
    assert (read.program, read.metrics.measure("accuracy").value) == ("mine", run.metrics.measure("accuracy").value)
    assert "mine" in medexam.report(read).markdown()


HOLD = """
import sys, time
from pathlib import Path
from medexam.experiments import RunFolder
with RunFolder(Path(sys.argv[1])).locked():
    print("held", flush=True)
    time.sleep(60)
"""


def test_two_processes_on_one_folder_are_refused_and_a_dead_one_keeps_no_lock(folder) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, folder.path], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(RunFolderError, match="another process"), folder.locked():
            pass
        process.kill()
    with folder.locked():
        pass


def test_a_file_in_the_place_of_the_runs_is_refused(ask, spec, tmp_path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(RunFolderError, match="--runs-dir"):
        ask(spec)


@pytest.mark.parametrize("content", [None, "", "[]", "{", '{"run_id": "x"}'])
def test_a_folder_without_a_readable_spec_says_so(folder, content) -> None:
    if content is not None:
        (folder.path / "spec.json").write_text(content)
    with pytest.raises(RunFolderError, match=r"spec\.json|no run|another version") as caught:
        medexam.load_run(folder.path)
    assert "\n" not in str(caught.value)


def test_runs_are_found_by_folder_and_by_how_their_id_begins(make_run, tmp_path, monkeypatch) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    first, second = (make_run({"kind": kind}, "rw").folder.name for kind in ("longest", "random"))
    (runs / "mlartifacts").mkdir()
    (runs / "mlflow.db").write_text("")
    assert {one.id for one in medexam.list_runs(runs)} == {first, second}
    monkeypatch.chdir(tmp_path)
    assert medexam.load_run(f"runs/{first[:9]}").id == first
    assert medexam.load_run(second[:9], runs_dir=runs).id == second
    assert [one.name for one in find_runs([runs / second, runs])] == [second, first]
    with pytest.raises(RunFolderError, match="no run at"):
        medexam.load_run("runs/other")


def test_runs_come_in_the_order_of_their_beginning(tmp_path) -> None:
    """Also one whose record cannot be read; one whose times cannot comes first."""
    for name, started_at in [("b", "10:01"), ("a", "10:03")]:
        made = RunFolder(tmp_path / name)
        made.create()
        made.write("spec.json", "[")
        made.write_json("environment.json", {"started_at": f"2026-11-20T{started_at}:00.000+00:00"})
    assert [found.name for found in find_runs([tmp_path])] == ["b", "a"]
    (tmp_path / "a" / "environment.json").write_text("{")
    assert [found.name for found in find_runs([tmp_path])] == ["a", "b"]


@pytest.mark.parametrize("umask", [0o022, 0o007, 0o077])
def test_the_umask_decides_who_may_read_a_run(ask, spec, tmp_path, umask) -> None:
    before = os.umask(umask)
    try:
        ask(spec)
    finally:
        os.umask(before)
    paths = [tmp_path / "runs", *(tmp_path / "runs").rglob("*")]
    modes = {(path.is_dir(), path.stat().st_mode & 0o777) for path in paths}
    assert modes == {(True, 0o777 & ~umask), (False, 0o666 & ~umask)}


def test_the_table_of_predictions_says_what_was_asked_answered_and_right(make_run, exam_questions) -> None:
    run = make_run({"kind": "zero_shot"}, "rwufm")
    rows = pq.read_table(run.folder.path / "predictions.parquet").to_pylist()
    assert [row["question"] for row in rows] == [q.key for at, q in enumerate(exam_questions) if at % 5 != 4]
    assert [row["right"] for row in rows[:4]] == [True, False, False, None]
    told = [row["right"] for row in rows if row["right"] is not None]
    assert sum(told) / len(told) == run.metrics.measure("accuracy").value
    assert [row["status"] for row in rows[:4]] == ["answered", "answered", "unanswered", "failed"]
    assert {row["gold"] for row in rows} == {1}
    assert (rows[2]["reason"], rows[3]["failure_kind"]) == ("unparsed", "LMTransportError")
    assert [*map(rows[0].get, ("discipline", "year", "option_count", "has_image"))] == ["biology", 2013, 5, False]
    metrics = json.loads((run.folder.path / "metrics.json").read_text())
    assert [*map(metrics.get, ("n", "failed", "missing", "unanswered"))] == [12, 4, 4, 4]
