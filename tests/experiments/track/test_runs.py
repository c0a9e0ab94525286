"""What MLflow holds of stored runs, and that it holds it once."""

import json
import shutil
from functools import partial
from pathlib import Path

import dspy
import pytest
from dspy.utils.dummies import DummyLM
from wire_server import Wire, serving

import medexam as package

ZERO_SHOT, GUIDED = {"kind": "zero_shot"}, {"kind": "zero_shot", "answer_format": "guided"}
EMBEDDED = {"engine": "embedded", "device": "cpu"}


def test_an_experiment_opens_with_its_finding_and_a_view_of_its_runs_by_accuracy(make_run, track, client) -> None:
    sent = track(make_run(ZERO_SHOT, "rw", model=EMBEDDED), make_run({"kind": "longest"}, "rww"))
    assert [client.get_run(each).info.run_name for each in sent.values()] == ["zero_shot", "longest"]
    (experiment,) = [each for each in client.search_experiments() if each.name == "demo"]
    note = experiment.tags["mlflow.note.content"]
    assert 0 < note.index("medexam report") < note.index("| zero_shot |") < note.index("| longest |"), "the best first"
    view = json.loads(experiment.tags["mlflow.sharedViewState.medexam"])
    assert view["selectedColumns"][:3] == [f"metrics.`accuracy{end}`" for end in ("", "_low", "_high")]
    assert (view["orderByKey"], view["orderByAsc"]) == ("metrics.`accuracy`", False)
    track(make_run(ZERO_SHOT, "rw", model=EMBEDDED))
    assert client.get_experiment(experiment.experiment_id).tags["mlflow.note.content"] == note, "of one run of two"


def test_a_run_holds_parameters_metrics_tags_inputs_and_its_folder(make_run, track, client, tmp_path) -> None:
    run = make_run(GUIDED, "rrwuo", model=EMBEDDED, environment={"asked_s": 42.5})
    metrics = json.loads((run / "metrics.json").read_text())
    stored = client.get_run(track(run)[run.name])
    assert stored.info.run_name == "zero_shot-guided · SmolLM2-135M-Instruct · headqa_v1 en"
    expected = {
        "program.kind": "zero_shot",
        "program.answer_format": "guided",
        "program": "zero_shot-guided",
        "dataset.language": "en",
        "dataset.version": "1.0",
        "dataset": "headqa_v1",
        "model": "SmolLM2-135M-Instruct",
    }
    assert {name: stored.data.params.get(name) for name in expected} == expected
    low, high = metrics["measures"]["accuracy"]["interval"]
    expected = {
        "accuracy": metrics["measures"]["accuracy"]["value"],
        "accuracy_low": low,
        "accuracy_high": high,
        "n": 20,
        "failed": 0,
        "exam_score": metrics["measures"]["exam_score"]["value"],
        "selected": 20,
        "unanswered": 4,
        "accuracy.biology": metrics["by"]["discipline"]["biology"]["measures"]["accuracy"]["value"],
        "accuracy.2013": metrics["by"]["year"]["2013"]["measures"]["accuracy"]["value"],
        "accuracy.options_4": metrics["by"]["option_count"]["4"]["measures"]["accuracy"]["value"],
    }
    assert {name: stored.data.metrics.get(name) for name in expected} == expected
    assert next(iter(stored.data.metrics)) == "accuracy", "by which MLflow compares runs at first"
    tags = {name.removeprefix("medexam" + "."): value for name, value in stored.data.tags.items()}
    record = json.loads((run / "spec.json").read_text())
    assert (stored.info.status, tags["spec_digest"]) == ("FINISHED", record["spec_digest"])
    assert tags["mlflow.source.git.commit"] == "c0ffee"
    assert "40.0 [" in tags["mlflow.note.content"]
    assert stored.info.end_time - stored.info.start_time == 42_500, "the time that it asked"
    (given,) = stored.inputs.dataset_inputs
    assert (given.dataset.name, json.loads(given.dataset.profile)["num_rows"]) == ("headqa_v1-en", 20)
    names = {artifact.path for artifact in client.list_artifacts(stored.info.run_id)}
    assert names == {path.name for path in run.iterdir() if not path.name.startswith(".")}
    copy = client.download_artifacts(stored.info.run_id, "predictions.jsonl", str(tmp_path))
    assert Path(copy).read_bytes() == (run / "predictions.jsonl").read_bytes()


def test_tracking_twice_changes_nothing(make_run, track, client, all_runs) -> None:
    runs = [make_run(ZERO_SHOT, "rw", run_id="a` = '\"%x"), make_run(GUIDED, "rw")]
    first = track(*runs)
    before = [client.get_run(each).to_dictionary() for each in first.values()]
    assert track(*runs) == first
    assert [client.get_run(each).to_dictionary() for each in first.values()] == before
    assert len(all_runs()) == 2


def test_an_incomplete_run_is_replaced_once_it_is_continued_and_nothing_of_it_stays(
    make_run, track, client, all_runs
) -> None:
    run = make_run(ZERO_SHOT, "rrwuo")
    log = run / "predictions.jsonl"
    whole = log.read_bytes().splitlines(keepends=True)
    (run / "map.png").write_bytes(b"a picture")
    log.write_bytes(b"".join(line for line in whole if b"/biology/" in line))
    (run / "metrics.json").unlink()
    (first,) = track(run).values()
    stored = client.get_run(first)
    assert (stored.info.status, stored.data.metrics["n"], stored.data.metrics["missing"]) == ("KILLED", 10, 10)
    assert "map.png" in {artifact.path for artifact in client.list_artifacts(first)}
    (run / "map.png").unlink()
    log.write_bytes(b"".join(whole))
    (run / "metrics.json").unlink()
    (second,) = track(run).values()
    stored = client.get_run(second)
    assert (stored.info.status, stored.data.metrics["n"]) == ("FINISHED", 20)
    assert "map.png" not in {artifact.path for artifact in client.list_artifacts(second)}
    assert [each.info.run_id for each in all_runs()] == [second]


def test_a_run_with_failed_questions_has_failed(make_run, track, client) -> None:
    failed, whole = make_run(ZERO_SHOT, "rrf"), make_run(GUIDED, "r")
    sent = {name: client.get_run(each) for name, each in track(failed, whole).items()}
    assert [run.info.status for run in sent.values()] == ["FAILED", "FINISHED"]
    assert (sent[failed.name].data.metrics["failed"], sent[failed.name].data.metrics["accuracy"]) == (6, 1.0)


@pytest.mark.usefixtures("tracked")
def test_a_run_whose_server_is_away_has_failed_and_says_why(medexam, runs_dir, uri, all_runs, tmp_path) -> None:
    (tmp_path / "spec.yaml").write_text(
        "name: away\ndataset: {name: headqa_sample}\nprogram: zero_shot\n"
        "model: {engine: vllm, name: tiny, endpoints: ['http://127.0.0.1:9/v1']}\n"
    )
    for _ in range(2):
        assert medexam("run", "spec.yaml", "--runs-dir", runs_dir, "--tracking-uri", uri)[0] == 2
    (run,) = all_runs()
    assert (run.info.status, "no server answers" in run.data.tags["mlflow.note.content"]) == ("FAILED", True)
    with serving(Wire()) as wire:
        settings = ("--set", f"model.endpoints=['{wire.address}']", "--limit", 4)
        assert medexam("run", "spec.yaml", *settings, "--runs-dir", runs_dir, "--tracking-uri", uri)[0] == 0
    (run,) = all_runs()
    assert run.info.status == "FINISHED", "the attempt is gone"


def test_a_copy_that_was_cut_off_is_sent_again(make_run, medexam, track, client, all_runs, uri, monkeypatch) -> None:
    run = make_run(ZERO_SHOT, "rw")

    def fail(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr("mlflow.MlflowClient.log_artifact", fail)
        code, _, err = medexam("track", run, "--tracking-uri", uri)
    assert (code, "no space left" in err) == (2, True)
    assert [each.info.status for each in all_runs()] == ["FINISHED"], "not running"
    (sent,) = track(run).values()
    assert [each.info.run_id for each in all_runs()] == [sent]
    assert client.list_artifacts(sent)


def test_runs_are_told_apart_by_where_they_began_and_by_their_experiments(make_run, track, client, tmp_path) -> None:
    run = make_run(ZERO_SHOT, "r")
    elsewhere = shutil.copytree(run, tmp_path / "elsewhere" / run.name)
    environment = json.loads((run / "environment.json").read_text())
    (elsewhere / "environment.json").write_text(json.dumps(environment | {"started_at": "2026-11-21T08:00:00+00:00"}))
    (first,), (second,) = track(run).values(), track(elsewhere).values()
    other = track(make_run(ZERO_SHOT, "r", name="other", run_id="third"))["third"]
    assert first != second
    assert client.get_run(first).info.lifecycle_stage == "active", "the second replaced nothing"
    assert client.get_run(first).info.experiment_id != client.get_run(other).info.experiment_id


NAMES = ["recall@5", "recall_5", "F1 (exact)", "50%", "predictors[0].demos", "../up", "a//b", "..", "é", "x" * 300]


def test_whatever_a_metric_is_called_its_value_is_in_mlflow_under_a_name_of_its_own(track, client, tmp_path) -> None:
    values = {name: place / 10 for place, name in enumerate(NAMES)}
    (tmp_path / "mine.py").write_text(f"def own(question, gold, prediction):\n    return {values!r}\n")
    spec = {"name": "names", "dataset": {"name": "headqa_sample", "limit": 5}, "program": "longest"}
    spec["metrics"] = [f"{tmp_path / 'mine.py'}:own"]
    (run,) = package.run(spec, runs_dir=tmp_path / "runs", track=False, progress=False)
    (sent,) = track(run.folder).values()
    found = {name: value for name, value in client.get_run(sent).data.metrics.items() if name.startswith("own.own")}
    assert set(values.values()) <= set(found.values())
    assert found["own.own.recall_5"] == values["recall_5"]


def test_no_key_of_a_provider_is_sent(make_run, track, client, monkeypatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret-123")
    model = {"engine": "litellm", "name": "openai/gpt-x", "api_key_env": "MY_KEY"}
    (sent,) = track(make_run(ZERO_SHOT, "r", model=model)).values()
    assert "sk-secret-123" not in str(client.get_run(sent).to_dictionary())


def test_a_run_is_sent_as_it_ends_and_once_and_the_process_keeps_its_own_store(
    all_runs, client, uri, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:////elsewhere.db")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "mine")
    spec = {"name": "sent", "dataset": "headqa_sample", "program": "longest"}
    run = partial(package.run, spec, limit=5, runs_dir=tmp_path / "runs", track=uri, progress=False)
    run()
    store = Path(uri[10:])
    ended = store.stat().st_mtime_ns
    run()
    assert store.stat().st_mtime_ns == ended
    client.delete_run(all_runs()[0].info.run_id)
    run()
    (_,) = all_runs()
    import mlflow

    assert mlflow.get_tracking_uri() == "sqlite:////elsewhere.db"


def test_an_evaluation_is_sent_with_its_calls_unless_track_is_false(
    all_runs, client, uri, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    devset = [dspy.Example(question=f"Is it {number}?").with_inputs("question") for number in range(3)]
    with dspy.context(lm=DummyLM([{"answer": "yes"}] * 6)):
        for name, settings in (("sent", {}), ("kept", {"track": False})):
            evaluate = package.Evaluate(devset=devset, metric=lambda *_: 1.0, name=name, runs_dir=tmp_path, **settings)
            evaluate(dspy.Predict("question -> answer"))
    (run,) = all_runs()
    assert run.data.params["program"].startswith("Predict")
    found = client.search_traces(locations=[run.info.experiment_id], run_id=run.info.run_id)
    assert {len(trace.data.spans) for trace in found} == {2}
    assert len(found) == 3


def test_the_store_is_that_of_mlflows_variable_or_the_runs_own(make_run, medexam, runs_dir, monkeypatch) -> None:
    run = make_run(ZERO_SHOT, "r")
    assert "medexam ui --runs-dir runs" in medexam("track", run)[2]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{runs_dir}/other.db")
    assert f"--tracking-uri sqlite:///{runs_dir}/other.db" in medexam("track", run)[2]


@pytest.mark.usefixtures("tracked")
def test_of_two_runs_the_first_is_there_when_the_others_server_is_away(
    medexam, runs_dir, uri, all_runs, tmp_path
) -> None:
    (tmp_path / "replies.yaml").write_text("'*': '{Answer: 1}'\n")
    (tmp_path / "spec.yaml").write_text(
        "name: two\ndataset: {name: headqa_sample, limit: 4}\nprogram: zero_shot\n"
        "matrix:\n  model:\n    - {engine: scripted, path: replies.yaml}\n"
        "    - {engine: vllm, name: tiny, endpoints: ['http://127.0.0.1:9/v1']}\n"
    )
    code, _, err = medexam("run", "spec.yaml", "--runs-dir", runs_dir, "--tracking-uri", uri)
    assert (code, "no server answers" in err) == (2, True)
    assert sorted(run.info.status for run in all_runs()) == ["FAILED", "FINISHED"]
