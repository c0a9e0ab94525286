"""Predictions read from the disk a line at a time say the same as those that are read at once."""

import json
from types import SimpleNamespace

import pytest

from medexam.errors import RunFolderError
from medexam.experiments import RunFolder, Spending
from medexam.experiments.run.workers.dispatcher import Dispatcher
from medexam.experiments.run.workers.messages import WorkerReport
from medexam.experiments.run.workers.remote import RemoteWorker
from medexam.experiments.store import prediction_lines
from medexam.experiments.store.log_lines import cut_torn_line
from medexam.experiments.store.run_folder import PREDICTIONS, pending
from medexam.predictions import Failure, Outcome, Prediction, Status


def _answered(key: str, answer: int = 1, reply: str = "añ") -> Prediction:
    return Prediction(question=key, program="p", spec_digest="d", status=Status.ANSWERED, answer=answer, reply=reply)


def _failed(key: str) -> Prediction:
    failure = Failure(kind="LMTransportError", message="gone")
    return Prediction(question=key, program="p", spec_digest="d", status=Status.FAILED, failure=failure)


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    made = RunFolder(tmp_path, "d")
    with made.appending() as log:
        for prediction in (
            _answered("a"),
            _failed("b"),
            _answered("c", reply="long " * 5_000),
            _failed("d"),
            _answered("b", answer=2),
        ):
            log.append(prediction)
    return made


@pytest.mark.parametrize("held", [0, 300, 2**24])
def test_each_look_gives_what_reading_at_once_gives(folder, held, monkeypatch) -> None:
    monkeypatch.setattr(prediction_lines, "HELD_BYTES", held)
    whole = folder.read_predictions()
    with folder.opened_predictions() as stored:
        assert list(stored) == list(whole) == ["a", "b", "c", "d"]
        assert len(stored) == 4
        assert dict(stored) == whole
        assert stored["b"].answer == 2
        assert "e" not in stored
        assert stored.get("e") is None
        with pytest.raises(KeyError):
            stored["e"]


def test_planning_reads_how_each_question_last_came_out(folder) -> None:
    outcomes = folder.read_outcomes()
    assert outcomes["b"] == Outcome(Status.ANSWERED, 2)
    assert outcomes["d"] == Outcome(Status.FAILED, None)
    assert pending("abcde", outcomes) == pending("abcde", folder.read_predictions()) == ["d", "e"]


def test_a_folder_without_predictions_has_none(tmp_path) -> None:
    with RunFolder(tmp_path).opened_predictions() as stored:
        assert not stored
    assert RunFolder(tmp_path).read_outcomes() == {}


def test_a_torn_last_line_counts_as_not_written(folder) -> None:
    with (folder.path / PREDICTIONS).open("ab") as stream:
        stream.write(b'{"schema": 1, "question": "e"')
    with folder.opened_predictions() as stored:
        assert list(stored) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("line", [b"", b"{", b"\xff"])
def test_a_damaged_line_is_named_whoever_reads(folder, line) -> None:
    path = folder.path / PREDICTIONS
    path.write_bytes(path.read_bytes() + line + b"\n")
    for read in (folder.read_predictions, folder.read_outcomes, folder.opened_predictions().__enter__):
        with pytest.raises(RunFolderError, match="line 6 is damaged"):
            read()


@pytest.mark.parametrize("score", [b'"nan"', b"NaN", b"-Infinity", b"1e999"])
def test_a_score_that_is_no_number_is_a_damaged_line(folder, score) -> None:
    path = folder.path / PREDICTIONS
    whole, last = path.read_bytes().rstrip(b"\n").rsplit(b"\n", 1)
    path.write_bytes(
        whole + b"\n" + last.replace(b'"option_scores":null', b'"option_scores":{"1":' + score + b"}") + b"\n"
    )
    assert score in path.read_bytes()
    with pytest.raises(RunFolderError, match="line 5 is damaged"):
        folder.read_predictions()


@pytest.mark.parametrize("file", [PREDICTIONS, "parts/w.jsonl"])
def test_a_line_of_another_run_is_named_whoever_reads(folder, file) -> None:
    path = folder.path / file
    path.parent.mkdir(exist_ok=True)
    theirs = _answered("e").model_copy(update={"spec_digest": "other"})
    with path.open("ab") as stream:
        stream.write(json.dumps(theirs.to_json()).encode() + b"\n")
    readers = [folder.read_outcomes, folder.merge_shards]
    if file == PREDICTIONS:
        (folder.path / "parts").mkdir()
        readers += [folder.read_predictions, folder.opened_predictions().__enter__]
    for read in readers:
        with pytest.raises(RunFolderError, match=r"line \d belongs to another run \(digest other, .* is d\)") as caught:
            read()
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_worker_that_answers_for_another_run_is_refused(folder) -> None:
    planned = SimpleNamespace(spec_digest="d", pending=())
    dispatcher = Dispatcher(planned, [], None, Spending())
    worker = RemoteWorker("w", "node7", None)
    done = (_answered("a").model_copy(update={"spec_digest": "other"}).to_line(),)
    with pytest.raises(RunFolderError, match="worker on node7 belongs to another run"):
        dispatcher.hear(worker, WorkerReport(0, done, 0, 1, over=False))


def test_the_lines_of_many_files_are_read_once_until_they_change_or_fill_the_room(folder, monkeypatch) -> None:
    path = folder.path / PREDICTIONS
    copies = [path.with_name(f"{number}.jsonl") for number in range(4)]
    for copy in copies:
        copy.write_bytes(path.read_bytes())

    def first(file):
        return next(prediction for _, prediction in prediction_lines.scan_predictions(file, "d"))

    seen = [first(copy) for copy in copies]
    assert all(first(copy) is prediction for copy, prediction in zip(copies, seen, strict=True))
    copies[0].write_bytes(path.read_bytes() * 2)
    assert first(copies[0]) is not seen[0]
    monkeypatch.setattr(prediction_lines, "HELD_BYTES", path.stat().st_size)
    assert first(copies[1]) is seen[1]
    assert first(path) == seen[1]
    assert first(copies[1]) is not seen[1]


def test_a_file_that_was_changed_meanwhile_is_one_clear_line(folder, monkeypatch) -> None:
    monkeypatch.setattr(prediction_lines, "HELD_BYTES", 0)
    with folder.opened_predictions() as stored:
        (folder.path / PREDICTIONS).write_bytes(b"")
        with pytest.raises(RunFolderError, match="prediction of c is no longer in its file"):
            stored["c"]


@pytest.mark.parametrize("torn", [0, 1, 4095, 4096, 4097, 20_000])
@pytest.mark.parametrize("whole", [b"", b"\n", b"one\n", b"one\n" + b"x" * 9_000 + b"\n"])
def test_only_what_stands_behind_the_last_line_is_cut_off(tmp_path, whole, torn) -> None:
    path = tmp_path / "lines"
    path.write_bytes(whole + b"y" * torn)
    cut_torn_line(path)
    assert path.read_bytes() == whole
