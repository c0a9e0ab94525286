"""A real MLflow store, written by `track` and read back through MLflow's own client."""

import dataclasses
import gc
import json
import logging
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import pytest

from medexam.errors import TrackingError
from medexam.experiments import score_cell
from medexam.experiments.store.stored_run import load_run
from medexam.experiments.track.charts import render_charts
from medexam.experiments.track.database import artifact_root
from medexam.experiments.track.payload import run_params
from medexam.experiments.track.runs import track
from stored_runs import made_up_exams

ZERO_SHOT = {"kind": "zero_shot"}
GUIDED = {"kind": "zero_shot", "answer_format": "guided"}


def _all_runs(client):
    return client.search_runs([experiment.experiment_id for experiment in client.search_experiments()])


def test_the_runs_of_an_experiment_lie_beside_its_page_and_charts(make_run, uri, client) -> None:
    runs = [make_run(ZERO_SHOT, "rw", model={"engine": "embedded"}), make_run({"kind": "longest"}, "rww")]
    tracked = track(runs, tracking_uri=uri)
    assert [t.run_id for t in tracked] == [run.record.run_id for run in runs]
    assert client.get_experiment_by_name("demo").experiment_id == tracked[0].experiment_id
    parent = client.get_run(tracked[0].parent_run_id)
    assert parent.data.tags["medexam.experiment_digest"] == "e" * 12
    assert parent.data.tags["mlflow.note.content"].startswith("Made by hand.")
    assert {path.path for path in client.list_artifacts(parent.info.run_id, "charts")} == {
        f"charts/{name}.svg" for name in ("accuracy", "accuracy_by_year", "accuracy_by_discipline")
    }
    assert parent.info.status == "FINISHED"
    children = [client.get_run(t.mlflow_run_id) for t in tracked]
    assert {child.data.tags["medexam.overview"] for child in children} == {parent.info.run_id}
    assert not any("mlflow.parentRunId" in child.data.tags for child in children)
    assert children[0].info.run_name == "zero_shot · SmolLM2-135M-Instruct · headqa_sample en"
    assert len(_all_runs(client)) == 3


def test_a_child_holds_parameters_metrics_and_tags(make_run, uri, client) -> None:
    run = make_run(GUIDED, "rrwu", model={"engine": "embedded", "device": "cpu"})
    (tracked,) = track([run], tracking_uri=uri)
    stored = client.get_run(tracked.mlflow_run_id)
    params, metrics, tags = stored.data.params, stored.data.metrics, stored.data.tags
    assert params["program.kind"] == "zero_shot"
    assert params["program.answer_format"] == "guided"
    assert params["dataset.language"] == "en"
    assert params["dataset.version"] == "1.0"
    assert params["model.engine"] == "embedded"
    assert not any(key.startswith("words") for key in params)
    assert metrics["accuracy"] == run.metrics.accuracy
    assert (metrics["accuracy_low"], metrics["accuracy_high"]) == run.metrics.accuracy_interval
    assert metrics["accuracy.biology"] == run.metrics.by_discipline["biology"].accuracy
    assert metrics["accuracy.options_4"] == run.metrics.by_option_count[4].accuracy
    assert (metrics["exam_score"], metrics["accuracy.2013"]) == (
        run.metrics.exam_score,
        run.metrics.by_year[2013].accuracy,
    )
    assert (metrics["n"], metrics["failed"], metrics["prompt_tokens"]) == (20, 0, 1800)
    assert tags["mlflow.source.git.commit"] == "c0ffee"
    assert (params["model"], params["program"]) == ("SmolLM2-135M-Instruct", "zero_shot-guided")
    assert len([name for name in tags if name.startswith("medexam.")]) <= 11
    assert tags["medexam.spec_digest"] == run.record.spec_digest
    assert "50.0 [" in tags["mlflow.note.content"]
    assert "Spec: spec.json among the artifacts" in tags["mlflow.note.content"]
    assert (stored.info.end_time - stored.info.start_time) == 5 * 60 * 1000


def test_a_control_has_a_model_too_and_its_duration_is_the_time_that_it_asked(make_run, uri, client) -> None:
    run = make_run({"kind": "longest"}, "rrw")
    run = dataclasses.replace(run, environment={**run.environment, "asked_s": 42.5})
    (tracked,) = track([run], tracking_uri=uri)
    stored = client.get_run(tracked.mlflow_run_id)
    assert stored.data.params["model"] == "none"
    assert stored.info.end_time - stored.info.start_time == 42_500


def test_an_experiment_has_the_page_of_its_runs(make_run, uri, client, tmp_path) -> None:
    runs = [make_run(ZERO_SHOT, "rrw"), make_run(GUIDED, "rw")]
    tracked = track(runs, tracking_uri=uri, page=True)
    copy = client.download_artifacts(tracked[0].parent_run_id, "report.html", str(tmp_path))
    assert "zero_shot-guided" in Path(copy).read_text(encoding="utf-8")


def test_the_data_set_is_an_input(make_run, uri, client) -> None:
    before, run = make_run(ZERO_SHOT, "r", run_id="before"), make_run(ZERO_SHOT, "r")
    run = dataclasses.replace(run, record=dataclasses.replace(run.record, schema=2, dataset_golds="cd" * 32))
    old, new = track([before, run], tracking_uri=uri)
    (given,) = client.get_run(old.mlflow_run_id).inputs.dataset_inputs
    assert given.dataset.name == "headqa_sample-en"
    assert given.dataset.digest.startswith("ab" * 6)
    (scored,) = client.get_run(new.mlflow_run_id).inputs.dataset_inputs
    assert scored.dataset.digest.startswith("ab" * 6 + "cd" * 6), "questions, golds, and what was selected"
    assert json.loads(given.dataset.profile)["num_rows"] == 20
    assert {tag.key: tag.value for tag in given.tags} == {"mlflow.data.context": "evaluation"}


def test_the_run_folder_is_there_as_artifacts(make_run, uri, client, tmp_path) -> None:
    run = make_run(ZERO_SHOT, "r")
    (tracked,) = track([run], tracking_uri=uri)
    names = {artifact.path for artifact in client.list_artifacts(tracked.mlflow_run_id)}
    assert names == {path.name for path in run.folder.path.iterdir() if not path.name.startswith(".")}
    location = client.get_run(tracked.mlflow_run_id).info.artifact_uri
    assert location.startswith(artifact_root(uri).as_uri())
    copy = client.download_artifacts(tracked.mlflow_run_id, "predictions.jsonl", str(tmp_path))
    assert Path(copy).read_bytes() == (run.folder.path / "predictions.jsonl").read_bytes()


def test_tracking_twice_changes_nothing(make_run, uri, client) -> None:
    runs = [make_run(ZERO_SHOT, "rw"), make_run(GUIDED, "rw")]
    first = track(runs, tracking_uri=uri)
    before = [client.get_run(t.mlflow_run_id).data.to_dictionary() for t in first]
    assert track(runs, tracking_uri=uri) == first
    assert [client.get_run(t.mlflow_run_id).data.to_dictionary() for t in first] == before
    assert len(client.get_metric_history(first[0].mlflow_run_id, "accuracy")) == 1
    assert len(client.get_run(first[0].mlflow_run_id).inputs.dataset_inputs) == 1
    assert len(_all_runs(client)) == 3


def test_an_incomplete_run_has_failed_until_it_is_continued(make_run, uri, client, exam_questions, answer_key) -> None:
    run = make_run(ZERO_SHOT, "rrfm")
    (tracked,) = track([run], tracking_uri=uri)
    stored = client.get_run(tracked.mlflow_run_id)
    assert stored.info.status == client.get_run(tracked.parent_run_id).info.status == "FAILED"
    assert (stored.data.metrics["failed"], stored.data.metrics["accuracy"]) == (5, 1.0)
    answered = next(iter(run.folder.read_predictions().values()))
    with run.folder.appending() as log:
        for question in exam_questions:
            log.append(answered.model_copy(update={"question": question.key, "answer": 2}))
    environment = {**run.environment, "ended_at": "2026-11-20T11:00:00+00:00"}
    run.folder.write_json("environment.json", environment)
    again = score_cell(run.folder, made_up_exams(exam_questions, answer_key))
    (tracked,) = track([again], tracking_uri=uri)
    stored = client.get_run(tracked.mlflow_run_id)
    assert stored.info.status == client.get_run(tracked.parent_run_id).info.status == "FINISHED"
    assert (stored.data.metrics["failed"], stored.data.metrics["accuracy"]) == (0, 0.0)


def test_another_selection_of_the_same_run_is_no_conflict(make_run, uri, client) -> None:
    run = make_run(ZERO_SHOT, "r")
    (first,) = track([run], tracking_uri=uri)
    cell = run.record.cell
    wider = cell.model_copy(update={"dataset": cell.dataset.model_copy(update={"years": (2013,), "limit": 5})})
    changed = dataclasses.replace(run, record=dataclasses.replace(run.record, cell=wider))
    (second,) = track([changed], tracking_uri=uri)
    assert (second.run_id, second.parent_run_id) == (first.run_id, first.parent_run_id)
    tags = client.get_run(second.mlflow_run_id).data.tags
    assert "years: 2013; " in tags["medexam.selection"]
    assert "limit: 5" in tags["medexam.selection"]
    (third,) = track([run], tracking_uri=uri)
    assert "limit" not in client.get_run(third.mlflow_run_id).data.tags["medexam.selection"]
    assert {run.info.run_id for run in _all_runs(client)} == {third.mlflow_run_id, third.parent_run_id}


def test_what_a_copy_no_longer_holds_is_gone(make_run, uri, client, exam_questions, answer_key) -> None:
    run = make_run(ZERO_SHOT, "rrwm")
    (run.folder.path / "map.png").write_bytes(b"a picture")
    (first,) = track([run], tracking_uri=uri)
    files = Path(client.get_run(first.mlflow_run_id).info.artifact_uri.removeprefix("file://"))
    assert (files / "map.png").exists()
    (run.folder.path / "map.png").unlink()
    narrow = [question for question in exam_questions if question.exam.year == 2015][:4]
    again = score_cell(run.folder, made_up_exams(narrow, answer_key))
    (second,) = track([again], tracking_uri=uri)
    stored = client.get_run(second.mlflow_run_id)
    assert stored.data.metrics["selected"] == 4
    assert "accuracy.medicine" not in stored.data.metrics
    assert [name for name in stored.data.metrics if name.startswith("accuracy.2")] == ["accuracy.2015"]
    assert [json.loads(each.dataset.profile)["num_rows"] for each in stored.inputs.dataset_inputs] == [4]
    assert "map.png" not in {artifact.path for artifact in client.list_artifacts(second.mlflow_run_id)}
    assert not files.exists()
    assert {run.info.run_id for run in _all_runs(client)} == {second.mlflow_run_id, second.parent_run_id}


def test_a_copy_that_was_cut_off_is_sent_again(make_run, uri, client, monkeypatch) -> None:
    run = make_run(ZERO_SHOT, "rw")

    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("mlflow.MlflowClient.log_artifact", fail)
    with pytest.raises(TrackingError, match="no space left"):
        track([run], tracking_uri=uri)
    monkeypatch.undo()
    (tracked,) = track([run], tracking_uri=uri)
    assert {run.info.run_id for run in _all_runs(client)} == {tracked.mlflow_run_id, tracked.parent_run_id}
    assert client.list_artifacts(tracked.mlflow_run_id)


def test_what_a_store_holds_already_is_known_without_mlflow(make_run, uri, client, monkeypatch) -> None:
    runs = [make_run(ZERO_SHOT, "rw"), make_run(GUIDED, "rw")]
    first = track(runs, tracking_uri=uri, only_new=True)
    monkeypatch.setattr("medexam.experiments.track.runs.open_store", None)
    assert track(runs, tracking_uri=uri, only_new=True) == first
    for other in ([runs[0]], [dataclasses.replace(runs[0], note="other"), make_run(GUIDED, "rr", run_id="other")]):
        with pytest.raises(TypeError):
            track(other, tracking_uri=uri, only_new=True)
    with pytest.raises(TypeError):
        track(runs, tracking_uri=uri, only_new=True, page=True)
    monkeypatch.undo()
    client.delete_run(first[1].mlflow_run_id)
    again = track(runs, tracking_uri=uri, only_new=True)
    assert again[0] == first[0]
    assert client.get_run(again[1].mlflow_run_id).info.lifecycle_stage == "active"


def test_an_experiment_that_was_cut_off_is_not_known(make_run, uri, client, monkeypatch) -> None:
    runs = [make_run(ZERO_SHOT, "rw")]
    monkeypatch.setattr("medexam.experiments.track.runs.put_view", None)
    with pytest.raises(TrackingError):
        track(runs, tracking_uri=uri, only_new=True)
    monkeypatch.undo()
    track(runs, tracking_uri=uri, only_new=True)
    (experiment,) = [each for each in client.search_experiments() if each.name == "demo"]
    assert "mlflow.sharedViewState.medexam" in experiment.tags


def test_an_experiment_says_what_its_runs_found(make_run, uri, client) -> None:
    whole, other = make_run(ZERO_SHOT, "rrrw"), make_run(GUIDED, "rwww")
    tracked = track([other, whole], tracking_uri=uri)

    def note() -> str:
        (experiment,) = [each for each in client.search_experiments() if each.name == "demo"]
        return experiment.tags["mlflow.note.content"]

    described = note()
    assert "75.0 %" in described
    assert "medexam report" in described
    assert described.index("| zero_shot |") < described.index("| zero_shot-guided |"), "the best first"
    assert f"![charts/accuracy.svg](get-artifact?run_uuid={tracked[0].parent_run_id}&path=charts/accuracy.svg)" in (
        described
    )
    track([other], tracking_uri=uri)
    assert note() == described, "one run of several says nothing of all"


def test_runs_that_an_earlier_version_nested_lie_flat_once_they_are_sent_again(make_run, uri, client) -> None:
    runs = [make_run(ZERO_SHOT, "rw"), make_run(GUIDED, "rw")]
    first = track(runs, tracking_uri=uri)
    for tracked in first:
        client.delete_tag(tracked.mlflow_run_id, "medexam.overview")
        client.set_tag(tracked.mlflow_run_id, "medexam.sent", "an earlier version")
        client.set_tag(tracked.mlflow_run_id, "mlflow.parentRunId", tracked.parent_run_id)
    (one,) = track(runs[:1], tracking_uri=uri)
    assert client.get_run(one.parent_run_id).info.lifecycle_stage == "active", "another run lies below it"
    track(runs, tracking_uri=uri)
    assert not any("mlflow.parentRunId" in run.data.tags for run in _all_runs(client))
    assert len(_all_runs(client)) == 3


def test_charts_show_names_of_others_as_text(make_run) -> None:
    run = make_run(ZERO_SHOT, "rrwu")
    hostile = dataclasses.replace(run, record=dataclasses.replace(run.record, run_id="x"))
    charts = render_charts([hostile, run], "accuracy")
    for chart in charts.values():
        ElementTree.fromstring(chart)
    assert "50.0" in charts["accuracy.svg"]
    assert "2013" in charts["accuracy_by_year.svg"]
    assert "biology" in charts["accuracy_by_discipline.svg"]


def test_a_parent_tells_how_all_its_runs_ended(make_run, uri, client) -> None:
    whole, killed = make_run(ZERO_SHOT, "r"), make_run(GUIDED, "rm")
    (one,) = track([killed], tracking_uri=uri)
    assert client.get_run(one.mlflow_run_id).info.status == "KILLED"
    track([whole], tracking_uri=uri)
    assert client.get_run(one.parent_run_id).info.status == "KILLED", "questions of one of its runs are pending"
    moved = [
        dataclasses.replace(run, record=dataclasses.replace(run.record, experiment_digest="f" * 12))
        for run in (whole, killed)
    ]
    (other, _) = track(moved, tracking_uri=uri)
    assert {run.info.run_id for run in _all_runs(client)} >= {other.parent_run_id}
    assert len(_all_runs(client)) == 3, "a parent whose runs went to another one is gone"


def test_two_that_send_at_once_send_once(make_run, uri, client) -> None:
    run, seldom = make_run(ZERO_SHOT, "r"), gc.get_threshold()
    with ThreadPoolExecutor(4) as threads:
        sent = list(threads.map(lambda _: track([run], tracking_uri=uri)[0], range(4)))
    gc.set_threshold(*seldom)  # each thread set it, and set back what it had found
    assert len(set(sent)) == 1
    assert len(_all_runs(client)) == 2, "the run and its experiment's"


def test_the_same_run_id_on_another_machine_is_another_run(make_run, uri, client) -> None:
    run = make_run(ZERO_SHOT, "r")
    elsewhere = dataclasses.replace(run, environment={**run.environment, "started_at": "2026-11-21T08:00:00+00:00"})
    first, second = track([run, elsewhere], tracking_uri=uri)
    assert first.mlflow_run_id != second.mlflow_run_id
    assert first.parent_run_id == second.parent_run_id


def test_runs_of_two_experiments_get_two_parents(make_run, uri) -> None:
    runs = [
        make_run(ZERO_SHOT, "r"),
        make_run(ZERO_SHOT, "r", name="other", experiment="f" * 12),
        make_run(GUIDED, "w"),
    ]
    tracked = track(runs, tracking_uri=uri)
    assert [t.run_id for t in tracked] == [run.record.run_id for run in runs]
    assert tracked[0].parent_run_id == tracked[2].parent_run_id != tracked[1].parent_run_id
    assert tracked[0].experiment_id != tracked[1].experiment_id


def test_no_key_of_a_provider_is_sent(make_run, uri, client, monkeypatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret-123")
    model = {"engine": "litellm", "name": "openai/gpt-x", "api_key_env": "MY_KEY"}
    (tracked,) = track([make_run(ZERO_SHOT, "r", model=model)], tracking_uri=uri)
    assert "sk-secret-123" not in str(client.get_run(tracked.mlflow_run_id).to_dictionary())


def test_long_values_are_cut_to_mlflows_limits(make_run) -> None:
    run = make_run({"kind": "entailment", "reader": "r" * 7000}, "r", run_id="long")
    assert len(run_params(run)["program.reader"]) == 6000


def test_a_new_store_is_made_in_silence(make_run, tmp_path, capfd) -> None:
    logging.getLogger("mlflow").setLevel(logging.INFO)
    (tracked,) = track([make_run(ZERO_SHOT, "r")], tracking_uri=f"sqlite:///{tmp_path / 'new' / 'mlflow.db'}")
    assert tracked.mlflow_run_id
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger("mlflow").level == logging.INFO
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"


def test_no_runs_need_no_store() -> None:
    assert track([], tracking_uri="http://127.0.0.1:9") == []


def test_a_server_that_does_not_answer_is_one_clear_line(make_run, monkeypatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    run = make_run(ZERO_SHOT, "r")
    # Bound and not listening: nobody else can answer there meanwhile.
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        with pytest.raises(TrackingError, match="complete on disk; send it later with `medexam track RUN`") as caught:
            track([run], tracking_uri=f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert "\n" not in str(caught.value)
    assert load_run(run.folder) == run


@pytest.mark.parametrize("what", ["folder", "text", "unwritable"])
def test_a_file_that_is_no_store_is_refused_at_once(make_run, tmp_path, what) -> None:
    run = make_run(ZERO_SHOT, "r")
    path = tmp_path / "mlflow.db"
    if what == "folder":
        path.mkdir()
    elif what == "text":
        path.write_text("not a database, but longer than the header of one " * 40)
    else:
        (tmp_path / "file").write_text("")
        path = tmp_path / "file" / "mlflow.db"
    with pytest.raises(TrackingError, match="send it later"):
        track([run], tracking_uri=f"sqlite:///{path}")


def test_a_store_that_knows_no_such_scheme_is_refused(make_run) -> None:
    with pytest.raises(TrackingError, match="send it later"):
        track([make_run(ZERO_SHOT, "r")], tracking_uri="nonsense://x")


def test_an_experiment_deleted_in_the_store_is_named(make_run, uri, client) -> None:
    run = make_run(ZERO_SHOT, "r")
    (tracked,) = track([run], tracking_uri=uri)
    client.delete_experiment(tracked.experiment_id)
    with pytest.raises(TrackingError, match="mlflow experiments restore"):
        track([run], tracking_uri=uri)
