"""The run folder keeps what was finished, whatever happened to the process that wrote it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from medexam.benchmarks import find_benchmark
from medexam.errors import RunFolderError
from medexam.experiments import RunFolder, find_runs
from medexam.experiments.store.parquet import write_parquet
from medexam.experiments.store.run_folder import PREDICTIONS, pending
from medexam.metrics import ScoredRun
from medexam.predictions import Failure, Prediction, Status
from medexam.questions import AnswerKey
from medexam.specs import DatasetSpec
from stored_runs import made_up_exams


def _prediction(key: str, *, failed: bool = False) -> Prediction:
    if failed:
        failure = Failure(kind="LMTransportError", message="gone")
        return Prediction(question=key, program="p", spec_digest="d", status=Status.FAILED, failure=failure)
    return Prediction(
        question=key, program="p", spec_digest="d", status=Status.ANSWERED, answer=1, reply="añ\n{Answer: 1}"
    )


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    made = RunFolder(tmp_path / "run", "d")
    made.create()
    return made


def _write(folder: RunFolder, *predictions: Prediction) -> None:
    with folder.appending() as log:
        for prediction in predictions:
            log.append(prediction)


def test_what_is_appended_is_read_back(folder) -> None:
    _write(folder, _prediction("a"), _prediction("b"))
    _write(folder, _prediction("c"))
    assert list(folder.read_predictions()) == ["a", "b", "c"]
    assert folder.read_predictions()["a"] == _prediction("a")
    assert len((folder.path / PREDICTIONS).read_text(encoding="utf-8").splitlines()) == 3


def test_a_file_cut_at_any_byte_loses_its_last_line_at_most(folder) -> None:
    _write(folder, _prediction("a"), _prediction("b"))
    path = folder.path / PREDICTIONS
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        kept = list(folder.read_predictions())
        assert kept == (["a"] if size >= first else [])
        _write(folder, _prediction("c"))
        assert list(folder.read_predictions()) == [*kept, "c"]


def test_a_damaged_line_in_the_middle_is_named(folder) -> None:
    _write(folder, _prediction("a"), _prediction("b"))
    path = folder.path / PREDICTIONS
    path.write_bytes(b'{"schema": 1}\n' + path.read_bytes())
    with pytest.raises(RunFolderError, match=r"line 1 is damaged"):
        folder.read_predictions()


def test_failed_and_missing_questions_are_pending(folder) -> None:
    _write(folder, _prediction("a"), _prediction("b", failed=True))
    assert pending(["a", "b", "c"], folder.read_predictions()) == ["b", "c"]
    _write(folder, _prediction("b"))
    assert pending(["a", "b", "c"], folder.read_predictions()) == ["c"]


HOLD = """
import sys, time
from pathlib import Path
from medexam.experiments.store.run_folder import RunFolder
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


def test_a_file_in_the_place_of_the_runs_is_refused(tmp_path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(RunFolderError, match="--runs-dir"):
        RunFolder(tmp_path / "runs" / "run").create()


def test_find_runs_takes_runs_and_folders_of_runs(tmp_path) -> None:
    for name in ("b", "a"):
        made = RunFolder(tmp_path / name)
        made.create()
        made.write_json("spec.json", {})
    (tmp_path / "mlflow.db").write_text("")
    assert [f.name for f in find_runs([tmp_path])] == ["a", "b"]
    assert [f.name for f in find_runs([tmp_path / "b", tmp_path])] == ["b", "a"]
    with pytest.raises(RunFolderError, match="no run at"):
        find_runs([tmp_path / "c"])


def test_runs_of_a_folder_come_in_the_order_in_which_they_were_asked(tmp_path) -> None:
    for name, started_at in {
        "a": "2026-11-20T10:00:00.400+00:00",
        "b": "2026-11-20T10:00:00.350+00:00",
        "c": "",
    }.items():
        made = RunFolder(tmp_path / name)
        made.create()
        made.write_json("spec.json", {})
        if started_at:
            made.write_json("environment.json", {"started_at": started_at})
    (tmp_path / "c" / "environment.json").write_text("{")
    assert [f.name for f in find_runs([tmp_path])] == ["c", "b", "a"]


@pytest.mark.parametrize("content", ["", "[]", "{", '{"run_id": "x"}'])
def test_a_damaged_spec_is_one_clear_line(folder, content) -> None:
    (folder.path / "spec.json").write_text(content)
    with pytest.raises(RunFolderError) as caught:
        folder.read_record()
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_run_says_so(folder) -> None:
    assert not folder.exists()
    with pytest.raises(RunFolderError, match=r"holds no spec\.json"):
        folder.read_record()


def test_json_is_written_whole(folder) -> None:
    folder.write_json("metrics.json", {"n": 1})
    assert json.loads((folder.path / "metrics.json").read_text()) == {"n": 1}
    assert [p.name for p in folder.path.iterdir()] == ["metrics.json"]


def _modes(root: Path) -> dict[str, str]:
    """The last three digits of the mode of everything below a folder."""
    return {str(path.relative_to(root)): f"{path.stat().st_mode & 0o777:o}" for path in sorted(root.rglob("*"))}


@pytest.mark.parametrize(
    ("umask", "folder", "file"), [(0o022, "755", "644"), (0o007, "770", "660"), (0o077, "700", "600")]
)
def test_the_umask_decides_who_may_read_a_run(tmp_path, umask, folder, file) -> None:
    before = os.umask(umask)
    try:
        _make_files(tmp_path)
    finally:
        os.umask(before)
    names = [".lock", "predictions.jsonl", "predictions.parquet", "report.md"]
    modes = _modes(tmp_path)
    modes.setdefault("runs/run/.lock", file)
    assert modes == {"runs": folder, "runs/run": folder, **{f"runs/run/{name}": file for name in names}}


def _make_files(tmp_path) -> None:
    run = RunFolder(tmp_path / "runs" / "run", "d")
    run.create()
    with run.locked():
        _write(run, _prediction("a"))
        run.write_text("report.md", "# a")
        write_parquet(run, find_benchmark(DatasetSpec()), made_up_exams([], AnswerKey({})), {}, ScoredRun(None, {}))


def test_runs_of_an_experiment_come_in_the_order_of_their_spec(tmp_path) -> None:
    """However they were asked; experiments in the order in which they began, one that cannot be read by itself."""
    records = [
        ("late", "10:03", {"experiment_digest": "new", "place": 0}),
        ("second", "10:01", {"experiment_digest": "old", "place": 1}),
        ("first", "10:02", {"experiment_digest": "old", "place": 0}),
        ("strange", "10:04", {"experiment_digest": ["old"], "place": 0}),
    ]
    for name, started_at, record in records:
        made = RunFolder(tmp_path / name)
        made.create()
        made.write_json("spec.json", record)
        made.write_json("environment.json", {"started_at": f"2026-11-20T{started_at}:00.000+00:00"})
    assert [found.name for found in find_runs([tmp_path])] == ["first", "second", "late", "strange"]
