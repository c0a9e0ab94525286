"""The command line as a user meets it: what is printed where, and how it exits."""

import json

import pytest
import yaml


@pytest.fixture
def spec(tmp_path):
    """Writes a spec over scripted replies and gives its path."""

    def write(replies: object = "{Answer: 1}", **changes: object):
        (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": replies}))
        document = {
            "name": "trial",
            "dataset": {"name": "headqa_sample", "limit": 6},
            "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
            "program": {"kind": "zero_shot"},
            **changes,
        }
        path = tmp_path / "spec.yaml"
        path.write_text(yaml.safe_dump({key: value for key, value in document.items() if value is not None}))
        return path

    return write


def test_json_is_one_document_on_standard_output(medexam, spec) -> None:
    code, out, _ = medexam("run", spec(), "--json")
    assert code == 0
    (run,) = json.loads(out)
    assert {"run_id", "run_dir", "spec_digest", "dataset", "language", "program", "model", "metrics"} <= set(run)
    assert run["metrics"]["n"] == 6


def test_the_table_tells_n_and_chance(medexam, spec, tmp_path) -> None:
    code, out, err = medexam("run", spec())
    assert code == 0
    assert "zero_shot" in out
    assert "chance" in out.lower()
    assert "medexam ui --runs-dir runs" in err
    assert (tmp_path / "runs" / "mlflow.db").is_file()


def test_a_limit_is_widened_without_asking_again(medexam, spec) -> None:
    medexam("run", spec(), "--json")
    code, out, _ = medexam("run", spec(), "--limit", 12, "--json")
    assert (code, json.loads(out)[0]["metrics"]["n"]) == (0, 12)
    code, out, _ = medexam("plan", spec(), "--limit", 18, "--json")
    assert (code, json.loads(out)[0]["owed"]) == (0, 6)


def test_plan_shows_a_prompt_and_counts_calls(medexam, spec) -> None:
    program = {"kind": "chain_of_thought", "answer_format": "guided"}
    code, out, _ = medexam("plan", spec(program=program), "--json")
    (cell,) = json.loads(out)
    assert (code, cell["questions"], cell["calls"]) == (0, 6, 12)
    assert [turn["role"] for turn in cell["prompt"]] == ["system", "user"]
    code, out, _ = medexam("plan", spec(program=program))
    assert "Think through each option briefly" in " ".join(out.replace("│", " ").split())


def test_an_incomplete_run_exits_with_3_and_says_how_to_go_on(medexam, spec, monkeypatch) -> None:
    monkeypatch.setattr("dspy.clients.execution._delay", lambda error, attempt: 0)
    code, out, err = medexam("run", spec({"error": "server"}), "--json")
    assert code == 3
    assert json.loads(out)[0]["metrics"]["failed"] == 6
    assert "6 questions are still owed" in err
    assert "scripted server failure" in err
    code, out, _ = medexam("run", spec(), "--json")
    assert (code, json.loads(out)[0]["metrics"]["n"]) == (0, 6)


def test_an_mlflow_outage_costs_a_line_and_nothing_else(medexam, spec, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    code, out, err = medexam("run", spec(), "--json", "--tracking-uri", f"sqlite:///{tmp_path}/file/mlflow.db")
    assert (code, json.loads(out)[0]["metrics"]["n"]) == (0, 6)
    assert "medexam track" in err


@pytest.mark.parametrize(
    ("changes", "settings", "said"),
    [
        ({"datset": {}}, [], "did you mean 'dataset'?"),
        ({"dataset": {"name": "headqa_sample", "limit": "x"}}, [], "dataset.limit"),
        ({"matrix": {"program.knd": ["a"]}}, [], "did you mean 'kind'?"),
        ({}, ["dataset.years=[1999]"], "1999"),
        ({}, ["dataset.path=nowhere.json", "dataset.name=headqa_v1"], "nowhere.json"),
        ({}, ["model.path=nowhere.yaml"], "nowhere.yaml"),
        ({}, ["program.prompt=nowhere.yaml"], "nowhere.yaml"),
        ({}, ["program.kind=few_shot", "program.examples=nowhere.yaml"], "nowhere.yaml"),
        ({}, ["limit"], "key=value"),
        ({"model": {"engine": "vllm", "endpoints": ["http://127.0.0.1:9/v1"]}}, [], "127.0.0.1:9"),
        ({"model": {"engine": "embedded", "path": "nowhere"}}, [], "nowhere"),
        ({"dataset": {"name": "headqa_sample", "language": "ru"}}, [], "ru"),
        ({}, ["dataset.disciplines=[nursery]"], "nursing"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(medexam, spec, changes, settings, said) -> None:
    options = [item for setting in settings for item in ("--set", setting)]
    code, out, err = medexam("run", spec(**changes), *options)
    assert code == 2
    assert out == ""
    last = err.strip().splitlines()[-1]
    assert last.startswith("medexam: ")
    assert said in last
    assert "Traceback" not in err


def test_a_spec_that_does_not_exist(medexam) -> None:
    code, _, err = medexam("run", "quickstrat")
    assert code == 2
    assert "quickstart" in err


def test_runs_that_cannot_be_written(medexam, spec, tmp_path) -> None:
    (tmp_path / "runs").write_text("")
    code, _, err = medexam("run", spec())
    assert code == 2
    assert "--runs-dir" in err


def test_resume_refuses_another_spec(medexam, spec) -> None:
    _, out, _ = medexam("run", spec(), "--json")
    run_id = json.loads(out)[0]["run_id"]
    code, _, err = medexam("run", spec(), "--set", "model.seed=3", "--resume", run_id)
    assert code == 2
    assert "model.seed" in err
    code, out, _ = medexam("run", spec(), "--resume", run_id, "--json")
    assert (code, json.loads(out)[0]["run_id"]) == (0, run_id)


def test_usage_errors_exit_with_2(medexam, spec) -> None:
    assert medexam("run")[0] == 2
    assert medexam("run", spec(), "--resume", "x", "--fresh")[0] == 2


def test_version_and_shipped_experiments(medexam) -> None:
    assert medexam("--version") == (0, "0.1.0\n", "")
    code, out, _ = medexam("plan", "quickstart", "--json")
    assert code == 0
    assert {cell["questions"] for cell in json.loads(out)} == {60}
