"""A reader of replies whose version rises reads what is stored again; nothing is asked, and nothing written is lost."""

import json

import pytest
import yaml

from medexam.experiments import Runner, plan_experiment, plan_resume, rescore
from medexam.experiments.report.current import load_complete
from medexam.experiments.store.run_folder import PREDICTIONS
from medexam.predictions import Status
from medexam.signatures import adapter, parse_answer
from medexam.specs.programs import base as specs
from watching import Answers


@pytest.fixture
def document(spec, tmp_path):
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": "{Answer: 1} or {Answer: 2}"}))
    return spec


@pytest.fixture
def last_counts(monkeypatch):
    """From now on of two answers the last counts, and the reader says so."""
    first = {**specs.READINGS, "answer": 1, "thinking": 1, "lenient": 1}
    monkeypatch.setattr(specs, "READINGS", first)

    def change() -> None:
        monkeypatch.setattr(specs, "READINGS", {**first, "answer": 2})
        monkeypatch.setattr(
            adapter, "parse_answer", lambda reply, options, **_: parse_answer(reply, options, reasoned=True)
        )

    return change


def _run(document, tmp_path, overrides=None):
    watcher = Answers()
    (run,), _ = Runner(plan_experiment(document, overrides or {}, runs_dir=tmp_path / "runs"), watcher).run()
    return run, len(watcher.answers)


@pytest.mark.parametrize("how", ["run", "resume"])
def test_replies_are_read_again_and_nothing_is_asked(document, tmp_path, last_counts, caplog, how) -> None:
    # A wider selection was asked before.
    _run(document, tmp_path, {"dataset.limit": 20})
    before, _ = _run(document, tmp_path)
    assert before.metrics.unanswered == 12
    assert before.record.readings == {"answer": 1, "thinking": 1, "lenient": 1}
    lines = (before.folder.path / PREDICTIONS).read_bytes()
    last_counts()
    assert load_complete(str(before.folder.path), tmp_path, print) is None
    if how == "run":
        after, asked = _run(document, tmp_path)
    else:
        watcher = Answers()
        (after,), _ = Runner(plan_resume(str(before.folder.path), runs_dir=tmp_path), watcher).run()
        asked = len(watcher.answers)
    assert (asked, after.folder) == (0, before.folder)
    assert after.record.readings == {"answer": 2, "thinking": 1, "lenient": 1}
    predictions = after.folder.read_predictions()
    assert {prediction.answer for prediction in predictions.values()} == {2}
    assert len(predictions) == 20
    assert (after.metrics.unanswered, after.record.warnings) == (0, ())
    # What was written before stays, and what is read again stands behind it.
    assert (after.folder.path / PREDICTIONS).read_bytes().startswith(lines)
    (said,) = [record.getMessage() for record in caplog.records if "read again" in record.getMessage()]
    assert "version 1 of the reader 'answer' (today's is 2)" in said
    assert "20 of 20 predictions changed" in said
    caplog.clear()
    assert _run(document, tmp_path)[1] == 0
    assert not caplog.records


def test_what_keeps_too_little_is_asked_anew(document, tmp_path, last_counts, caplog) -> None:
    before, _ = _run(document, tmp_path)
    path = before.folder.path / PREDICTIONS
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["reply"] = None
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    last_counts()
    after, asked = _run(document, tmp_path)
    assert (asked, after.metrics.n, after.metrics.unanswered) == (1, 12, 0)
    assert "1 of them because too little was stored, and these are asked again" in caplog.text


def test_a_report_says_by_what_its_replies_were_read(document, tmp_path, last_counts) -> None:
    run, _ = _run(document, tmp_path)
    assert rescore(run.folder).record.warnings == ()
    last_counts()
    (warning,) = rescore(run.folder).record.warnings
    assert "version 1 of the reader 'answer' (today's is 2), and 12 of them are read differently today" in warning
    assert run.folder.resume_command in warning
    # A run that was made before readers had versions was read by their first.
    record = json.loads((run.folder.path / "spec.json").read_text())
    del record["readings"]
    run.folder.write_json("spec.json", record)
    assert rescore(run.folder).record.warnings == (warning,)


def test_a_report_is_silent_where_todays_reader_reads_the_same(document, tmp_path, last_counts) -> None:
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": "{Answer: 2}"}))
    run, _ = _run(document, tmp_path)
    last_counts()
    assert run.folder.read_record().outdated is not None
    assert rescore(run.folder).record.warnings == ()


def test_failures_and_other_programs_are_left_as_they_are(document, tmp_path, last_counts) -> None:
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": {"error": "context"}}))
    before, _ = _run(document, tmp_path)
    control, _ = _run(document, tmp_path, {"program": {"kind": "longest"}})
    size = (before.folder.path / PREDICTIONS).stat().st_size
    last_counts()
    after, asked = _run(document, tmp_path)
    assert (asked, after.metrics) == (0, before.metrics)
    assert (before.folder.path / PREDICTIONS).stat().st_size == size
    assert {one.status for one in after.folder.read_predictions().values()} == {Status.UNANSWERED}
    assert control.folder.read_record().outdated is None
