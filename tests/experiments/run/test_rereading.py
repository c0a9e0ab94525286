"""A reader of replies whose version rises reads what is stored again: nothing is asked, and nothing written is lost.

A run that an older reader read is made by hand: its replies say 2, and its lines that nothing could be read.
"""

import json

import pytest

import medexam
from medexam.predictions import Status

OLD = {"answer": 1, "thinking": 1, "lenient": 1}


@pytest.fixture
def read_before(ask, spec, replies, asked):
    """A run of twelve questions that was read by the first readers; `keeps(line)` changes what is stored."""

    def make(keeps=lambda line: line, reply="{Answer: 2}", **settings):
        (run,) = ask(spec | {"model": replies(reply)}, **settings)
        unread = {"status": "unanswered", "answer": None, "reason": "unparsed"}
        log, record = run.folder / "predictions.jsonl", run.folder / "spec.json"
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        lines = [keeps(line | unread if line["reply"] else line) for line in lines]
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
        record.write_text(json.dumps(json.loads(record.read_text()) | {"readings": OLD}))
        asked.take()
        return medexam.load_run(run.folder)

    return make


def test_replies_are_read_again_and_nothing_is_asked(ask, spec, read_before, asked, caplog) -> None:
    before = read_before()
    assert before.metrics.unanswered == 12
    lines = (before.folder / "predictions.jsonl").read_bytes()
    (after,) = ask(spec)
    assert (asked.prompts, after.id, after.metrics.unanswered) == ([], before.id, 0)
    assert {one.answer for one in after.predictions.values()} == {2}
    assert (after.folder / "predictions.jsonl").read_bytes().startswith(lines), "what was written before stays"
    assert json.loads((after.folder / "spec.json").read_text())["readings"] != OLD
    assert "12 of 12 predictions changed" in caplog.text
    caplog.clear()
    ask(spec)
    assert not caplog.records


def test_resuming_reads_again_too(read_before, asked, resume) -> None:
    lost = iter([{"status": "failed", "failure": {"kind": "LMTransportError", "message": "gone"}, "reason": None}])
    before = read_before(lambda line: line | next(lost, {}))
    after = resume(before)
    assert (len(asked.prompts), after.n, after.metrics.unanswered) == (1, 12, 0)


def test_what_keeps_too_little_is_asked_anew(ask, spec, read_before, asked, caplog) -> None:
    lost = iter([{"reply": None}])
    read_before(lambda line: line | next(lost, {}))
    (after,) = ask(spec)
    assert (len(asked.prompts), after.n, after.metrics.unanswered) == (1, 12, 0)
    assert "1 of them because too little was stored" in caplog.text


def test_a_report_says_which_answers_todays_reader_reads_otherwise(read_before) -> None:
    run = read_before()
    (warning,) = [line for line in (run.folder / "report.md").read_text().splitlines() if "reader 'answer'" in line]
    assert "version 1 of the reader 'answer'" in warning
    assert "12 of them are read differently today" in warning
    same = read_before(lambda line: line | {"status": "answered", "answer": 2, "reason": None}, fresh=True)
    assert "reader 'answer'" not in (same.folder / "report.md").read_text()


def test_questions_without_a_reply_are_left_as_they_are(ask, spec, read_before, asked) -> None:
    run = read_before(reply={"*": {"error": "context"}})
    size = (run.folder / "predictions.jsonl").stat().st_size
    (after,) = ask(spec)
    assert (asked.prompts, (after.folder / "predictions.jsonl").stat().st_size) == ([], size)
    assert {one.status for one in after.predictions.values()} == {Status.UNANSWERED}
