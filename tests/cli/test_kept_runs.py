"""Runs that are kept: listed, meant by the beginning of an id, and removed."""

import json
import shutil

import pytest
import yaml

import medexam as package


@pytest.fixture(scope="module")
def four_runs(tmp_path_factory):
    """A folder of four runs."""
    folder = tmp_path_factory.mktemp("four")
    spec = {"name": "kept", "dataset": {"name": "headqa_sample", "limit": 6}}
    spec["matrix"] = {"program": ["longest", "random"], "dataset.language": ["en", "es"]}
    package.run(spec, runs_dir=folder / "runs", track=False)
    return folder / "runs"


@pytest.fixture
def kept(four_runs, tmp_path):
    """Four runs in ./runs, by their ids."""
    shutil.copytree(four_runs, tmp_path / "runs")
    return [path.parent.name for path in sorted(four_runs.glob("*/spec.json"))]


def test_runs_are_listed(medexam, kept, tmp_path) -> None:
    code, out, _ = medexam("list")
    assert code == 0
    assert "4 runs in runs" in out
    for run in kept:
        assert run.rpartition("-")[2] in out
    listed = json.loads(medexam("list", "--json")[1])
    assert sorted(run["run_id"] for run in listed) == sorted(kept)
    code, out, err = medexam("list", "--runs-dir", tmp_path / "none")
    assert (code, out) == (0, "")
    assert "no runs in" in err


def test_the_beginning_of_an_id_or_of_its_digest_is_enough(medexam, kept) -> None:
    for run in kept:
        for short in (run[:-6], run.rpartition("-")[2][:6]):
            code, out, err = medexam("report", short, "--json")
            assert code == 0, err
            assert json.loads(out)[0]["run_id"] == run
    code, _, err = medexam("compare", kept[0][:-4], kept[1][:-4])
    assert code == 0, err
    code, _, err = medexam("run", "--resume", kept[0].rpartition("-")[2])
    assert code == 0, err


def test_what_is_not_clear_is_refused_with_the_way_out(medexam, kept) -> None:
    for command in (("report", "kept"), ("run", "--resume", "kept"), ("rm", "kept")):
        code, out, err = medexam(*command)
        assert (code, out) == (2, "")
        assert "kept may be 4 runs in runs: kept-" in err
    code, _, err = medexam("report", kept[0].replace("longest", "longst"))
    assert code == 2
    assert f"did you mean {kept[0]}" in err
    assert "no run at runs/zzz" in medexam("report", "zzz")[2]


def test_a_run_is_removed(medexam, kept, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("builtins.input", lambda *_: "n")
    digest = kept[0].rpartition("-")[2]
    code, _, err = medexam("rm", digest, "--yes")
    assert code == 0
    assert "removed 1 run" in err
    assert not (tmp_path / "runs" / kept[0]).exists()
    assert len(json.loads(medexam("list", "--json")[1])) == 3


def test_runs_stand_in_the_order_of_their_spec(medexam, tmp_path) -> None:
    """Not in that in which they were asked, in which like prompts follow each other; also once one was continued."""
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": "{Answer: 1}"}))
    spec = {
        "name": "order",
        "dataset": {"name": "headqa_sample", "limit": 2},
        "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
        "matrix": {
            "program": [{"kind": "zero_shot"}, {"kind": "few_shot"}, {"kind": "zero_shot", "answer_format": "guided"}]
        },
    }
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec))
    code, out, err = medexam("run", "spec.yaml", "--json")
    assert code == 0, err
    asked = [line for line in err.splitlines() if "asking" in line]
    assert [line.partition(" en:")[0] for line in asked] == [
        "cell 1 of 3: zero_shot",
        "cell 2 of 3: zero_shot-guided",
        "cell 3 of 3: few_shot",
    ]
    ids = [run["run_id"] for run in json.loads(out)]
    assert ["few_shot" in run for run in ids] == [False, True, False]
    assert medexam("run", "--resume", f"runs/{ids[1]}")[0] == 0
    for command in ("report", "list"):
        where = ("runs",) if command == "report" else ()
        assert [run["run_id"] for run in json.loads(medexam(command, *where, "--json")[1])] == ids
