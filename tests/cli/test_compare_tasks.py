"""`medexam compare` of runs that answer in words, as a user meets it: real runs with scripted replies."""

import json
import shutil
import sys

import pytest
import yaml

from case_files import CLAIM, REST, write_cases
from medexam.cli import run_command

CASES = 10


@pytest.fixture(scope="module")
def runs_dir(tmp_path_factory, empty_store):
    """Runs made by `medexam run` once for all tests: of extraction `claim`, `rest` and `torn`, and one of an exam."""
    home = tmp_path_factory.mktemp("extraction")
    cases = write_cases(home / "cases", CASES)
    right = {f"Answer {n:02d}": CLAIM.format(n=n) for n in range(CASES)}
    replies = {
        "claim": right,
        "rest": {"*": REST},
        "torn": {"Answer 03": {"error": "context"}, "Answer 04": "what is not there", **right},
    }
    dataset = {"name": "casimedicos_spans", "split": "test", "path": str(cases), "variants": ["CQ#E", "Q#CE"]}
    specs = {}
    for name, table in replies.items():
        (home / f"{name}-replies.yaml").write_text(yaml.safe_dump(table, sort_keys=False))
        model = {"engine": "scripted", "path": str(home / f"{name}-replies.yaml")}
        specs[name] = {"dataset": dataset, "model": model, "program": {"kind": "extract_explanation"}}
    specs["exam"] = {"dataset": {"name": "headqa_sample", "limit": 4}, "program": {"kind": "random"}}
    (home / "runs").mkdir()
    shutil.copy(empty_store, home / "runs" / "mlflow.db")
    with pytest.MonkeyPatch.context() as patch:
        for name, document in specs.items():
            path = home / f"{name}.yaml"
            path.write_text(yaml.safe_dump({"name": name, **document}))
            patch.setattr(sys, "argv", ["medexam", "run", str(path), "--runs-dir", str(home / "runs"), "--json"])
            with pytest.raises(SystemExit) as done:
                run_command()
            assert done.value.code in (None, 0)
    return home / "runs"


@pytest.fixture
def run(runs_dir):
    """`run("claim")` -> the folder of that run."""

    def find(name: str):
        (found,) = runs_dir.glob(f"{name}-*")
        return found

    return find


def test_two_runs_are_compared_on_the_terminal(medexam, run, runs_dir) -> None:
    code, out, err = medexam("compare", run("rest"), run("claim"))
    assert (code, err) == (0, "")
    plain = " ".join(out.split())
    assert "20 questions, variants of 10, of casimedicos_spans en: those that both runs scored. None dropped." in plain
    assert "Scores on the same questions" in plain
    assert "in Components: F1: +100.0 [100.0, 100.0] percentage points, p = 0.002, 0.010 after Holm." in plain
    code, by_id, _ = medexam("compare", run("rest").name, run("claim").name, "--runs-dir", runs_dir)
    assert (code, by_id) == (0, out)


def test_json_and_markdown_agree_with_the_report(medexam, run, tmp_path) -> None:
    folders = run("rest"), run("torn"), run("claim")
    code, out, err = medexam("compare", *folders, "--json", "--markdown", "compare.md")
    assert (code, err) == (0, "wrote compare.md\n")
    document = json.loads(out)
    reported = json.loads(medexam("report", *folders, "--json")[1])
    assert [each["metrics"] for each in document["runs"]] == [each["metrics"] for each in reported]
    for pair, each in zip(document["pairs"], reported[1:], strict=True):
        for name, measure in pair["measures"].items():
            assert measure["other"] == pytest.approx(each["metrics"]["measures"][name]["value"])
    assert (tmp_path / "compare.md").read_text().startswith("# ")
    code, out, err = medexam("compare", *folders, "--markdown", tmp_path / "none" / "compare.md")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "choose another file with --markdown" in err


def test_track_sends_the_comparison_beside_the_runs(medexam, run, runs_dir) -> None:
    code, out, err = medexam("compare", run("rest"), run("claim"), "--track", "--json")
    assert (code, json.loads(out)["baseline"]) == (0, run("rest").name)
    assert f"sent to sqlite:///{runs_dir}/mlflow.db" in err


def test_bad_input_is_one_line_with_a_way_out(medexam, run) -> None:
    claim, exam = run("claim"), run("exam")
    for arguments, said in (
        ((claim,), "give the baseline and one run or more"),
        ((claim, claim), "name each run once"),
        ((claim, exam), "the runs asked different data sets: casimedicos_spans"),
        ((exam, claim), "the runs asked different data sets: headqa_sample"),
        ((claim, run("rest"), "--languages"), "their measures are compared in any language"),
    ):
        code, out, err = medexam("compare", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert err.startswith("medexam: ")
        assert said in err
