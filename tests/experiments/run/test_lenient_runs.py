"""A run whose replies lack the format is scored strictly or leniently and shows both; nothing is asked anew."""

import json

import pytest
import yaml

from medexam.errors import SpecError
from medexam.experiments import Runner, compare_runs, current_run, findings, plan_experiment, rescore
from medexam.experiments.api.comparisons import compare
from medexam.experiments.store.run_folder import PREDICTIONS
from medexam.predictions import Status
from watching import Answers


@pytest.fixture
def document(spec, tmp_path):
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": "The correct answer is (B)."}))
    return spec


def _run(document, tmp_path, **overrides):
    watcher = Answers()
    plan = plan_experiment(document, overrides, runs_dir=tmp_path / "runs")
    (run,), _ = Runner(plan, watcher).run()
    return run, len(watcher.answers)


def test_both_readings_stand_where_the_score_stands(document, tmp_path) -> None:
    run, _ = _run(document, tmp_path)
    metrics = run.metrics
    assert (metrics.right, metrics.unanswered) == (0, 12)
    assert {one.lenient for one in run.folder.read_predictions().values()} == {2}
    strict, lenient = metrics.readings["strict"], metrics.readings["lenient"]
    assert (strict.right, strict.wrong, strict.unanswered, strict.accuracy) == (0, 0, 12, 0)
    assert (lenient.right + lenient.wrong, lenient.unanswered) == (12, 0)
    assert lenient.accuracy == lenient.right / 12
    stored = json.loads((run.folder.path / "metrics.json").read_text())
    assert stored["readings"]["lenient"]["right"] == lenient.right
    share = f"{100 * lenient.accuracy:.1f}"
    assert f"strict 0.0 % (100.0 % without an answer); read leniently {share} % (0.0 %)." in findings([run])
    assert f"read leniently {share} %" in (run.folder.path / "report.md").read_text()


def test_another_reading_is_scored_without_asking(document, tmp_path) -> None:
    strict, asked = _run(document, tmp_path)
    assert asked == 12
    lenient, asked = _run(document, tmp_path, **{"program.reading": "lenient"})
    assert (asked, lenient.folder) == (0, strict.folder)
    assert lenient.metrics.right == strict.metrics.readings["lenient"].right
    assert (lenient.metrics.unanswered, lenient.metrics.readings) == (0, strict.metrics.readings)
    assert {one.status for one in lenient.folder.read_predictions().values()} == {Status.ANSWERED}
    assert any("read leniently (the score)" in finding for finding in findings([lenient]))
    again, asked = _run(document, tmp_path)
    assert (asked, again.metrics) == (0, strict.metrics)


def test_a_run_that_was_never_read_leniently_shows_both(document, tmp_path) -> None:
    run, _ = _run(document, tmp_path)
    path = run.folder.path / PREDICTIONS
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({k: v for k, v in line.items() if k != "lenient"}) + "\n" for line in lines))
    record = json.loads((run.folder.path / "spec.json").read_text())
    del record["readings"]
    run.folder.write_json("spec.json", record)
    for shown in (rescore(run.folder), current_run(run.folder, print), current_run(run.folder, print)):
        assert (shown.metrics.right, shown.metrics.readings) == (0, run.metrics.readings)
        assert shown.record.warnings == (), "no answer of it is read otherwise"


def test_runs_are_compared_under_either_reading(document, tmp_path) -> None:
    one, _ = _run(document, tmp_path)
    other, _ = _run(document, tmp_path, **{"program.kind": "chain_of_thought"})
    folders = [one.folder, other.folder]
    assert compare_runs(folders).runs[0].metrics.right == 0
    read = compare_runs(folders, reading="lenient")
    assert read.runs[0].metrics.right == one.metrics.readings["lenient"].right
    assert compare_runs(folders, reading="strict").runs[0].metrics.unanswered == 12
    with pytest.raises(SpecError, match="leave reading out"):
        compare(one.folder.path, other.folder.path, ensemble="vote", reading="lenient")


def test_several_replies_vote_under_either_reading(document, tmp_path) -> None:
    run, _ = _run(document, tmp_path, **{"program.samples": 3, "model.temperature": 1.0})
    predictions = run.folder.read_predictions().values()
    assert {(one.answer, one.lenient, one.votes) for one in predictions} == {(None, 2, (None, None, None))}


def test_orders_of_the_options_are_read_in_the_order_shown(document, tmp_path) -> None:
    run, _ = _run(document, tmp_path, **{"program.orders": "reversed"})
    for one in run.folder.read_predictions().values():
        assert one.lenient == 2, "of 2 and the last but one, the one that was answered first"
