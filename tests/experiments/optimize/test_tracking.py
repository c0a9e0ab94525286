"""Optimizations in a real MLflow store, read back through MLflow's own client; the model is loaded and served."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

EXAMPLE = {"stem": "Which?", "options": ["This.", "That."]}


@pytest.fixture(autouse=True)
def _no_model_stays() -> Iterator[None]:
    """MLflow keeps the model that it loaded last in a variable of its module."""
    yield
    if (module := sys.modules.get("mlflow.models.model")) is not None:
        vars(module)["__mlflow_model__"] = None


@pytest.fixture
def track(medexam, runs_dir, uri, client):
    """`track(done)` -> MLflow's id of the optimization's run."""

    def send(done) -> str:
        code, out, err = medexam("track", done.folder, "--tracking-uri", uri)
        assert code == 0, err
        return re.search(r"is MLflow run (\w+)", out)[1]

    return send


@pytest.fixture
def quick(finished):
    return finished("labeled")


def _trials(client):
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    return [run for run in client.search_runs(experiments) if run.info.run_name.startswith("trial ")]


def _curve(client, run_id, name):
    return sorted((point.step, point.value) for point in client.get_metric_history(run_id, name))


def _models(client):
    return client.search_logged_models([experiment.experiment_id for experiment in client.search_experiments()])


def _place(model) -> Path:
    return Path(model.artifact_location.removeprefix("file://"))


def test_an_optimization_is_a_parent_with_its_curve_and_a_child_for_each_trial(
    finished, track, client, tmp_path
) -> None:
    done = finished("random_search")
    parent = client.get_run(track(done))
    assert (parent.info.status, parent.data.params["optimizer.kind"]) == ("FINISHED", "random_search")
    assert "as written" in parent.data.tags["mlflow.note.content"]
    sums = {"trials": 4, **done.record["spent"], "best_score": done.best["score"]}
    assert sums.items() <= parent.data.metrics.items()
    scores = [trial["score"] for trial in done.trials]
    assert _curve(client, parent.info.run_id, "score") == list(enumerate(scores))
    assert _curve(client, parent.info.run_id, "best_so_far") == [(at, max(scores[: at + 1])) for at in range(4)]
    files = {file.path for file in client.list_artifacts(parent.info.run_id)}
    made = {path.name for path in done.folder.iterdir() if path.is_file() and not path.name.startswith(".")}
    assert files == (made - {"calls.jsonl"}) | {"predictions.jsonl"}
    copy = client.download_artifacts(parent.info.run_id, "predictions.jsonl", str(tmp_path))
    assert Path(copy).read_bytes() == (done.place(done.best["number"]) / "predictions.jsonl").read_bytes()
    children = {child.data.params["digest"]: child for child in _trials(client)}
    assert len(children) == len(_trials(client)) == 4
    for trial in done.trials:
        child = children[trial["digest"]]
        assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert child.info.run_name == f"trial {trial['number']} · {trial['name']}"
        assert child.data.params["demos"] == str(trial["demos"])
        wanted = {name: trial[name] for name in ("score", "accuracy", "n", "calls")}
        assert wanted.items() <= child.data.metrics.items()
        assert {file.path for file in client.list_artifacts(child.info.run_id)} == {"program.json", "predictions.jsonl"}
        (given,) = child.inputs.dataset_inputs
        assert given.dataset.name == "headqa_sample-en-validation"


def test_sending_twice_changes_nothing_and_one_that_goes_on_is_updated(optimize, track, client) -> None:
    early = optimize({"optimizer.max_tokens": 6_000})
    run_id = track(early)
    assert "budget" in client.get_run(run_id).data.tags.values()
    assert len(_trials(client)) == len(early.trials) < 4
    done = optimize()
    assert track(done) == run_id
    before = client.get_run(run_id).to_dictionary()
    assert before["info"]["status"] == "FINISHED"
    assert track(done) == run_id
    assert client.get_run(run_id).to_dictionary() == before
    assert _curve(client, run_id, "score") == [(trial["number"], trial["score"]) for trial in done.trials]
    assert (len(_trials(client)), len(_curve(client, run_id, "best_so_far"))) == (4, 4)
    assert len({model.model_id for model in _models(client)}) == 1


def test_the_words_are_versions_of_a_prompt(quick, track, client) -> None:
    run_id = track(quick)

    def linked() -> list[dict]:
        return json.loads(client.get_run(run_id).data.tags["mlflow.linkedPrompts"])

    (prompt,) = client.search_prompts()
    assert prompt.name == "scripted-zero_shot-en"
    version = client.get_prompt_version(prompt.name, 1)
    assert (version.template[0]["role"], version.template[-1]) == (
        "system",
        {"role": "user", "content": "{{question}}"},
    )
    assert linked() == [{"name": prompt.name, "version": "1"}]
    path = quick.folder / "program.json"
    written = path.read_text()
    state = json.loads(written)
    state["respond"]["signature"]["instructions"] = "Choose. Write {Answer: n}."
    path.write_text(json.dumps(state))
    assert track(quick) == run_id
    assert client.get_prompt_version(prompt.name, 2).template[1]["content"] == "Choose. Write {Answer: n}."
    assert linked()[0]["version"] == "2"
    path.write_text(written)
    track(quick)
    assert len(client.search_prompt_versions(prompt.name)) == 2
    assert linked()[0]["version"] == "1"


def _asked(done, sample):
    """Some questions of the best trial with what was said, and the same as rows."""
    questions = {question.key: question for question in sample.questions}
    found = sorted(done.predictions(done.best["number"]), key=lambda line: line["question"])[:8]
    asked = [questions[one["question"]] for one in found]
    rows = [{"stem": one.stem, "options": [option.text for option in one.options]} for one in asked]
    return [(one["answer"], one["reply"]) for one in found], pd.DataFrame(rows)


def _load(model):
    import mlflow.pyfunc

    return mlflow.pyfunc.load_model(str(_place(model)))


def test_the_model_is_whole_holds_no_pickle_and_answers_as_the_trial_did(quick, track, client, sample) -> None:
    from mlflow.exceptions import MlflowException

    run_id = track(quick)
    (model,) = _models(client)
    assert (model.name, model.status, model.source_run_id) == ("scripted-zero_shot-en", "READY", run_id)
    assert {metric.key: metric.value for metric in model.metrics}["validation_score"] == quick.best["score"]
    files = [path for path in _place(model).rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {"", ".py", ".json", ".yaml", ".txt"}
    loaded = _load(model)
    assert [column.name for column in loaded.metadata.signature.inputs] == ["stem", "options", "discipline"]
    said, rows = _asked(quick, sample)
    assert [(one["answer"], one["reply"]) for one in loaded.predict(rows)] == said
    with pytest.raises(MlflowException, match=r"row 0 is not a question: .*two options"):
        loaded.predict(pd.DataFrame([{"stem": "Which?", "options": ["the only one"]}]))


def test_words_of_ones_own_travel_with_the_model(optimize, track, client, tmp_path) -> None:
    words = tmp_path / "words.yaml"
    words.write_text("en: {zero_shot: 'Choose. $form'}")
    track(optimize({"optimizer.kind": "labeled", "program.prompt": str(words)}))
    words.unlink()
    (model,) = _models(client)
    assert (_place(model) / "artifacts" / "words.yaml").exists()
    assert _load(model).predict(pd.DataFrame([EXAMPLE]))[0]["answer"] == 1


@pytest.mark.model
@pytest.mark.nightly
def test_a_model_of_this_process_answers_as_the_trial_did(optimize, track, client, tiny_llama, sample) -> None:
    spec = {
        "name": "served",
        "dataset": {"name": "headqa_sample", "split": "test"},
        "model": {"engine": "embedded", "path": str(tiny_llama), "dtype": "float32"},
        "program": {"kind": "zero_shot", "answer_format": "guided"},
        "optimizer": {"kind": "labeled", "demos": 1, "validation": {"split": "dev", "limit": 3}},
    }
    done = optimize(spec=spec)
    track(done)
    (model,) = _models(client)
    said, rows = _asked(done, sample)
    assert [(one["answer"], one["reply"]) for one in _load(model).predict(rows)] == said
