"""`medexam optimize` as a user types it, with the scripted engine."""

import sys

import pytest


@pytest.fixture
def begin(medexam, spec, monkeypatch):
    """`begin("--set", "optimizer.max_calls=30")` optimizes a small spec without MLflow; gives what it prints."""
    monkeypatch.setitem(sys.modules, "mlflow", None)
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
    assert "continues under a larger budget (--set optimizer.max_calls or max_tokens)" in err
