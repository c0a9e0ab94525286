"""`medexam.run` with a scripted model that always answers 1, in a folder of runs with nothing around it."""

import pytest

import medexam


@pytest.fixture
def scripted(tmp_path, monkeypatch, replies):
    """Settings of a model that always answers 1."""
    monkeypatch.chdir(tmp_path)
    return replies()


@pytest.fixture
def runs_dir(tmp_path):
    return tmp_path / "runs"


@pytest.fixture
def ask(scripted, runs_dir):
    """`medexam.run` over six questions."""

    def run(spec="headqa_sample", **settings):
        defaults = {"model": scripted, "limit": 6, "runs_dir": runs_dir, "track": False, "progress": False}
        return medexam.run(spec, **defaults | settings)

    return run
