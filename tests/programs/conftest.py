"""Fixtures of programs that are asked in a run."""

import pytest
import yaml

import medexam as package
from command_line import _untracked, medexam
from one_question import ask, ask_task, finder

__all__ = ["_untracked", "ask", "ask_task", "finder", "medexam"]


@pytest.fixture
def own_spec(tmp_path):
    """`own_spec(source, name, replies)` -> the spec of a module that stands in a file, over sample questions."""

    def make(source, name, replies, *, limit=3, model=None, parts=None, **program):
        (tmp_path / "mine.py").write_text(f"import dspy\n{source}")
        (tmp_path / "replies.yaml").write_text(yaml.safe_dump(replies, sort_keys=False))
        return {
            "name": "own",
            "dataset": {"name": "headqa_sample", "limit": limit},
            "model": model or {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
            "program": {"kind": f"{tmp_path / 'mine.py'}:{name}" if name[0].isupper() else name, **program},
            **(parts or {}),
        }

    return make


@pytest.fixture
def own_run(own_spec, tmp_path):
    """`own_run(source, name, replies)` -> the run of that spec."""

    def run(*source, **more):
        spec = own_spec(*source, **more)
        return package.run(spec, runs_dir=tmp_path / "runs", progress=False, track=False)[0]

    return run
