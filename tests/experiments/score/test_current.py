"""A run is shown as its folder says it now: what derived files were made from is known by content, never by time."""

import json
import os
from pathlib import Path

import pytest

import medexam
from medexam.datasets import load_exam_set
from medexam.errors import DatasetError, RunFolderError
from medexam.experiments import RunFolder, current_run, rescore
from medexam.experiments.report.current import load_complete
from medexam.experiments.store.freshness import DERIVED, MADE_FROM
from medexam.experiments.store.run_folder import METRICS, PREDICTIONS
from medexam.experiments.store.shards import shard_path
from medexam.predictions import Failure, Status
from medexam.specs import DatasetSpec
from stored_runs import write_run

SAMPLE = Path(medexam.__file__).parent / "datasets" / "sample" / "HEAD_EN.json"
BLIND = {"kind": "blind", "option": 1}


def _right(question, gold):
    return {"status": Status.ANSWERED, "answer": gold}


def _wrong(question, gold):
    return {"status": Status.ANSWERED, "answer": gold % 4 + 1}


def _failed(question, gold):
    return {"status": Status.FAILED, "failure": Failure(kind="LMTransportError", message="refused")}


class _Run:
    """A run over a data file of its own, and what was said while it was read."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.data = place / "HEAD_EN.json"
        self.data.write_bytes(SAMPLE.read_bytes())
        self.said: list[str] = []
        self.folder = self.write(12, _right)

    def write(self, limit: int, answer, *, scored: bool = True) -> RunFolder:
        dataset = {"path": str(self.data), "limit": limit}
        exams = load_exam_set(DatasetSpec.model_validate({"name": "headqa_v1", **dataset}))
        return write_run(self.place / "run", exams, BLIND, answer, dataset=dataset, scored=scored)

    def read(self):
        self.said.clear()
        return current_run(self.folder, self.said.append)

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.path.iterdir() if path.is_file()}


@pytest.fixture
def run(tmp_path) -> _Run:
    return _Run(tmp_path)


def test_a_fresh_run_is_read_and_nothing_is_said_or_written(run) -> None:
    before = run.files()
    later = (run.folder.path / METRICS).stat().st_mtime + 60
    os.utime(run.folder.path / PREDICTIONS, (later, later))
    found = run.read()
    assert (found.metrics.n, found.complete, found.note, run.said) == (12, True, None, [])
    assert run.files() == before
    assert load_complete(str(run.folder.path), run.place, run.said.append) == found


@pytest.mark.parametrize(
    ("limit", "answer", "counts"),
    [
        (30, lambda question, gold: None, (30, 12, 0, 18)),
        (30, _failed, (30, 0, 30, 0)),
        (6, lambda question, gold: None, (6, 6, 0, 0)),
        (12, _wrong, (12, 12, 0, 0)),
    ],
    ids=["widened and killed", "all failed", "narrowed", "answered anew"],
)
def test_a_run_that_went_on_and_was_killed_is_scored_anew(run, limit, answer, counts) -> None:
    stale = run.files()
    run.write(limit, answer, scored=False)
    for name in (*DERIVED, MADE_FROM):
        (run.folder.path / name).write_bytes(stale[name])
        os.utime(run.folder.path / name, (4e9, 4e9))
    found = run.read()
    metrics = found.metrics
    assert (metrics.selected, metrics.n, metrics.failed, metrics.missing) == counts
    assert found.complete == (metrics.n == limit)
    assert found == rescore(run.folder)
    (line,) = run.said
    assert line.startswith("run: made metrics.json, report.md and predictions.parquet again: ")
    assert json.loads(run.files()[METRICS]) == metrics.model_dump(mode="json")
    assert run.read() == found
    assert run.said == []


def test_what_workers_left_in_parts_counts(run) -> None:
    lines = run.files()[PREDICTIONS].splitlines(keepends=True)
    (run.folder.path / PREDICTIONS).write_bytes(b"".join(lines[:7]))
    assert run.read().metrics.missing == 5
    part = shard_path(run.folder.path, "worker")
    part.parent.mkdir()
    part.write_bytes(b"".join(lines[7:]))
    assert (len(run.folder.read_predictions()), rescore(run.folder).metrics.n) == (12, 12)
    assert run.read().complete
    assert not part.exists()


@pytest.mark.parametrize("name", [*DERIVED, MADE_FROM])
def test_a_derived_file_of_another_scoring_is_not_believed(run, name) -> None:
    fresh = run.files()
    (run.folder.path / name).write_bytes(fresh[name].replace(b"1", b"2"))
    assert run.read().metrics.accuracy == 1.0
    assert len(run.said) == 1
    assert run.files()[METRICS] == fresh[METRICS]


def test_a_folder_of_an_earlier_version_is_scored_anew_once(run) -> None:
    (run.folder.path / MADE_FROM).unlink()
    assert load_complete(str(run.folder.path), run.place, run.said.append).metrics.n == 12
    assert len(run.said) == 1
    assert run.read().complete
    assert run.said == []


def test_a_corrected_gold_scores_anew_and_says_so(run) -> None:
    document = json.loads(run.data.read_text(encoding="utf-8"))
    golds = run.folder.read_record().dataset_golds
    for exam in document["exams"].values():
        for row in exam["data"]:
            row["ra"] = str(int(row["ra"]) % 4 + 1)
    run.data.write_text(json.dumps(document), encoding="utf-8")
    assert load_complete(str(run.folder.path), run.place, run.said.append).metrics.accuracy == 0.0
    (line,) = run.said
    assert "golds of its data have changed since it was scored (12 of its 12 questions)" in line
    assert run.folder.read_record().dataset_golds != golds
    run.read()
    assert run.said == []


def test_without_the_data_set_fresh_scores_are_shown_with_a_note(run) -> None:
    run.data.unlink()
    found = run.read()
    assert (found.metrics.n, found.complete) == (12, True)
    assert "when it ran, because scoring again fails: headqa_v1: " in found.note
    assert found.note in found.warnings


@pytest.mark.parametrize("is_old", [False, True], ids=["of this version", "of an earlier one"])
def test_without_the_data_set_stale_scores_are_never_shown(run, is_old) -> None:
    if is_old:
        (run.folder.path / MADE_FROM).unlink()
        kept = run.data.read_bytes()
        run.data.unlink()
        assert "shown as it was scored when it ran" in run.read().note, "its counts are those of its answers"
        run.data.write_bytes(kept)
    run.write(30, lambda question, gold: None, scored=False)
    run.data.unlink()
    with pytest.raises(DatasetError, match=r"out of date \(.*\) and cannot be made again: headqa_v1: .*HEAD_EN.json"):
        run.read()


def test_other_texts_are_not_scored(run) -> None:
    run.data.write_text(run.data.read_text(encoding="utf-8").replace('"atext": "', '"atext": "Not '), encoding="utf-8")
    assert "the texts of its data have changed" in run.read().note
    run.folder.write_json(METRICS, {})
    with pytest.raises(DatasetError, match="the texts of its data have changed"):
        run.read()


def test_a_run_that_another_process_writes_is_shown_as_it_stands(run) -> None:
    run.write(30, lambda question, gold: None, scored=False)
    with run.folder.locked():
        before = run.files()
        found = run.read()
        assert run.files() == before
    assert (found.metrics.n, found.status, found.files_fresh) == (12, "incomplete", False)
    assert found.note == "running: 12 of 30 questions answered"


def test_a_folder_that_cannot_be_written_is_scored_in_memory(run, monkeypatch) -> None:
    run.write(30, _wrong, scored=False)
    with run.folder.locked():
        before = run.files()

    def refuse(*_: object) -> None:
        raise RunFolderError("cannot write run: Read-only file system")

    monkeypatch.setattr(RunFolder, "write_bytes", refuse)
    found = run.read()
    assert (found.metrics.n, found.metrics.accuracy, found.files_fresh) == (30, 0.0, False)
    (line,) = run.said
    assert (
        "are out of date (spec.json changed, predictions.jsonl changed) and cannot be made again: cannot write" in line
    )
    assert run.files() == before
