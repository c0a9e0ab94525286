"""Optimizations in a real MLflow store, read back through MLflow's own client; the model is loaded and served."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from fake_vllm import free_port

from medexam.datasets import load_exam_set
from medexam.errors import TrackingError
from medexam.experiments import RunFolder, Runner, default_tracking_uri, plan_experiment
from medexam.experiments.optimize.logged_model import EXAMPLE, unservable
from medexam.experiments.optimize.optimization import OptimizationEnding, load_optimization
from medexam.experiments.optimize.registered_prompts import prompt_templates, register_prompts
from medexam.experiments.optimize.tracking import best_so_far, track_optimization
from medexam.experiments.store.run_folder import PREDICTIONS
from medexam.experiments.track.traces import read_traces
from medexam.specs import CellSpec
from waiting import BACKSTOP_S, until
from watching import Silent, Trials


@pytest.fixture(autouse=True)
def _no_model_stays() -> Iterator[None]:
    """MLflow keeps the model that it loaded last in a variable of its module."""
    yield
    if (module := sys.modules.get("mlflow.models.model")) is not None:
        vars(module)["__mlflow_model__"] = None


@pytest.fixture
def done(finished):
    return finished("random_search")


@pytest.fixture
def quick(finished):
    return finished("labeled")


def _runs(client, kind):
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    return client.search_runs(experiments, filter_string=f"tags.`medexam.kind` = '{kind}'")


def _curve(client, run_id, name):
    return [(point.step, point.value) for point in client.get_metric_history(run_id, name)]


def _models(client):
    return client.search_logged_models([experiment.experiment_id for experiment in client.search_experiments()])


def _place(model) -> Path:
    return Path(model.artifact_location.removeprefix("file://"))


def test_an_optimization_is_a_parent_and_a_child_for_each_trial(done, uri, client) -> None:
    parent = client.get_run(track_optimization(done, tracking_uri=uri))
    assert parent.info.status == "FINISHED"
    assert parent.data.tags["medexam.optimization"] == done.folder.name
    assert parent.data.tags["medexam.status"] == "complete"
    assert "as written" in parent.data.tags["mlflow.note.content"]
    assert parent.data.params["optimizer.kind"] == "random_search"
    assert parent.data.params["program.kind"] == "zero_shot"
    assert not any(key.startswith("words") for key in parent.data.params)
    sums = {"trials": 4, "calls": done.spent.calls, "tokens": done.spent.tokens, "best_score": done.best.score}
    assert sums.items() <= parent.data.metrics.items()
    children = {child.data.params["digest"]: child for child in _runs(client, "trial")}
    assert set(children) == {trial.digest for trial in done.trials}
    for trial in done.trials:
        child = children[trial.digest]
        assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert child.info.run_name == f"trial {trial.number} · {trial.name}"
        assert child.data.params["demos"] == str(trial.demos)
        wanted = {"score": trial.score, "accuracy": trial.accuracy, "n": trial.n, "calls": trial.calls}
        assert wanted.items() <= child.data.metrics.items()
        assert {"program.json", PREDICTIONS} == {file.path for file in client.list_artifacts(child.info.run_id)}
        (given,) = child.inputs.dataset_inputs
        assert given.dataset.name == "headqa_sample-en-validation"


def test_the_parent_holds_the_curve_and_the_folder(done, uri, client, tmp_path) -> None:
    run_id = track_optimization(done, tracking_uri=uri)
    assert _curve(client, run_id, "score") == [(trial.number, trial.score) for trial in done.trials]
    best = [max(trial.score for trial in done.trials[: at + 1]) for at in range(4)]
    assert _curve(client, run_id, "best_so_far") == list(enumerate(best))
    files = {file.path for file in client.list_artifacts(run_id)}
    made = {path.name for path in done.folder.path.iterdir() if path.is_file() and not path.name.startswith(".")}
    assert files == (made - {"calls.jsonl"}) | {PREDICTIONS}
    copy = client.download_artifacts(run_id, PREDICTIONS, str(tmp_path))
    assert Path(copy).read_bytes() == (done.folder.programs / done.best.digest / PREDICTIONS).read_bytes()


def test_sending_twice_changes_nothing(done, uri, client) -> None:
    first = track_optimization(done, tracking_uri=uri)
    before = client.get_run(first).to_dictionary()
    assert track_optimization(done, tracking_uri=uri) == first
    assert client.get_run(first).to_dictionary() == before
    assert len(_runs(client, "trial")) == 4
    assert len(_curve(client, first, "score")) == len(_curve(client, first, "best_so_far")) == 4
    assert len(client.get_metric_history(first, "calls")) == 1
    assert len(_models(client)) == 1
    (prompt,) = client.search_prompts()
    assert [version.version for version in client.search_prompt_versions(prompt.name)] == [1]


def test_one_that_goes_on_is_updated(done, uri, client) -> None:
    early = dataclasses.replace(
        done, ending=OptimizationEnding.INTERRUPTED, why="Ctrl-C", trials=(done.trials[0], done.trials[2]), seconds=1.0
    )
    assert best_so_far(early) == {0: done.trials[0].score}
    run_id = track_optimization(early, tracking_uri=uri)
    assert client.get_run(run_id).info.status == "KILLED"
    assert len(_runs(client, "trial")) == 2
    assert track_optimization(done, tracking_uri=uri) == run_id
    assert client.get_run(run_id).info.status == "FINISHED"
    assert sorted(_curve(client, run_id, "score")) == [(trial.number, trial.score) for trial in done.trials]
    assert len(_curve(client, run_id, "best_so_far")) == 4
    assert len(_runs(client, "trial")) == 4


def test_one_without_a_trial_is_told_as_well(quick, uri, client) -> None:
    nothing = dataclasses.replace(quick, ending=OptimizationEnding.FAILED, why="no server", trials=())
    run = client.get_run(track_optimization(nothing, tracking_uri=uri))
    assert run.info.status == "FAILED"
    assert run.data.tags["medexam.why"] == "no server"
    assert (_models(client), list(client.search_prompts())) == ([], [])


def test_an_outage_is_one_line_and_costs_nothing(quick, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrackingError, match="the optimization is complete on disk; send it later") as caught:
        track_optimization(quick, tracking_uri=f"sqlite:///{tmp_path / 'file' / 'mlflow.db'}")
    assert "\n" not in str(caught.value)
    assert load_optimization(quick.folder) == quick


def test_nothing_of_mlflows_settings_is_changed(quick, uri, tmp_path, monkeypatch) -> None:
    import mlflow

    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    track_optimization(quick, tracking_uri=uri)
    before = (mlflow.get_tracking_uri(), mlflow.active_run(), dict(os.environ))
    track_optimization(dataclasses.replace(quick, started_at="2026-11-21T08:00:00+00:00"), tracking_uri=uri)
    assert (mlflow.get_tracking_uri(), mlflow.active_run(), dict(os.environ)) == before
    assert mlflow.get_tracking_uri() != uri
    assert not list(place.iterdir())


def test_the_command_line_sends_optimizations(quick, uri, client, tmp_path, monkeypatch) -> None:
    from typer.testing import CliRunner

    from medexam.cli import app

    for given in (quick.folder.path, tmp_path / "runs"):
        said = CliRunner().invoke(app, ["track", str(given)])
        assert (said.exit_code, said.exception) == (0, None)
        assert f"{quick.folder.name} is MLflow run {_runs(client, 'optimization')[0].info.run_id}" in said.output
    assert len(_runs(client, "optimization")) == 1


def test_the_words_are_versions_of_a_prompt(quick, uri, client) -> None:
    run_id = track_optimization(quick, tracking_uri=uri)
    (prompt,) = client.search_prompts()
    assert prompt.name == "scripted-zero_shot-en"
    run = client.get_run(run_id)
    assert prompt.tags["_mlflow_experiment_ids"] == f",{run.info.experiment_id},"
    version = client.get_prompt_version(prompt.name, 1)
    assert version.template[0] == {"role": "system", "content": ""}
    assert version.template[-1] == {"role": "user", "content": "{{question}}"}
    assert version.tags["medexam.program_digest"] == quick.best.digest
    assert version.tags["mlflow_run_id"] == run_id
    assert json.loads(run.data.tags["mlflow.linkedPrompts"]) == [{"name": prompt.name, "version": "1"}]


def test_other_words_are_another_version(quick, uri, client) -> None:
    track_optimization(quick, tracking_uri=uri)
    path = quick.folder.path / "program.json"
    written = path.read_text()
    state = json.loads(written)
    state["respond"]["signature"]["instructions"] = "Choose. Write {Answer: n}."
    path.write_text(json.dumps(state))
    run_id = track_optimization(quick, tracking_uri=uri)
    second = client.get_prompt_version("scripted-zero_shot-en", 2)
    assert second.template[1]["content"] == "Choose. Write {Answer: n}."
    assert json.loads(client.get_run(run_id).data.tags["mlflow.linkedPrompts"])[0]["version"] == "2"
    path.write_text(written)
    track_optimization(quick, tracking_uri=uri)
    assert len(client.search_prompt_versions("scripted-zero_shot-en")) == 2
    assert json.loads(client.get_run(run_id).data.tags["mlflow.linkedPrompts"])[0]["version"] == "1"


def test_a_program_of_two_calls_has_two_prompts(run_optimizer) -> None:
    done, _ = run_optimizer(
        {"optimizer.kind": "labeled", "program.kind": "chain_of_thought", "program.answer_format": "guided"}
    )
    templates = prompt_templates(done)
    assert list(templates) == ["scripted-chain_of_thought-en-reason", "scripted-chain_of_thought-en-respond"]
    assert [turns[-1]["content"] for turns in templates.values()] == ["{{question}}", "{{rationale}}\n\n{Answer: "]


@pytest.mark.parametrize("code", ["ENDPOINT_NOT_FOUND", "NOT_IMPLEMENTED"])
def test_a_store_without_a_registry_is_passed_over(quick, code) -> None:
    from mlflow.exceptions import MlflowException
    from mlflow.protos.databricks_pb2 import ErrorCode

    class Old:
        def search_prompts(self, filter_string):
            raise MlflowException("no such endpoint", error_code=ErrorCode.Value(code))

    assert register_prompts(Old(), quick, "run", "1") == []


def test_the_model_is_whole_and_holds_no_pickle(quick, uri, client) -> None:
    run_id = track_optimization(quick, tracking_uri=uri)
    (model,) = _models(client)
    assert (model.name, model.status) == ("scripted-zero_shot-en", "READY")
    assert model.source_run_id == run_id
    assert [output.model_id for output in client.get_run(run_id).outputs.model_outputs] == [model.model_id]
    assert {metric.key: metric.value for metric in model.metrics}["validation_score"] == quick.best.score
    files = {path.relative_to(_place(model)).as_posix() for path in _place(model).rglob("*") if path.is_file()}
    assert {"MLmodel", "served_program.py", "artifacts/cell.json", "artifacts/program.json"} <= files
    assert {Path(name).suffix for name in files} == {"", ".py", ".json", ".yaml", ".txt"}


def _load(place: Path):
    import mlflow.pyfunc

    return mlflow.pyfunc.load_model(str(place))


def _asked(done, part):
    """Some questions of a trial with their predictions, and the same as rows."""
    said = RunFolder(done.folder.programs / done.best.digest, done.best.digest).read_predictions()
    questions = {question.key: question for question in part.questions}
    found = [said[key] for key in sorted(said)][:8]
    rows = [
        {"stem": questions[one.question].stem, "options": [o.text for o in questions[one.question].options]}
        for one in found
    ]
    return found, pd.DataFrame(rows)


def test_the_model_answers_as_the_trial_did(quick, uri, client, sample) -> None:
    track_optimization(quick, tracking_uri=uri)
    (model,) = _models(client)
    loaded = _load(_place(model))
    assert [column.name for column in loaded.metadata.signature.inputs] == ["stem", "options", "discipline"]
    said, rows = _asked(quick, sample)
    answers = loaded.predict(rows)
    assert [(one["answer"], one["reply"]) for one in answers] == [(one.answer, one.reply) for one in said]
    assert loaded.predict(pd.DataFrame([EXAMPLE])) == [{"answer": 1, "reply": "{Answer: 1}", "rationale": None}]


def test_words_of_ones_own_travel_with_the_model(run_optimizer, uri, client, tmp_path) -> None:
    words = tmp_path / "words.yaml"
    words.write_text("en: {zero_shot: 'Choose. $form'}")
    track_optimization(run_optimizer({"optimizer.kind": "labeled", "program.prompt": str(words)})[0], tracking_uri=uri)
    words.unlink()
    (model,) = _models(client)
    assert (_place(model) / "artifacts" / "words.yaml").exists()
    assert _load(_place(model)).predict(pd.DataFrame([EXAMPLE]))[0]["answer"] == 1


def test_demonstrations_of_each_questions_own_are_served(finished, uri, client, sample) -> None:
    pytest.importorskip("sentence_transformers")
    done = finished("knn")
    done = dataclasses.replace(done, trials=done.trials[1:])
    (done.folder.path / "program.json").write_bytes(
        (done.folder.programs / done.best.digest / "program.json").read_bytes()
    )
    track_optimization(done, tracking_uri=uri)
    (model,) = _models(client)
    assert "retrieval" in (_place(model) / "requirements.txt").read_text()
    said, rows = _asked(done, sample)
    assert [one["answer"] for one in _load(_place(model)).predict(rows)] == [one.answer for one in said]
    (turns,) = prompt_templates(done).values()
    assert [turn["role"] for turn in turns] == ["system", "user", "user"]


@pytest.mark.parametrize("kind", ["labeled", "knn"])
def test_a_trace_shows_the_demonstrations_that_were_found(finished, document, tmp_path, kind) -> None:
    pytest.importorskip("sentence_transformers")
    done = finished(kind)
    loaded = {"program.load": str(done.folder.programs / done.trials[1].digest), "dataset.limit": 4}
    plan = plan_experiment({**document, "trace_questions": 2}, loaded, runs_dir=tmp_path / "runs")
    (run,), _ = Runner(plan, Silent()).run()
    for trace in read_traces(run):
        turns = next(step for step in trace.steps if step.name == "ask").inputs["messages"]
        assert [turn["role"] for turn in turns] == ["system", "user", *(["user", "assistant"] * 3), "user"]


def test_a_row_that_is_no_question_is_refused(quick, uri, client) -> None:
    from mlflow.exceptions import MlflowException

    track_optimization(quick, tracking_uri=uri)
    (model,) = _models(client)
    loaded = _load(_place(model))
    for options in (["the only one"], []):
        with pytest.raises(MlflowException, match=r"row 0 is not a question: .*two options"):
            loaded.predict(pd.DataFrame([{"stem": "Which?", "options": options}]))


def test_a_program_that_needs_a_translation_is_not_served(tmp_path) -> None:
    cell = CellSpec.model_validate(
        {
            "name": "x",
            "program": {"kind": "retrieve_then_answer", "query_language": "es", "retriever": {"kind": "bm25"}},
        }
    )
    assert "translation" in unservable(cell)
    gone = CellSpec.model_validate({"name": "x", "program": {"kind": "zero_shot", "prompt": str(tmp_path / "my.yaml")}})
    assert "my.yaml" in unservable(gone)
    assert unservable(CellSpec(name="x")) is None


@pytest.fixture(scope="module")
def embedded(tmp_path_factory, empty_store, tiny_llama):
    """An optimization of a drawn model in a store of its own, and the folder of what is logged."""
    from mlflow import MlflowClient

    from medexam.experiments import plan_optimization
    from medexam.experiments.optimize.optimizer import optimize

    runs_dir = tmp_path_factory.mktemp("embedded")
    (runs_dir / "mlflow.db").write_bytes(empty_store.read_bytes())
    document = {
        "name": "served",
        "dataset": {"name": "headqa_sample", "split": "test"},
        "model": {"engine": "embedded", "path": str(tiny_llama), "dtype": "float32"},
        "program": {"kind": "zero_shot", "answer_format": "guided"},
        "optimizer": {"kind": "labeled", "demos": 1, "validation": {"split": "dev", "limit": 3}},
    }
    done = optimize(plan_optimization(document, {}, runs_dir=runs_dir), Trials())
    uri = default_tracking_uri(runs_dir)
    track_optimization(done, tracking_uri=uri)
    (model,) = _models(MlflowClient(tracking_uri=uri))
    return done, _place(model)


@pytest.mark.model
def test_the_loaded_model_answers_as_the_embedded_one_did(embedded) -> None:
    done, place = embedded
    part = load_exam_set(done.optimizer.validation.of(done.cell.dataset))
    said, rows = _asked(done, part)
    answers = _load(place).predict(rows)
    assert [(one["answer"], one["reply"]) for one in answers] == [(one.answer, one.reply) for one in said]


@pytest.mark.model
def test_mlflow_serves_the_model(embedded, tmp_path) -> None:
    done, place = embedded
    part = load_exam_set(done.optimizer.validation.of(done.cell.dataset))
    said, rows = _asked(done, part)
    port = free_port()
    command = [sys.executable, "-W", "ignore", "-m", "mlflow", "models", "serve", "-m", str(place)]
    command += ["--env-manager", "local", "--host", "127.0.0.1", "--port", str(port)]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "MLFLOW_DISABLE_TELEMETRY": "true"},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            _wait(process, port, tmp_path / "log")
            answers = _post(port, {"dataframe_records": rows.to_dict(orient="records")[:2]})["predictions"]
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=BACKSTOP_S)
    assert [(one["answer"], one["reply"]) for one in answers] == [(one.answer, one.reply) for one in said[:2]]


def _wait(process, port: int, log: Path) -> None:
    def answers() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ping", timeout=BACKSTOP_S):
                return True
        except OSError:
            return False

    until(answers, "serving the model")


def _post(port: int, document: dict) -> dict:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/invocations",
        data=json.dumps(document).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=BACKSTOP_S) as reply:
        return json.load(reply)
