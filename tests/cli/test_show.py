"""One stored run, and what it answered to one question."""

import json
import shutil

import pytest
import yaml

import medexam as package


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A folder with a run of twelve questions on a script that answers all of them with 1."""
    folder = tmp_path_factory.mktemp("shown")
    (folder / "replies.yaml").write_text(yaml.safe_dump({"*": "{Answer: 1}"}))
    model = {"engine": "scripted", "path": str(folder / "replies.yaml")}
    spec = {"name": "shown", "dataset": {"name": "headqa_sample", "limit": 12}, "model": model, "program": "zero_shot"}
    package.run(spec, runs_dir=folder / "runs", track=False)
    return folder / "runs"


@pytest.fixture
def run(medexam, stored, tmp_path):
    """The run's document as `medexam run --json` prints it; a copy of its folder is in ./runs."""
    shutil.copytree(stored, tmp_path / "runs")
    (folder,) = (tmp_path / "runs").glob("shown-*")
    code, out, err = medexam("run", "--resume", folder.name, "--json")
    assert code == 0, err
    return json.loads(out)[0]


def test_a_run_with_its_settings(medexam, run) -> None:
    code, out, err = medexam("show", run["run_id"][-12:])
    assert (code, err) == (0, "")
    assert "Complete: 12 questions" in out
    for said in ("dataset.limit", "scripted", "predictions.jsonl", run["spec_digest"], "medexam report"):
        assert said in out
    assert json.loads(medexam("show", run["run_dir"], "--json")[1]) == run


def test_an_answer_by_the_end_of_its_key(medexam, run, tmp_path) -> None:
    log = tmp_path / run["run_dir"] / "predictions.jsonl"
    keys = [json.loads(line)["question"] for line in log.read_text().splitlines()]
    code, out, err = medexam("show", run["run_id"], keys[3].partition("/")[2])
    assert (code, err) == (0, "")
    assert out.startswith(keys[3])
    assert "\nreply: {Answer: 1}\n" in out
    assert out.count("\n* ") == 1
    document = json.loads(medexam("show", run["run_id"], keys[3], "--json")[1])
    assert (document["question"], document["answer"]) == (keys[3], 1)


def test_a_question_that_was_not_asked_is_refused_with_an_example(medexam, run) -> None:
    code, out, err = medexam("show", run["run_id"], "zzz")
    assert (code, out) == (2, "")
    assert "the run asked no question zzz: give a key such as headqa-v1/" in err
    years = {"headqa-v1/2016/biology/8", "headqa-v1/2017/biology/8"}
    from medexam.cli.stored.actions.show import find_key
    from medexam.errors import RunFolderError

    with pytest.raises(RunFolderError, match="8 may be 2 questions"):
        find_key("8", tuple(years))


def test_the_traceback_of_a_module_of_ones_own_is_printed_line_by_line(medexam, tmp_path) -> None:
    (tmp_path / "mine.py").write_text(
        "import dspy\n\n\nclass Fragile(dspy.Module):\n    def forward(self, question):\n        return {}['x']\n"
    )
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": "x"}))
    spec = {
        "name": "fragile",
        "dataset": {"name": "headqa_sample", "limit": 1},
        "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
        "program": f"{tmp_path / 'mine.py'}:Fragile",
    }
    package.run(spec, runs_dir=tmp_path / "runs", track=False)
    (folder,) = (tmp_path / "runs").glob("fragile-*")
    key = json.loads((folder / "predictions.jsonl").read_text())["question"]
    code, out, _ = medexam("show", folder, key)
    assert code == 0
    assert '\nfailure: {"kind": "KeyError", "message": "mine.py:6 in forward: KeyError: \'x\'"}\n' in out
    assert "\ntraceback:\nTraceback (most recent call last):\n" in out
    assert "\n    return {}['x']\n" in out
    document = json.loads(medexam("show", folder, key, "--json")[1])
    assert document["failure"]["traceback"].endswith("KeyError: 'x'\n")
