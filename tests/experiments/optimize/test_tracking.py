"""Optimizations in a real MLflow store, read back through MLflow's own client."""

import re

import pytest

import medexam as package


@pytest.fixture
def track(medexam, runs_dir, uri, client):
    """`track(done)` -> MLflow's run of the optimization."""

    def send(done):
        code, out, err = medexam("track", done.folder, "--tracking-uri", uri)
        assert code == 0, err
        return client.get_run(re.search(r"is MLflow run (\w+)", out)[1])

    return send


def _curve(client, run):
    return sorted((point.step, point.value) for point in client.get_metric_history(run.info.run_id, "score"))


def test_an_optimization_is_one_run_with_its_curve_and_a_program_that_loads(
    finished, document, track, client, tmp_path
) -> None:
    done = finished("random_search")
    run = track(done)
    assert (run.info.status, run.data.params["optimizer.kind"]) == ("FINISHED", "random_search")
    assert "as written" in run.data.tags["mlflow.note.content"]
    sums = {
        "trials": 4,
        "calls": done.record["calls"],
        "tokens": done.record["tokens"],
        "validation_accuracy": done.best["right"] / done.best["n"],
    }
    assert sums.items() <= run.data.metrics.items()
    assert _curve(client, run) == [(trial["number"], trial["score"]) for trial in done.trials]
    files = {file.path for file in client.list_artifacts(run.info.run_id)}
    made = {path.name for path in done.folder.iterdir() if path.is_file() and not path.name.startswith(".")}
    assert files == made
    traces = client.search_traces(locations=[run.info.experiment_id], run_id=run.info.run_id)
    asked = {trace.info.tags["medexam" + ".question"] for trace in traces}
    assert asked <= {one["question"] for one in done.predictions(done.best["number"])}
    assert run.data.tags["mlflow.linkedPrompts"] == '[{"name": "zero_shot-en", "version": "1"}]'
    program = client.download_artifacts(run.info.run_id, "program.json", str(tmp_path))
    settings = {"program__load": program, "runs_dir": tmp_path / "loaded", "limit": 2, "track": False}
    (loaded,) = package.run({**document, "name": "loaded"}, progress=False, **settings)
    assert loaded.complete


def test_one_that_ends_early_is_killed_and_replaced_once_it_goes_on(optimize, track, client) -> None:
    early = optimize({"optimizer.max_tokens": 6_000})
    run = track(early)
    assert "budget" in run.data.tags.values()
    assert len(early.trials) < 4
    record = (early.folder / "optimization.json").read_text()
    (early.folder / "optimization.json").write_text(record.replace('"ending": "budget"', '"ending": "interrupted"'))
    assert track(early).info.status == "KILLED"
    (early.folder / "optimization.json").write_text(record)
    done = optimize()
    sent = track(done)
    assert track(done).to_dictionary() == sent.to_dictionary()
    assert (sent.info.status, len(_curve(client, sent))) == ("FINISHED", 4)
    assert [each.info.run_id for each in client.search_runs([sent.info.experiment_id])] == [sent.info.run_id]


def test_new_words_are_another_version_of_the_prompt(optimize, track, client, tmp_path) -> None:
    words = tmp_path / "words.yaml"
    versions = []
    for text in ("Choose. $form", "Choose well. $form"):
        words.write_text(f"en: {{zero_shot: '{text}'}}")
        run = track(optimize({"optimizer.kind": "labeled", "program.prompt": str(words)}))
        versions.append(run.data.tags["mlflow.linkedPrompts"])
    assert versions == [f'[{{"name": "zero_shot-words-en", "version": "{number}"}}]' for number in (1, 2)]
