"""What MLflow holds of stored runs, and that it holds it once."""

import json
import shutil
from pathlib import Path

import medexam as package

ZERO_SHOT, GUIDED = {"kind": "zero_shot"}, {"kind": "zero_shot", "answer_format": "guided"}
EMBEDDED = {"engine": "embedded", "device": "cpu"}


def test_the_runs_of_an_experiment_lie_beside_its_page_and_charts(make_run, track, client, all_runs, tmp_path) -> None:
    runs = [make_run(ZERO_SHOT, "rw", model=EMBEDDED), make_run({"kind": "longest"}, "rww")]
    sent = track(*runs)
    assert list(sent) == [run.name for run in runs]
    children = [client.get_run(each) for each in sent.values()]
    (overview,) = {child.data.tags["medexam" + ".overview"] for child in children}
    parent = client.get_run(overview)
    assert (parent.info.status, len(all_runs())) == ("FINISHED", 3)
    assert children[0].info.run_name == "zero_shot · SmolLM2-135M-Instruct · headqa_v1 en"
    assert not any("mlflow.parentRunId" in child.data.tags for child in children)
    assert {path.path for path in client.list_artifacts(overview, "charts")} == {
        f"charts/{name}.svg" for name in ("accuracy", "accuracy_by_year", "accuracy_by_discipline")
    }
    page = Path(client.download_artifacts(overview, "report.html", str(tmp_path))).read_text(encoding="utf-8")
    assert "longest" in page
    (experiment,) = [each for each in client.search_experiments() if each.name == "demo"]
    note = experiment.tags["mlflow.note.content"]
    assert "medexam report" in note
    assert note.index("| zero_shot |") < note.index("| longest |"), "the best first"
    track(runs[0])
    assert client.get_experiment(experiment.experiment_id).tags["mlflow.note.content"] == note, "of one run of two"


def test_a_run_holds_parameters_metrics_tags_inputs_and_its_folder(make_run, track, client, tmp_path) -> None:
    run = make_run(GUIDED, "rrwuo", model=EMBEDDED, environment={"asked_s": 42.5})
    metrics = json.loads((run / "metrics.json").read_text())
    stored = client.get_run(track(run)[run.name])
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
    low, high = metrics["accuracy_interval"]
    expected = {
        "accuracy": metrics["accuracy"],
        "accuracy_low": low,
        "accuracy_high": high,
        "n": 20,
        "failed": 0,
        "exam_score": metrics["exam_score"],
        "prompt_tokens": 1800,
        "selected": 20,
        "unanswered": 4,
        "accuracy.biology": metrics["by_discipline"]["biology"]["accuracy"],
        "accuracy.2013": metrics["by_year"]["2013"]["accuracy"],
        "accuracy.options_4": metrics["by_option_count"]["4"]["accuracy"],
    }
    assert {name: stored.data.metrics.get(name) for name in expected} == expected
    tags = {name.removeprefix("medexam" + "."): value for name, value in stored.data.tags.items()}
    record = json.loads((run / "spec.json").read_text())
    assert (tags["kind"], tags["status"], tags["spec_digest"]) == ("run", "complete", record["spec_digest"])
    assert tags["mlflow.source.git.commit"] == "c0ffee"
    assert "40.0 [" in tags["mlflow.note.content"]
    assert stored.info.end_time - stored.info.start_time == 42_500, "the time that it asked"
    (given,) = stored.inputs.dataset_inputs
    assert (given.dataset.name, json.loads(given.dataset.profile)["num_rows"]) == ("headqa_v1-en", 20)
    assert {tag.key: tag.value for tag in given.tags} == {"mlflow.data.context": "evaluation"}
    names = {artifact.path for artifact in client.list_artifacts(stored.info.run_id)}
    assert names == {path.name for path in run.iterdir() if not path.name.startswith(".")}
    copy = client.download_artifacts(stored.info.run_id, "predictions.jsonl", str(tmp_path))
    assert Path(copy).read_bytes() == (run / "predictions.jsonl").read_bytes()


def test_tracking_twice_changes_nothing(make_run, track, client, all_runs) -> None:
    runs = [make_run(ZERO_SHOT, "rw", run_id="a` = '\"%x"), make_run(GUIDED, "rw")]
    first = track(*runs)
    before = [client.get_run(each).data.to_dictionary() for each in first.values()]
    assert track(*runs) == first
    assert [client.get_run(each).data.to_dictionary() for each in first.values()] == before
    one = first[runs[0].name]
    assert (len(client.get_metric_history(one, "accuracy")), len(client.get_run(one).inputs.dataset_inputs)) == (1, 1)
    assert len(all_runs()) == 3


def test_an_incomplete_run_is_replaced_once_it_is_continued_and_nothing_of_it_stays(
    make_run, track, client, all_runs
) -> None:
    run = make_run(ZERO_SHOT, "rrwuo")
    log = run / "predictions.jsonl"
    whole = log.read_bytes().splitlines(keepends=True)
    (run / "map.png").write_bytes(b"a picture")
    log.write_bytes(b"".join(line for line in whole if b"/biology/" in line))
    (first,) = track(run).values()
    stored = client.get_run(first)
    assert (stored.info.status, stored.data.metrics["n"]) == ("KILLED", 10)
    assert stored.data.metrics["accuracy.biology"] == stored.data.metrics["accuracy"] == 0.4
    assert stored.data.metrics["missing"] == 10
    files = Path(stored.info.artifact_uri.removeprefix("file://"))
    assert (files / "map.png").exists()
    (run / "map.png").unlink()
    log.write_bytes(b"".join(line for line in whole if b"/2015/" in line))
    (second,) = track(run).values()
    stored = client.get_run(second)
    assert [name for name in stored.data.metrics if name.startswith("accuracy.2")] == ["accuracy.2015"]
    assert "map.png" not in {artifact.path for artifact in client.list_artifacts(second)}
    assert not files.exists()
    log.write_bytes(b"".join(whole))
    (third,) = track(run).values()
    stored = client.get_run(third)
    overview = stored.data.tags["medexam" + ".overview"]
    assert stored.info.status == client.get_run(overview).info.status == "FINISHED"
    assert stored.data.metrics["n"] == 20
    assert {each.info.run_id for each in all_runs()} == {third, overview}


def test_a_run_with_failed_questions_has_failed_and_so_has_its_experiment(make_run, track, client) -> None:
    failed, whole = make_run(ZERO_SHOT, "rrf"), make_run(GUIDED, "r")
    sent = {name: client.get_run(each) for name, each in track(failed, whole).items()}
    assert [run.info.status for run in sent.values()] == ["FAILED", "FINISHED"]
    assert (sent[failed.name].data.metrics["failed"], sent[failed.name].data.metrics["accuracy"]) == (6, 1.0)
    assert client.get_run(sent[whole.name].data.tags["medexam" + ".overview"]).info.status == "FAILED"


def test_a_copy_that_was_cut_off_is_sent_again(make_run, medexam, track, client, all_runs, uri, monkeypatch) -> None:
    run = make_run(ZERO_SHOT, "rw")

    def fail(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr("mlflow.MlflowClient.log_artifact", fail)
        code, _, err = medexam("track", run, "--tracking-uri", uri)
    assert (code, "no space left" in err) == (2, True)
    (sent,) = track(run).values()
    assert {each.info.run_id for each in all_runs()} == {sent, client.get_run(sent).data.tags["medexam" + ".overview"]}
    assert client.list_artifacts(sent)


def test_runs_are_told_apart_by_where_they_began_and_by_their_experiments(make_run, track, client, tmp_path) -> None:
    run = make_run(ZERO_SHOT, "r")
    elsewhere = shutil.copytree(run, tmp_path / "elsewhere" / run.name)
    environment = json.loads((run / "environment.json").read_text())
    (elsewhere / "environment.json").write_text(json.dumps(environment | {"started_at": "2026-11-21T08:00:00+00:00"}))
    (first,), (second,) = track(run).values(), track(elsewhere).values()
    other = track(make_run(ZERO_SHOT, "r", name="other", run_id="third"))["third"]
    overviews = [client.get_run(each).data.tags["medexam" + ".overview"] for each in (first, second, other)]
    assert first != second
    assert client.get_run(first).info.lifecycle_stage == "active", "the second replaced nothing"
    assert overviews[0] == overviews[1] != overviews[2]
    assert client.get_run(first).info.experiment_id != client.get_run(other).info.experiment_id


NAMES = ["recall@5", "recall_5", "F1 (exact)", "50%", "predictors[0].demos", "../up", "a//b", "..", "é", "x" * 300]


def test_whatever_a_metric_is_called_its_value_is_in_mlflow_under_a_name_of_its_own(track, client, tmp_path) -> None:
    values = {name: place / 10 for place, name in enumerate(NAMES)}
    (tmp_path / "mine.py").write_text(f"def own(question, gold, prediction):\n    return {values!r}\n")
    spec = {"name": "names", "dataset": {"name": "headqa_sample", "limit": 5}, "program": "longest"}
    spec["metrics"] = [f"{tmp_path / 'mine.py'}:own"]
    (run,) = package.run(spec, runs_dir=tmp_path / "runs", track=False, progress=False)
    (sent,) = track(run.folder).values()
    data = client.get_run(sent).data
    original = {name.partition(".name.")[2]: value for name, value in data.tags.items() if ".name." in name}
    found = {original.get(name, name): value for name, value in data.metrics.items()}
    assert {name: found.get(f"own.own.{name}") for name in NAMES} == values
    assert data.metrics["own.own.recall_5"] == values["recall_5"]


def test_no_key_of_a_provider_is_sent(make_run, track, client, monkeypatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret-123")
    model = {"engine": "litellm", "name": "openai/gpt-x", "api_key_env": "MY_KEY"}
    (sent,) = track(make_run(ZERO_SHOT, "r", model=model)).values()
    assert "sk-secret-123" not in str(client.get_run(sent).to_dictionary())


def test_a_run_is_sent_as_it_ends_and_once(client, all_runs, uri, tmp_path) -> None:
    spec = {"name": "sent", "dataset": {"name": "headqa_sample", "limit": 5}, "program": "longest"}
    for _ in range(2):
        package.run(spec, runs_dir=tmp_path / "runs", track=uri, progress=False)
    assert len(all_runs()) == 2


def test_the_store_is_that_of_mlflows_variable_or_the_runs_own(
    make_run, medexam, runs_dir, empty_store, monkeypatch
) -> None:
    run = make_run(ZERO_SHOT, "r")
    shutil.copy(empty_store, runs_dir / "other.db")
    assert f"sent to sqlite:///{runs_dir}/mlflow.db" in medexam("track", run)[2]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{runs_dir}/other.db")
    assert f"sent to sqlite:///{runs_dir}/other.db" in medexam("track", run)[2]
