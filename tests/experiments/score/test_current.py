"""A run is shown as its folder says it now: scores are there only where they are of all its answers."""

import json
import os
from pathlib import Path

import pytest

import medexam
from medexam.datasets import load_exam_set
from medexam.errors import RunFolderError
from medexam.experiments import RunFolder
from medexam.predictions import Failure, Status
from medexam.specs import DatasetSpec
from stored_runs import write_run

SAMPLE = Path(medexam.__file__).parent / "datasets" / "sample" / "HEAD_EN.json"
DERIVED = ("metrics.json", "report.md", "predictions.parquet")


def _right(question, gold):
    return {"status": Status.ANSWERED, "answer": gold}


def _wrong(question, gold):
    return {"status": Status.ANSWERED, "answer": gold % 4 + 1}


def _failed(question, gold):
    return {"status": Status.FAILED, "failure": Failure(kind="LMTransportError", message="refused")}


def _nothing(question, gold):
    return None


class _Run:
    """A run over a data file of its own, and what was said while it was read."""

    def __init__(self, place: Path, capsys) -> None:
        self.place, self.capsys = place, capsys
        self.data = place / "HEAD_EN.json"
        self.data.write_bytes(SAMPLE.read_bytes())
        self.said: list[str] = []
        self.folder = self.write(12, _right)

    def write(self, limit: int, answer, *, scored: bool = True) -> RunFolder:
        dataset = {"path": str(self.data), "limit": limit}
        exams = load_exam_set(DatasetSpec.model_validate({"name": "headqa_v1", **dataset}))
        program = {"kind": "blind", "option": 1}
        return write_run(self.place / "run", exams, program, answer, dataset=dataset, scored=scored)

    def read(self):
        self.capsys.readouterr()
        run = medexam.load_run(self.folder.path)
        self.said = self.capsys.readouterr().err.splitlines()
        return run

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.path.iterdir() if path.is_file()}


@pytest.fixture
def run(tmp_path, capsys) -> _Run:
    return _Run(tmp_path, capsys)


def test_a_fresh_run_is_read_and_nothing_is_said_or_written(run) -> None:
    before = run.files()
    later = (run.folder.path / "metrics.json").stat().st_mtime + 60
    os.utime(run.folder.path / "predictions.jsonl", (later, later))
    found = run.read()
    assert (found.n, found.accuracy, found.complete, run.said) == (12, 1.0, True, [])
    assert run.files() == before


@pytest.mark.parametrize(
    ("limit", "answer", "counts"),
    [
        (30, _nothing, (30, 12, 0, 18)),
        (30, _failed, (30, 0, 30, 0)),
        (6, _nothing, (6, 6, 0, 0)),
        (12, _wrong, (12, 12, 0, 0)),
    ],
    ids=["widened and killed", "all failed", "narrowed", "answered anew"],
)
def test_a_run_that_went_on_and_was_killed_is_scored_anew(run, limit, answer, counts) -> None:
    run.write(limit, answer, scored=False)
    found = run.read()
    metrics = found.metrics
    assert (metrics.selected, metrics.n, metrics.failed, metrics.missing) == counts
    assert (found.complete, found.accuracy) == (metrics.n == limit, (answer is not _wrong) / 1 if metrics.n else None)
    (line,) = run.said
    assert "run: made metrics.json, report.md and predictions.parquet again" in line
    assert json.loads(run.files()["metrics.json"]) == metrics.model_dump(mode="json")
    assert (run.read().metrics, run.said) == (metrics, [])


def test_what_workers_left_in_parts_counts(run) -> None:
    log = run.folder.path / "predictions.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    gone = {"status": "failed", "answer": None, "failure": {"kind": "LMTransportError", "message": "gone"}}
    first, eighth = (json.dumps(json.loads(line) | gone).encode() + b"\n" for line in (lines[0], lines[7]))
    log.write_bytes(b"".join(lines[:7]) + eighth)
    (run.folder.path / "metrics.json").unlink()
    assert (run.read().metrics.missing, run.read().metrics.failed) == (4, 1)
    (run.folder.path / "parts").mkdir()
    (run.folder.path / "parts" / "worker.jsonl").write_bytes(first + b"".join(lines[7:]) + b'{"torn')
    assert {str(outcome.status) for outcome in run.folder.read_outcomes().values()} == {"answered"}
    assert (run.read().complete, run.read().accuracy) == (True, 1.0)
    assert not (run.folder.path / "parts" / "worker.jsonl").exists()


@pytest.mark.parametrize("name", DERIVED)
def test_a_derived_file_that_is_missing_is_made_again(run, name) -> None:
    fresh = run.files()
    (run.folder.path / name).unlink()
    assert (run.read().accuracy, len(run.said), run.files()["metrics.json"]) == (1.0, 1, fresh["metrics.json"])


def test_a_folder_needs_no_data_set_to_be_scored_shown_and_compared(run) -> None:
    shown = medexam.report(run.read(), html=run.place / "before.html").markdown()
    run.data.unlink()
    assert medexam.report(run.read(), html=run.place / "after.html").markdown() == shown
    assert (run.place / "after.html").read_bytes() == (run.place / "before.html").read_bytes()
    log = run.folder.path / "predictions.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:9]))
    (run.folder.path / "metrics.json").unlink()
    found = run.read()
    assert (found.n, found.accuracy, found.complete) == (9, 1.0, False)


def test_other_texts_are_not_scored_and_what_was_asked_is_still_shown(run) -> None:
    run.data.write_text(run.data.read_text(encoding="utf-8").replace('"atext": "', '"atext": "Not '), encoding="utf-8")
    for _ in range(2):
        found = run.read()
        assert (found.n, found.accuracy) == (12, 1.0)
        assert "the files of its data have changed since it was asked" in medexam.report(found).markdown()
    run.data.write_bytes(SAMPLE.read_bytes())
    assert "have changed" not in medexam.report(run.read()).markdown()


@pytest.mark.parametrize("damage", [None, b"", b"PAR1 and so on"])
def test_questions_that_are_gone_or_damaged_are_one_line(run, damage) -> None:
    path = run.folder.path / "items.parquet"
    path.unlink() if damage is None else path.write_bytes(damage)
    with pytest.raises(RunFolderError, match=r"items.parquet .*restore it, or run the spec again"):
        run.read()


def test_a_run_that_another_process_writes_is_shown_as_it_stands(run) -> None:
    run.write(30, _wrong, scored=False)
    with run.folder.locked():
        before = run.files()
        found = run.read()
        assert run.files() == before
    assert (found.n, found.accuracy) == (30, 0.0)
