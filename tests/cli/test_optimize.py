"""`medexam optimize` as a user types it, with the scripted engine."""

import json

import pytest


@pytest.fixture
def begin(medexam, spec):
    """`begin("--set", "optimizer.max_calls=30")` optimizes a small spec; gives what the command line gives."""
    optimizer = {"kind": "labeled", "validation": {"split": "dev", "limit": 4}}
    path = spec(name="small", dataset={"name": "headqa_sample", "split": "test"}, optimizer=optimizer)
    return lambda *arguments: medexam("optimize", path, *arguments)


def test_a_raised_budget_of_a_complete_one_is_explained(begin) -> None:
    code, _, err = begin()
    assert code == 0
    assert "is complete" not in err
    code, _, err = begin("--set", "optimizer.max_calls=5000")
    assert code == 0
    assert "is complete: all 2 programs that it asks for were tried, so another budget changes nothing; " in err


def test_one_that_spent_its_budget_says_how_it_goes_on(begin) -> None:
    code, _, err = begin("--set", "optimizer.max_tokens=500")
    assert code == 0
    assert "budget: 500 tokens are too few" in err
    assert "continues under a larger budget (--set optimizer.max_calls, max_tokens or max_minutes)" in err


def test_a_complete_one_of_an_earlier_version_is_shown_and_does_not_go_on(begin, medexam, tmp_path) -> None:
    begin()
    (folder,) = (tmp_path / "runs").glob("small-*")
    record = json.loads((folder / "optimization.json").read_text())
    record.pop("schema")
    (folder / "optimization.json").write_text(json.dumps(record))
    (folder / "models.json").unlink()
    code, out, _ = medexam("optimize", "--resume", folder, "--json")
    assert (code, json.loads(out)["models"], len(json.loads(out)["trials"])) == (0, [], 2)
    code, _, err = medexam("optimize", "--resume", folder, "--set", "optimizer.max_calls=5000")
    assert code == 2
    assert "cannot continue: an earlier version of medexam made it" in err
